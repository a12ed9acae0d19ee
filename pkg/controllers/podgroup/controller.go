// Package podgroup makes the groups of pods of any workload, and tells what becomes of
// them. What a group is like is decided by pkg/podgrouper, and its status by package status.
// A group is known by its namespace and name, which its pods have in an annotation.
package podgroup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/internal/pace"
	"github.com/copse-dev/copse/pkg/controllers/podgroup/pods"
	"github.com/copse-dev/copse/pkg/controllers/podgroup/status"
	"github.com/copse-dev/copse/pkg/metrics"
	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/owners"
)

// Grouping knows how pods are grouped.
type Grouping interface {
	// Current is the grouper as it is configured now.
	Current() *podgrouper.Grouper
	// Resolver finds the owners of pods.
	Resolver() *owners.Resolver
}

// Reconciler keeps the groups of pods.
type Reconciler struct {
	// Client reads PodGroups from the cache, and writes.
	Client client.Client
	// Writer writes what Client does not have in its cache, whose reads would wait for it.
	Writer client.Client
	// Pods reads all pods from a cache, and Live reads past it.
	Pods, Live client.Reader
	Grouping   Grouping
	Recorder   events.EventRecorder
	Clock      clock.Clock
	Pace       *pace.Pace
	Metrics    *metrics.Metrics
	// NativeGangs says that Kubernetes' own scheduler takes groups.
	NativeGangs bool

	kai    *kai
	owners *ownerWatches
	reader *ownerReader
	loose  *loosePods
	stray  *strayPods
	queue  *groupQueue
	notes  *noted
}

// state is a group as a pass finds it.
type state struct {
	key     types.NamespacedName
	members []*corev1.Pod
	// loose are those of them that do not name the group, and belong to it.
	loose sets.Set[types.UID]
	// complete says that all members are known.
	complete bool
	backEnd  podgrouper.BackEnd
	// group is nil when there is no PodGroup.
	group *schedulerv1alpha1.PodGroup
	// described is what the pod grouper says about it; nil when it says nothing.
	described *podgrouper.Group
	// stray says that its pods would be in another group now, so that no more of them come.
	stray bool
	// invalid is what is wrong with the workload's fields.
	invalid error
	// again is when to look once more though nothing happens; zero for never.
	again time.Time
}

// Reconcile brings one group in line with its pods and their owner.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	s := &state{key: req.NamespacedName, loose: sets.New[types.UID]()}
	if err := r.readMembers(ctx, s); err != nil {
		return reconcile.Result{}, err
	}
	defer func() { r.queue.add(r.stray.look(s.key, len(s.members) > 0)...) }()
	store, err := r.storeFor(ctx, s)
	if err != nil {
		return reconcile.Result{}, err
	}
	if store == nil {
		// KAI's pods, and no KAI yet.
		wait := pace.Until(r.kai.again(), r.Clock.Now())
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	group, err := store.get(ctx, s.key)
	if err != nil {
		return reconcile.Result{}, err
	}
	if group != nil && group.DeletionTimestamp != nil {
		return reconcile.Result{}, r.tellWithoutGroup(ctx, s)
	}
	s.group = group
	if err := r.follow(ctx, store, s); err != nil {
		return reconcile.Result{}, err
	}
	if s.group == nil {
		return reconcile.Result{}, r.tellWithoutGroup(ctx, s)
	}
	if _, foreign := store.(*kaiStore); foreign {
		// KAI tells what becomes of its own groups.
		return reconcile.Result{}, nil
	}
	return r.schedule(ctx, s)
}

// schedule brings a group to its scheduler, and tells what that makes of it.
func (r *Reconciler) schedule(ctx context.Context, s *state) (reconcile.Result, error) {
	phase := s.group.Status.Phase
	if len(s.members) == 0 && (phase == "" || !s.complete) {
		return reconcile.Result{}, nil
	}
	if len(s.members) == 0 && phase == schedulerv1alpha1.PodGroupFinished {
		// It stays so when its pods are cleared away. Pods that come later are a gang again.
		_, err := r.syncNative(ctx, s)
		return reconcile.Result{}, err
	}
	snapshot := status.Snapshot{
		Group: s.group, Members: s.members, BackEnd: s.backEnd, NativeName: podgrouper.NativeNameOf(s.group), Invalid: s.invalid,
		NodePool: s.group.Labels[podgrouper.NodePoolLabel], FirstPast: s.firstPast(), Strays: r.strays(s),
	}
	var err error
	if s.backEnd == podgrouper.KAI {
		snapshot.Copied, err = r.kai.copyGroup(ctx, s)
	} else {
		snapshot.Native, err = r.syncNative(ctx, s)
	}
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		// Such as a PriorityClass that does not exist. It is told, and tried again.
		snapshot.Refused = err
	} else if err != nil {
		return reconcile.Result{}, err
	}
	if err := r.release(ctx, s); err != nil {
		return reconcile.Result{}, err
	}
	if !s.complete {
		// What is not known yet is about to come, with another pass.
		return reconcile.Result{}, nil
	}
	wait, err := r.writeStatus(ctx, snapshot)
	if again := pace.Until(s.again, r.Clock.Now()); again > 0 && (wait == 0 || again < wait) {
		wait = again
	}
	return reconcile.Result{RequeueAfter: wait}, errors.Join(snapshot.Refused, err)
}

// writeStatus tells what becomes of a group; mere figures no more than once a second. It
// returns how long they have to wait.
func (r *Reconciler) writeStatus(ctx context.Context, snapshot status.Snapshot) (time.Duration, error) {
	now := r.Clock.Now()
	decided, changed, figures := status.Decide(snapshot, now)
	if !changed {
		return 0, nil
	}
	if wait := r.Pace.Wait(snapshot.Group.UID, int32(len(snapshot.Members)), now); figures && wait > 0 {
		return wait, nil
	}
	updated := snapshot.Group.DeepCopy()
	updated.Status = decided
	if err := r.Client.Status().Update(ctx, updated); client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("write the status: %w", err)
	}
	r.Pace.Wrote(snapshot.Group.UID, r.Clock.Now())
	return 0, nil
}

// readMembers reads the pods of a group: those that name it, and those that would.
func (r *Reconciler) readMembers(ctx context.Context, s *state) error {
	list := &corev1.PodList{}
	if err := r.Pods.List(ctx, list, pods.InGroup(s.key.Namespace, s.key.Name)...); err != nil {
		return fmt.Errorf("list the pods of the group: %w", err)
	}
	for i := range list.Items {
		if pod := &list.Items[i]; isMember(pod) {
			s.members = append(s.members, pod)
		}
	}
	s.complete = true
	if r.loose.mayHave(s.key) {
		if err := r.readLoose(ctx, s); err != nil {
			return err
		}
	}
	// The cache has them in no order, and what is said about the first is to stay the same.
	slices.SortFunc(s.members, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	first := oldest(s.members, inSchedulersGroup)
	if first == nil {
		first = oldest(s.members, anyPod)
	}
	if first != nil {
		s.backEnd = r.backEndOf(first)
	}
	return nil
}

// isMember says that a pod that names a group is in it. The annotation alone does not make it
// so: its user may want the pod left alone.
func isMember(pod *corev1.Pod) bool { return pod.Annotations[podgrouper.SkipAnnotation] != "true" }

// readLoose reads the pods that do not name the group and belong to it. Until each pod of
// the namespace has been looked at, there may be more.
func (r *Reconciler) readLoose(ctx context.Context, s *state) error {
	list := &corev1.PodList{}
	if err := r.Pods.List(ctx, list, pods.Loose(s.key.Namespace)...); err != nil {
		return fmt.Errorf("list the pods without a group: %w", err)
	}
	for i := range list.Items {
		// One that is not known is enough to wait for: there is another pass then.
		is, known := r.loose.in(list.Items[i].UID, s.key, s.complete)
		if is {
			s.members = append(s.members, &list.Items[i])
			s.loose.Insert(list.Items[i].UID)
		}
		s.complete = s.complete && known
	}
	if s.complete {
		r.loose.allKnown(s.key.Namespace)
	}
	return nil
}

// backEndOf is what places a pod; empty when that knows no groups.
func (r *Reconciler) backEndOf(pod *corev1.Pod) podgrouper.BackEnd {
	return r.Grouping.Current().BackEnd(pod)
}

// oldest is the pod that was made first, of those that are asked for. It speaks for the
// group.
func oldest(members []*corev1.Pod, is func(*corev1.Pod) bool) *corev1.Pod {
	var first *corev1.Pod
	for _, pod := range members {
		if !is(pod) {
			continue
		}
		if first == nil || pod.CreationTimestamp.Before(&first.CreationTimestamp) ||
			(pod.CreationTimestamp.Equal(&first.CreationTimestamp) && pod.Name < first.Name) {
			first = pod
		}
	}
	return first
}

func anyPod(*corev1.Pod) bool { return true }

// inSchedulersGroup says that a pod is in a group of Kubernetes' own scheduler.
func inSchedulersGroup(pod *corev1.Pod) bool { return pod.Spec.SchedulingGroup != nil }

// isOurs says that it is for the pod grouper to say which group the pod is in, and that the
// pod lives.
func isOurs(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && !pods.HasEnded(pod) && (pods.IsGrouped(pod) || pods.GroupOf(pod) == "")
}
