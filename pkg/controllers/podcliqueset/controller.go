// Package podcliqueset writes the status of PodCliqueSets and lets deleted ones go. It
// is the only writer of that status (D5); what it says is decided in pkg/gang, and what
// a set consists of is made by the replica controller.
package podcliqueset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/internal/confirm"
	"github.com/copse-dev/copse/pkg/controllers/internal/index"
	"github.com/copse-dev/copse/pkg/controllers/internal/live"
	"github.com/copse-dev/copse/pkg/controllers/internal/pace"
	"github.com/copse-dev/copse/pkg/controllers/internal/topology"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/metrics"
)

// Reconciler writes the status of sets.
type Reconciler struct {
	Client client.Client
	// Cache is the client's cache without its waiting for own writes: for event handlers,
	// which must not block.
	Cache    client.Reader
	Live     client.Reader
	Recorder events.EventRecorder
	Clock    clock.Clock
	Pace     *pace.Pace
	Metrics  *metrics.Metrics
	// ResourceClaims says that the cluster serves them.
	ResourceClaims bool
	// Topology says what the constraints of sets speak of.
	Topology topology.Source
}

// Reconcile writes the status of one set, or lets a deleted one go.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	pcs := &grovev1alpha1.PodCliqueSet{}
	if err := r.Client.Get(ctx, req.NamespacedName, pcs); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	o, err := r.observe(ctx, pcs)
	if err != nil {
		return reconcile.Result{}, err
	}
	if pcs.DeletionTimestamp != nil {
		return reconcile.Result{}, r.finalize(ctx, pcs, o)
	}
	now := r.Clock.Now()
	if err := r.lookWhoFinished(ctx, o, now); err != nil {
		return reconcile.Result{}, err
	}
	decision := gang.DecideSet(o.snapshot, now)
	if !decision.Changed {
		return reconcile.Result{RequeueAfter: pace.Until(decision.Next, now)}, nil
	}
	if wait := r.Pace.Wait(pcs.UID, decision.Status.Pods, now); wait > 0 && !decision.Urgent {
		if next := pace.Until(decision.Next, now); next > 0 {
			wait = min(wait, next)
		}
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	confirmed, err := confirm.Breaches(ctx, r.Live, decision.Confirm, now)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !confirmed {
		// What has changed is on its way as an event.
		log.FromContext(ctx).V(1).Info("A breach that the cache shows is over")
		return reconcile.Result{}, nil
	}
	updated := pcs.DeepCopy()
	updated.Status = decision.Status
	if err := r.Client.Status().Update(ctx, updated); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("write the status: %w", err)
	}
	r.Pace.Wrote(pcs.UID, now)
	r.measure(pcs, decision, now)
	// Events follow the write that they report, so that none tells of what did not happen.
	for _, e := range decision.Events {
		r.Metrics.Decision(e.Reason)
		r.Recorder.Eventf(pcs, nil, e.Type, e.Reason, e.Reason, "%s", e.Message)
	}
	// The write brings the next pass, unless nothing but the time is missing.
	return reconcile.Result{RequeueAfter: pace.Until(decision.Next, now)}, nil
}

// measure observes how long decisions and restarts took.
func (r *Reconciler) measure(pcs *grovev1alpha1.PodCliqueSet, decision gang.SetDecision, now time.Time) {
	if !decision.Due.IsZero() && len(decision.Events) > 0 {
		r.Metrics.DecisionDelay(decision.Events[0].Reason, now.Sub(decision.Due))
	}
	before := meta.FindStatusCondition(pcs.Status.Conditions, grovev1alpha1.ConditionTypeRestarting)
	after := meta.FindStatusCondition(decision.Status.Conditions, grovev1alpha1.ConditionTypeRestarting)
	if before != nil && before.Status == metav1.ConditionTrue && after != nil && after.Reason == grovev1alpha1.ReasonReplicaRestarted {
		r.Metrics.Recovered(now.Sub(before.LastTransitionTime.Time))
	}
}

// lookWhoFinished reads live when the pods finished, once the runtime deadline has passed:
// a job that was done in time has not failed, though nobody has noted it yet (D7).
func (r *Reconciler) lookWhoFinished(ctx context.Context, o *observation, now time.Time) error {
	pcs := o.snapshot.Set
	deadline := gang.RuntimeDeadline(pcs)
	if deadline.IsZero() || now.Before(deadline) || gang.ParentOf(pcs) != gang.ParentActive {
		return nil
	}
	// The cliques, too: one that the cache shows in an earlier attempt has finished nothing.
	cliques, all, err := live.SetPods(ctx, r.Live, pcs)
	if err != nil {
		return err
	}
	snapshot := o.snapshot
	snapshot.Cliques = byName(cliques)
	ofClique := map[types.UID][]corev1.Pod{}
	for i := range all {
		owner := metav1.GetControllerOfNoCopy(&all[i])
		ofClique[owner.UID] = append(ofClique[owner.UID], all[i])
	}
	pods := make(map[types.UID][]gang.Pod, len(cliques))
	for i := range cliques {
		pods[cliques[i].UID] = gang.NewPods(&cliques[i], ofClique[cliques[i].UID])
	}
	o.snapshot.FinishedAt = gang.FinishedAt(snapshot, pods, now)
	return nil
}

// observation is what was read in one pass.
type observation struct {
	snapshot gang.SetSnapshot
	children int
}

func (r *Reconciler) observe(ctx context.Context, pcs *grovev1alpha1.PodCliqueSet) (*observation, error) {
	var (
		cliques  grovev1alpha1.PodCliqueList
		groups   grovev1alpha1.PodCliqueScalingGroupList
		gangs    schedulerv1alpha1.PodGangList
		services corev1.ServiceList
		gates    grovev1alpha1.StartGateList
	)
	for _, list := range []client.ObjectList{&cliques, &groups, &gangs, &services, &gates} {
		if err := r.Client.List(ctx, list, index.OwnedBy(pcs.Namespace, pcs.UID)...); err != nil {
			return nil, fmt.Errorf("list %T: %w", list, err)
		}
	}
	o := &observation{
		children: len(cliques.Items) + len(groups.Items) + len(gangs.Items) + len(services.Items) + len(gates.Items),
		snapshot: gang.SetSnapshot{
			Set:     pcs,
			Cliques: byName(cliques.Items),
			Groups:  make(map[string]*grovev1alpha1.PodCliqueScalingGroup, len(groups.Items)),
			Gangs:   make(map[string]*schedulerv1alpha1.PodGang, len(gangs.Items)),
			Gates:   make(map[string]*grovev1alpha1.StartGate, len(gates.Items)),
		},
	}
	for i := range groups.Items {
		o.snapshot.Groups[groups.Items[i].Name] = &groups.Items[i]
	}
	for i := range gates.Items {
		o.snapshot.Gates[gates.Items[i].Name] = &gates.Items[i]
	}
	for i := range gangs.Items {
		o.snapshot.Gangs[gangs.Items[i].Name] = &gangs.Items[i]
	}
	var err error
	if o.snapshot.Claims, err = r.claims(ctx, pcs); err != nil {
		return nil, err
	}
	if o.snapshot.Topology, err = r.Topology.Of(ctx, r.Client, pcs); err != nil {
		return nil, err
	}
	if !isFailing(pcs) {
		return o, nil
	}
	o.snapshot.NoActivePods, err = r.noActivePods(ctx, pcs, cliques.Items)
	return o, err
}

func byName(cliques []grovev1alpha1.PodClique) map[string]*grovev1alpha1.PodClique {
	out := make(map[string]*grovev1alpha1.PodClique, len(cliques))
	for i := range cliques {
		out[cliques[i].Name] = &cliques[i]
	}
	return out
}

// isFailing says that the decision to fail is recorded and not yet carried out.
func isFailing(pcs *grovev1alpha1.PodCliqueSet) bool {
	return gang.ParentOf(pcs) == gang.ParentFailing && !meta.IsStatusConditionTrue(pcs.Status.Conditions, grovev1alpha1.ConditionTypeFailed)
}

// noActivePods looks into the cache first: a live list is worth its price only when the
// cache says that all is over. Live, the cliques are read before the pods: a clique that
// does not know yet that its set fails may be about to make one (D11).
func (r *Reconciler) noActivePods(ctx context.Context, pcs *grovev1alpha1.PodCliqueSet, cliques []grovev1alpha1.PodClique) (bool, error) {
	for i := range cliques {
		if !gang.KnowsOfFailure(&cliques[i]) {
			return false, nil
		}
		var pods corev1.PodList
		if err := r.Client.List(ctx, &pods, index.ControlledBy(pcs.Namespace, cliques[i].UID)...); err != nil {
			return false, fmt.Errorf("list pods: %w", err)
		}
		if slices.ContainsFunc(pods.Items, isActive) {
			return false, nil
		}
	}
	current, pods, err := live.SetPods(ctx, r.Live, pcs)
	if err != nil {
		return false, err
	}
	for i := range current {
		if !gang.KnowsOfFailure(&current[i]) {
			return false, nil
		}
	}
	if err := r.deleteUnseen(ctx, pods); err != nil {
		return false, err
	}
	return !slices.ContainsFunc(pods, isActive), nil
}

// deleteUnseen deletes active pods of a failing set that no cache will ever show, because
// somebody has taken the label off by which it knows them: no event brings anybody to do it.
// It fails when there is one, so that the next look tells when it is gone.
func (r *Reconciler) deleteUnseen(ctx context.Context, pods []corev1.Pod) error {
	var errs []error
	for i := range pods {
		pod := &pods[i]
		if !isActive(*pod) || labels.IsManaged(pod.Labels) {
			continue
		}
		errs = append(errs, fmt.Errorf("pod %s has lost its label %s", pod.Name, labels.ManagedBy))
		if pod.DeletionTimestamp != nil {
			continue
		}
		same := client.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion}
		if err := r.Client.Delete(ctx, pod, same); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("delete pod %s: %w", pod.Name, err))
		}
	}
	return errors.Join(errs...)
}

// isActive says that a container of the pod may still run: a terminating pod is active
// until it is gone or has ended.
func isActive(pod corev1.Pod) bool {
	return pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// finalize lets a deleted set go once nothing is below it, neither in the cache nor in
// a live list. With orphan among the finalizers what is below stays.
func (r *Reconciler) finalize(ctx context.Context, pcs *grovev1alpha1.PodCliqueSet, o *observation) error {
	if !controllerutil.ContainsFinalizer(pcs, labels.PodCliqueSetFinalizer) {
		return nil
	}
	if !slices.Contains(pcs.Finalizers, metav1.FinalizerOrphanDependents) {
		if o.children > 0 {
			return nil
		}
		cliques, err := live.Cliques(ctx, r.Live, pcs)
		if err != nil {
			return err
		}
		if len(cliques) > 0 {
			return fmt.Errorf("clique %s of the deleted set is not in the cache yet", cliques[0].Name)
		}
	}
	patch := client.MergeFromWithOptions(pcs.DeepCopy(), client.MergeFromWithOptimisticLock{})
	controllerutil.RemoveFinalizer(pcs, labels.PodCliqueSetFinalizer)
	if err := r.Client.Patch(ctx, pcs, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer: %w", err)
	}
	r.Pace.Forget(pcs.UID)
	return nil
}
