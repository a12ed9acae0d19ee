package servingcert

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Keeper renews what is in the Secret, and has the server show it. Each replica has one:
// they come to the same answer, and of two that write at once one is refused and reads
// what the other wrote.
type Keeper struct {
	Client client.Client
	// Secret is never made: who may make one Secret may make any.
	Secret types.NamespacedName
	Names  Names
	Clock  clock.PassiveClock
	Holder *Holder
}

// Setup adds it to a manager, whose cache has no other Secret.
func (k *Keeper) Setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("webhook-certificate").For(&corev1.Secret{}).
		WithOptions(controller.Options{NeedLeaderElection: ptr.To(false)}).Complete(k)
}

// Reconcile renews what is due.
func (k *Keeper) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if req.NamespacedName != k.Secret {
		return reconcile.Result{}, nil
	}
	secret := &corev1.Secret{}
	err := k.Client.Get(ctx, k.Secret, secret)
	if apierrors.IsNotFound(err) {
		klog.InfoS("The Secret of the webhook's certificate is gone: apply Copse's manifests again", "secret", k.Secret)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("read Secret %s: %w", k.Secret, err)
	}
	now := k.Clock.Now()
	state, changed, next, err := Renew(Decode(secret.Data), k.Names, now)
	if err != nil {
		return reconcile.Result{}, err
	}
	if changed {
		secret = secret.DeepCopy()
		if secret.Data, err = state.Encode(); err != nil {
			return reconcile.Result{}, err
		}
		err := k.Client.Update(ctx, secret)
		if apierrors.IsConflict(err) {
			// What another replica has written comes as an event.
			return reconcile.Result{}, nil
		}
		if err != nil {
			return reconcile.Result{}, fmt.Errorf("write Secret %s: %w", k.Secret, err)
		}
	}
	k.Holder.set(state.Serving)
	wait := next.Sub(now)
	return reconcile.Result{RequeueAfter: wait}, nil
}
