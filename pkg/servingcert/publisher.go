package servingcert

import (
	"bytes"
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	admissionregistrationv1ac "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// FieldManager is who caBundle is applied by. Who applies the manifests, which have none,
// leaves it as it is.
const FieldManager = "copse-webhook-certificate"

// Publisher has the cluster trust the authorities in the Secret. One replica, the leader,
// does it: one that is late to see the Secret would take back what another has published.
type Publisher struct {
	Client client.Client
	Secret types.NamespacedName
	// Configuration is the name of the MutatingWebhookConfiguration.
	Configuration string
}

// Setup adds it to a manager, whose cache has no other Secret and configuration.
func (p *Publisher) Setup(mgr ctrl.Manager) error {
	toConfiguration := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: p.Configuration}}}
	})
	return ctrl.NewControllerManagedBy(mgr).Named("webhook-trust").For(&admissionregistrationv1.MutatingWebhookConfiguration{}).
		Watches(&corev1.Secret{}, toConfiguration).Complete(p)
}

// Reconcile publishes what is not published.
func (p *Publisher) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if req.Name != p.Configuration {
		return reconcile.Result{}, nil
	}
	secret := &corev1.Secret{}
	if err := p.Client.Get(ctx, p.Secret, secret); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	bundle := Decode(secret.Data).Bundle()
	if len(bundle) == 0 {
		return reconcile.Result{}, nil
	}
	live := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := p.Client.Get(ctx, types.NamespacedName{Name: p.Configuration}, live); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	wanted := admissionregistrationv1ac.MutatingWebhookConfiguration(p.Configuration)
	trusted := true
	for _, webhook := range live.Webhooks {
		trusted = trusted && bytes.Equal(webhook.ClientConfig.CABundle, bundle)
		wanted.WithWebhooks(admissionregistrationv1ac.MutatingWebhook().WithName(webhook.Name).
			WithClientConfig(admissionregistrationv1ac.WebhookClientConfig().WithCABundle(bundle...)))
	}
	if trusted {
		return reconcile.Result{}, nil
	}
	// The version keeps it from being made anew, by half, when it is deleted right now.
	wanted.WithResourceVersion(live.ResourceVersion)
	err := p.Client.Apply(ctx, wanted, client.FieldOwner(FieldManager), client.ForceOwnership)
	if apierrors.IsConflict(err) {
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("publish the authorities of the webhook in %s: %w", p.Configuration, err)
	}
	return reconcile.Result{}, nil
}
