package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	cradmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/admission"
	"github.com/copse-dev/copse/pkg/podgrouper/live"
	"github.com/copse-dev/copse/pkg/servingcert"
)

// Names of the manifests: the Service, the Secret of its certificate, and the
// MutatingWebhookConfiguration.
const (
	webhookService       = "copse-webhook"
	webhookSecret        = "copse-webhook-certificate"
	webhookConfiguration = "copse-pod-grouper"
)

// noAddress switches a server off.
const noAddress = "0"

// webhookAddress is where the webhook is served; the port is 0 when it is not.
func (o *Options) webhookAddress() (host string, port int, err error) {
	if o.WebhookBindAddress == noAddress {
		return "", 0, nil
	}
	host, text, err := net.SplitHostPort(o.WebhookBindAddress)
	if err != nil {
		return "", 0, fmt.Errorf("--webhook-bind-address must be HOST:PORT, or 0: %w", err)
	}
	port, err = strconv.Atoi(text)
	if err != nil || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("--webhook-bind-address: %q is not a port from 1 to 65535", text)
	}
	return host, port, nil
}

// webhookNames are what the webhook's certificate is for.
func (o *Options) webhookNames() (servingcert.Names, error) {
	service := webhookService + "." + o.LeaderElectionNamespace + ".svc"
	out := servingcert.Names{DNS: []string{service, service + "." + o.ClusterDomain}}
	for _, name := range o.WebhookNames {
		if ip := net.ParseIP(name); ip != nil {
			out.IPs = append(out.IPs, ip)
			continue
		}
		if msgs := validation.IsDNS1123Subdomain(name); len(msgs) > 0 {
			return out, fmt.Errorf("--webhook-names: %q is no IP address and no DNS name: %s", name, msgs[0])
		}
		out.DNS = append(out.DNS, name)
	}
	return out, nil
}

func (o *Options) webhookSecret() types.NamespacedName {
	return types.NamespacedName{Namespace: o.LeaderElectionNamespace, Name: webhookSecret}
}

// webhookCache are the only Secret and the only configuration of webhooks that may be read.
func webhookCache(options *Options) map[client.Object]cache.ByObject {
	secret := options.webhookSecret()
	return map[client.Object]cache.ByObject{
		&corev1.Secret{}: {
			Namespaces: map[string]cache.Config{secret.Namespace: {}}, Field: fields.OneTermEqualSelector("metadata.name", secret.Name),
		},
		&admissionregistrationv1.MutatingWebhookConfiguration{}: {Field: fields.OneTermEqualSelector("metadata.name", webhookConfiguration)},
	}
}

// groupWatch has every replica know which groups there are before it is asked for one, and
// while our API server is down.
type groupWatch struct {
	grouping *live.Live
	cache    cache.Cache
}

var _ manager.LeaderElectionRunnable = &groupWatch{}

// NeedLeaderElection says that every replica serves the webhook.
func (*groupWatch) NeedLeaderElection() bool { return false }

// Start begins to watch, and does not wait: a kind that is not served now is watched when it
// is asked for.
func (w *groupWatch) Start(ctx context.Context) error {
	if err := w.grouping.WaitReady(ctx); err != nil {
		// Only the end of the context ends the wait.
		return nil
	}
	kinds := []client.Object{&schedulerv1alpha1.PodGroup{}}
	if w.grouping.Current().BackEnd(&corev1.Pod{}) == podgrouper.Native {
		kinds = append(kinds, &schedulingv1beta1.PodGroup{})
	}
	for _, kind := range kinds {
		if _, err := w.cache.GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
			klog.InfoS("Groups are watched when they are first asked for", "kind", fmt.Sprintf("%T", kind), "err", err)
		}
	}
	return nil
}

// serveWebhook serves the webhook, by every replica, with a certificate that it renews. A pod
// grouper that is switched off leaves every pod as it is: without an answer nobody could
// create one where the webhook's configuration is still there.
func serveWebhook(mgr manager.Manager, options *Options, grouping *live.Live) error {
	host, port, err := options.webhookAddress()
	if err != nil {
		return err
	}
	if port == 0 {
		// Who asks for the webhook alone, as the Deployment does, is not to wait for it.
		return mgr.AddReadyzCheck("webhook", func(*http.Request) error { return nil })
	}
	names, err := options.webhookNames()
	if err != nil {
		return err
	}
	holder := &servingcert.Holder{}
	keeper := &servingcert.Keeper{Client: mgr.GetClient(), Secret: options.webhookSecret(), Names: names, Clock: clock.RealClock{}, Holder: holder}
	if err := keeper.Setup(mgr); err != nil {
		return fmt.Errorf("controller webhook-certificate: %w", err)
	}
	publisher := &servingcert.Publisher{Client: mgr.GetClient(), Secret: options.webhookSecret(), Configuration: webhookConfiguration}
	if err := publisher.Setup(mgr); err != nil {
		return fmt.Errorf("controller webhook-trust: %w", err)
	}
	handler := &admission.Handler{Decoder: cradmission.NewDecoder(mgr.GetScheme())}
	if grouping != nil {
		handler.Members = &admission.Members{
			Groupers: grouping, Owners: grouping.Resolver(), Cache: mgr.GetCache(), Live: mgr.GetAPIReader(),
			Classes: grouping.Classes(), Recent: admission.NewRecent(clock.RealClock{}),
		}
	}
	if grouping != nil {
		if err := mgr.Add(&groupWatch{grouping: grouping, cache: mgr.GetCache()}); err != nil {
			return err
		}
	}
	server := webhook.NewServer(webhook.Options{Host: host, Port: port, TLSOpts: []func(*tls.Config){func(config *tls.Config) {
		config.GetCertificate = holder.GetCertificate
		config.MinVersion = tls.VersionTLS13
	}}})
	server.Register(admission.Path, &webhook.Admission{Handler: handler})
	if err := mgr.Add(server); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("webhook", func(*http.Request) error {
		if grouping != nil && grouping.Current() == nil {
			return errors.New("waiting for the configuration of the pod grouper")
		}
		if err := holder.Ready(); err != nil {
			return fmt.Errorf("%w: it is in Secret %s, which the manifests have", err, options.webhookSecret())
		}
		return nil
	})
}
