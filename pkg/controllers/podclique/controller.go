// Package podclique makes and deletes the pods of PodCliques and writes PodClique
// status. What is to be done is decided in pkg/gang.
package podclique

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	"github.com/copse-dev/copse/pkg/controllers/internal/index"
	"github.com/copse-dev/copse/pkg/controllers/internal/live"
	"github.com/copse-dev/copse/pkg/controllers/internal/pace"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/metrics"
	"github.com/copse-dev/copse/pkg/naming"
	"github.com/copse-dev/copse/pkg/podspec"
	"github.com/copse-dev/copse/pkg/scheduling"
)

// Reconciler runs the pods of PodCliques.
type Reconciler struct {
	Client client.Client
	// Cache is the client's cache without its waiting for own writes: for event handlers,
	// which must not block.
	Cache    client.Reader
	Live     client.Reader
	Recorder events.EventRecorder
	Clock    clock.Clock
	Pace     *pace.Pace
	// Backends schedule gangs.
	Backends *scheduling.Backends
	// ClusterDomain is the domain of the cluster's DNS.
	ClusterDomain string
	// Waiter is how pods wait to start, where they do.
	Waiter podspec.Waiter
	// UnreadyNodeTimeout is how long a node may be not ready until pods that it should have
	// stopped are taken for stopped; 0 for ever.
	UnreadyNodeTimeout time.Duration
	Metrics            *metrics.Metrics
}

// Reconcile observes one clique, decides, records, and acts on what is recorded (D4).
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	clique := &grovev1alpha1.PodClique{}
	if err := r.Client.Get(ctx, req.NamespacedName, clique); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if isOrphaning(clique) {
		return reconcile.Result{}, r.release(ctx, clique)
	}
	now := r.Clock.Now()
	o, err := r.observe(ctx, clique, now)
	if err != nil || o == nil {
		return reconcile.Result{}, err
	}
	decision := gang.DecideClique(o.snapshot, now)

	wait, err := r.record(ctx, o, decision, now)
	if err != nil || decision.Record {
		return reconcile.Result{}, err
	}
	if err := r.apply(ctx, o, decision); err != nil {
		return reconcile.Result{}, err
	}
	if clique.DeletionTimestamp != nil && len(o.snapshot.Pods) == 0 {
		return reconcile.Result{}, r.finalize(ctx, clique)
	}
	if next := pace.Until(decision.Next, now); wait == 0 || (next > 0 && next < wait) {
		wait = next
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}

// observation is what was read in one pass.
type observation struct {
	set      *grovev1alpha1.PodCliqueSet
	podGang  *schedulerv1alpha1.PodGang
	snapshot gang.CliqueSnapshot
}

// observe does all reads of a pass. It returns nil when the clique has no set: nobody
// says what its pods should be.
func (r *Reconciler) observe(ctx context.Context, clique *grovev1alpha1.PodClique, now time.Time) (*observation, error) {
	o := &observation{snapshot: gang.CliqueSnapshot{Clique: clique}}
	var err error
	if o.set, err = r.setOf(ctx, clique); err != nil {
		return nil, err
	}
	if o.set == nil && clique.DeletionTimestamp == nil {
		log.FromContext(ctx).V(1).Info("The clique has no PodCliqueSet", "clique", clique.Name)
		return nil, nil
	}
	o.snapshot.Parent = gang.ParentDeleting
	if o.set != nil {
		o.snapshot.Parent = gang.ParentOf(o.set)
		if o.snapshot.Turn, err = r.turnOf(ctx, o.set, clique); err != nil {
			return nil, err
		}
		o.snapshot.TerminationDelay = gang.TerminationDelay(o.set, clique)
	}
	if o.podGang, o.snapshot.Membership, err = r.membership(ctx, clique); err != nil {
		return nil, err
	}
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, index.ControlledBy(clique.Namespace, clique.UID)...); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	o.snapshot.Pods = gang.NewPods(clique, pods.Items)
	if missing := gang.MissingIndexes(clique, o.snapshot.Pods); len(missing) > 0 && o.snapshot.Parent == gang.ParentActive {
		if err := r.lookForMissing(ctx, o, missing); err != nil {
			return nil, err
		}
	}
	if o.snapshot.OthersDrained, err = r.othersDrained(ctx, o); err != nil {
		return nil, err
	}
	o.snapshot.DeadNodes, o.snapshot.NextDeadNode, err = r.deadNodes(ctx, gang.OverdueNodes(o.snapshot.Pods, now), now)
	return o, err
}

// lookForMissing reads the clique's pods past the cache: absence from a cache proves
// nothing (D9).
func (r *Reconciler) lookForMissing(ctx context.Context, o *observation, missing []int32) error {
	pods, err := live.CliquePods(ctx, r.Live, o.snapshot.Clique)
	if err != nil {
		return err
	}
	o.snapshot.Pods = gang.NewPods(o.snapshot.Clique, pods)
	stillMissing := gang.MissingIndexes(o.snapshot.Clique, o.snapshot.Pods)
	for _, index := range missing {
		if slices.Contains(stillMissing, index) {
			o.snapshot.Lost = append(o.snapshot.Lost, index)
		}
	}
	return nil
}

// setOf is the set that owns a clique, nil when there is none.
func (r *Reconciler) setOf(ctx context.Context, clique *grovev1alpha1.PodClique) (*grovev1alpha1.PodCliqueSet, error) {
	for _, ref := range clique.OwnerReferences {
		if ref.Kind != "PodCliqueSet" || ref.APIVersion != grovev1alpha1.SchemeGroupVersion.String() {
			continue
		}
		pcs := &grovev1alpha1.PodCliqueSet{}
		err := r.Client.Get(ctx, types.NamespacedName{Namespace: clique.Namespace, Name: ref.Name}, pcs)
		switch {
		case apierrors.IsNotFound(err):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("read the set: %w", err)
		case pcs.UID == ref.UID:
			return pcs, nil
		}
	}
	return nil, nil
}

// turnOf is what the levels above let an update of the clique do.
func (r *Reconciler) turnOf(ctx context.Context, pcs *grovev1alpha1.PodCliqueSet, clique *grovev1alpha1.PodClique) (gang.CliqueTurn, error) {
	replica, _ := labels.ParseIndex(clique.Labels[labels.ReplicaIndex])
	var group *grovev1alpha1.PodCliqueScalingGroup
	if name := clique.Labels[labels.ScalingGroup]; name != "" && gang.IsReplicaInTurn(pcs, replica) {
		group = &grovev1alpha1.PodCliqueScalingGroup{}
		if err := r.Client.Get(ctx, types.NamespacedName{Namespace: clique.Namespace, Name: name}, group); client.IgnoreNotFound(err) != nil {
			return gang.CliqueTurn{}, fmt.Errorf("read scaling group %s: %w", name, err)
		}
	}
	return gang.TurnOf(pcs, clique, replica, group), nil
}

// membership reads the gangs that the clique's pods are scheduled with.
func (r *Reconciler) membership(ctx context.Context, clique *grovev1alpha1.PodClique) (*schedulerv1alpha1.PodGang, gang.Membership, error) {
	podGang, err := r.gangWithName(ctx, clique, clique.Labels[labels.PodGang])
	if err != nil || podGang == nil {
		return nil, gang.Membership{}, err
	}
	m := gang.Membership{
		Known:         isForAttempt(podGang, clique) && gang.IsTold(podGang),
		Scheduled:     gang.WasScheduled(podGang),
		BaseScheduled: true,
	}
	if base := clique.Labels[labels.BasePodGang]; base != "" {
		baseGang, err := r.gangWithName(ctx, clique, base)
		if err != nil {
			return nil, gang.Membership{}, err
		}
		m.BaseScheduled = baseGang != nil && gang.WasScheduled(baseGang)
	}
	return podGang, m, nil
}

func (r *Reconciler) gangWithName(ctx context.Context, clique *grovev1alpha1.PodClique, name string) (*schedulerv1alpha1.PodGang, error) {
	if name == "" {
		return nil, nil
	}
	podGang := &schedulerv1alpha1.PodGang{}
	if err := r.Client.Get(ctx, types.NamespacedName{Namespace: clique.Namespace, Name: name}, podGang); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if podGang.DeletionTimestamp != nil {
		return nil, nil
	}
	return podGang, nil
}

// isForAttempt says that a gang names the clique's pods as they are now: the gang
// follows the clique's attempt, and the scheduler's group follows the gang's.
func isForAttempt(podGang *schedulerv1alpha1.PodGang, clique *grovev1alpha1.PodClique) bool {
	want := naming.Pod(clique.Name, clique.UID, 0, clique.Spec.Attempt)
	for _, group := range podGang.Spec.PodGroups {
		if group.Name != clique.Name {
			continue
		}
		return len(group.PodReferences) > 0 && group.PodReferences[0].Name == want
	}
	return false
}

// record writes the status when there is something to tell: decisions and transitions
// at once, mere counts at most once a second. It returns how long the counts wait.
func (r *Reconciler) record(ctx context.Context, o *observation, decision gang.CliqueDecision, now time.Time) (time.Duration, error) {
	if !decision.Changed {
		return 0, nil
	}
	clique := o.snapshot.Clique
	if wait := r.Pace.Wait(clique.UID, clique.Spec.Replicas, now); wait > 0 && !decision.Urgent && !decision.Record {
		return wait, nil
	}
	updated := clique.DeepCopy()
	updated.Status = decision.Status
	if err := r.Client.Status().Update(ctx, updated); err != nil {
		return 0, fmt.Errorf("write the status: %w", err)
	}
	r.Pace.Wrote(clique.UID, now)
	// The status that was written is what later writes of this pass build on.
	clique.ResourceVersion = updated.ResourceVersion
	clique.Status = updated.Status
	// Events follow the write that they report.
	r.announce(o, decision.Events...)
	return 0, nil
}

// announce records events. Who looks at the set sees them as well.
func (r *Reconciler) announce(o *observation, events ...gang.Event) {
	clique := o.snapshot.Clique
	for _, e := range events {
		r.Metrics.Decision(e.Reason)
		r.Recorder.Eventf(clique, nil, e.Type, e.Reason, e.Reason, "%s", e.Message)
		if o.set != nil {
			r.Recorder.Eventf(o.set, clique, e.Type, e.Reason, e.Reason, "%s", e.Message)
		}
	}
}

// apply makes and deletes pods, after one look at the set as it is.
func (r *Reconciler) apply(ctx context.Context, o *observation, decision gang.CliqueDecision) error {
	if len(decision.Create)+len(decision.Delete)+len(decision.ForceDelete) == 0 {
		return nil
	}
	clique := o.snapshot.Clique
	if o.set != nil {
		current, err := live.Set(ctx, r.Live, client.ObjectKeyFromObject(o.set), o.set.UID)
		if err != nil {
			return err
		}
		if current == nil || gang.ParentOf(current) != o.snapshot.Parent || attemptOf(current, clique) != attemptOf(o.set, clique) {
			log.FromContext(ctx).V(1).Info("The cached set is out of date", "set", o.set.Name)
			return nil
		}
		if o.snapshot.Turn.Due && (current.Generation != o.set.Generation || !gang.SameTurns(current, o.set)) {
			// What is replaced now might be of a template that nobody wants any more.
			log.FromContext(ctx).V(1).Info("The update that the cache shows is out of date", "set", o.set.Name)
			return nil
		}
	}
	if takesHealthy(clique, decision.Delete) {
		current, err := live.IsCurrent(ctx, r.Live, clique)
		if err != nil {
			return err
		}
		if !current {
			log.FromContext(ctx).V(1).Info("The cached clique is out of date", "clique", clique.Name)
			return nil
		}
	}
	remove, seen := decision.Delete, replaced(o.snapshot, decision.Delete)
	if clique.DeletionTimestamp != nil || o.snapshot.Parent != gang.ParentActive {
		var err error
		if remove, seen, err = r.asCached(ctx, clique, remove); err != nil {
			return err
		}
	}
	errs := []error{r.deleteAndTell(ctx, o, remove, seen), r.forceDelete(ctx, o, decision.ForceDelete)}
	if len(decision.Create) > 0 {
		ok, err := r.isInRecordedAttempt(ctx, o)
		if ok {
			ok, err = r.mayBeginAttempt(ctx, o)
		}
		errs = append(errs, err)
		if ok {
			errs = append(errs, r.createPods(ctx, o, decision.Create))
		}
	}
	return errors.Join(errs...)
}

// takesHealthy says that pods go only because the clique is smaller than it was: two caches
// show sizes and pods, and nothing else holds such a pod.
func takesHealthy(clique *grovev1alpha1.PodClique, remove []gang.Pod) bool {
	return clique.DeletionTimestamp == nil && slices.ContainsFunc(remove, func(pod gang.Pod) bool {
		return !pod.Stray && pod.Attempt == clique.Spec.Attempt && pod.Index >= clique.Spec.Replicas
	})
}

// replaced are the versions of pods that make room for those of a new template: one that has
// become Ready since it was seen is not taken for one that is not.
func replaced(s gang.CliqueSnapshot, pods []gang.Pod) map[types.UID]string {
	seen := map[types.UID]string{}
	for _, pod := range pods {
		if s.Turn.Due && !pod.Stray && pod.Attempt == s.Clique.Spec.Attempt && pod.TemplateHash != gang.PodTemplateHash(s.Clique) {
			seen[pod.UID] = pod.Version
		}
	}
	return seen
}

// attemptOf is the attempt of the set's replica that a clique belongs to.
func attemptOf(pcs *grovev1alpha1.PodCliqueSet, clique *grovev1alpha1.PodClique) int32 {
	replica, _ := labels.ParseIndex(clique.Labels[labels.ReplicaIndex])
	return gang.ReplicaAttempt(pcs, replica)
}

// asCached keeps the pods that a live list shows as the cache does: one that the garbage
// collector has orphaned at the user's wish stays, and so does one that has ended since,
// because finished pods stay readable (D12). A pod that may end by itself before it is
// deleted is to be deleted only as it was seen: seen has its resourceVersion.
func (r *Reconciler) asCached(ctx context.Context, clique *grovev1alpha1.PodClique, pods []gang.Pod) (same []gang.Pod, seen map[types.UID]string, err error) {
	if len(pods) == 0 {
		return nil, nil, nil
	}
	current, err := live.CliquePods(ctx, r.Live, clique)
	if err != nil {
		return nil, nil, err
	}
	seen = map[types.UID]string{}
	for _, pod := range pods {
		i := slices.IndexFunc(current, func(c corev1.Pod) bool { return c.UID == pod.UID })
		if i < 0 && pod.Stray {
			// The list goes by a label, which may be what it lacks.
			stray, err := live.CliquePod(ctx, r.Live, clique, pod.Name, pod.UID)
			if err != nil {
				return nil, nil, err
			}
			if stray != nil {
				i, current = len(current), append(current, *stray)
			}
		}
		if i < 0 {
			continue
		}
		if clique.DeletionTimestamp == nil {
			if ended := current[i].Status.Phase == corev1.PodSucceeded || current[i].Status.Phase == corev1.PodFailed; ended != pod.Ended() {
				continue
			}
			seen[pod.UID] = current[i].ResourceVersion
		}
		same = append(same, pod)
	}
	return same, seen, nil
}

func isOrphaning(clique *grovev1alpha1.PodClique) bool {
	return clique.DeletionTimestamp != nil && slices.Contains(clique.Finalizers, metav1.FinalizerOrphanDependents)
}

// finalize lets a deleted clique go once a live list shows no pod of it. What the list shows
// and the cache does not goes as well: it may have lost the label by which the cache knows pods.
// One that is orphaned meanwhile is not as it was seen any more.
func (r *Reconciler) finalize(ctx context.Context, clique *grovev1alpha1.PodClique) error {
	pods, err := live.CliquePods(ctx, r.Live, clique)
	if err != nil {
		return err
	}
	if len(pods) > 0 {
		if err := r.deleteSeen(ctx, clique, pods); err != nil {
			return err
		}
		return fmt.Errorf("%d pods of the deleted clique %s are not in the cache yet", len(pods), clique.Name)
	}
	r.Pace.Forget(clique.UID)
	return r.release(ctx, clique)
}

// release takes our finalizer off.
func (r *Reconciler) release(ctx context.Context, clique *grovev1alpha1.PodClique) error {
	if !controllerutil.ContainsFinalizer(clique, labels.PodCliqueFinalizer) {
		return nil
	}
	patch := client.MergeFromWithOptions(clique.DeepCopy(), client.MergeFromWithOptimisticLock{})
	controllerutil.RemoveFinalizer(clique, labels.PodCliqueFinalizer)
	if err := r.Client.Patch(ctx, clique, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer: %w", err)
	}
	return nil
}
