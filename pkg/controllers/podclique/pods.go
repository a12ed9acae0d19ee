package podclique

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/internal/index"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/podspec"
)

// parallelWrites bounds how many pods of one clique are made or deleted at once.
const parallelWrites = 32

// createPods makes the pods of indexes, in parallel. What goes wrong with one does not
// keep the others; it is told in the clique's conditions.
func (r *Reconciler) createPods(ctx context.Context, o *observation, indexes []int32) error {
	if len(indexes) == 0 {
		return nil
	}
	clique := o.snapshot.Clique
	taken, err := r.takenBy(ctx, clique)
	if err != nil {
		return err
	}
	podContext := podspec.ContextOf(o.set, clique, r.ClusterDomain)
	podContext.Waiter = r.Waiter
	need := membersOf(clique)
	// One place per index: what is told first does not depend on who was fastest.
	outcomes := make([]error, len(indexes))
	group := errgroup.Group{}
	group.SetLimit(parallelWrites)
	for i, podIndex := range indexes {
		if other, ok := taken[podIndex]; ok {
			outcomes[i] = fmt.Errorf("%s: %w", other, errNamesakesPod)
			continue
		}
		group.Go(func() error {
			pod := podspec.Render(clique, podIndex, podContext)
			if backend := r.Backends.For(pod.Spec.SchedulerName); podIndex < need {
				backend.PreparePod(pod, o.podGang)
			} else {
				backend.PrepareSurplus(pod, o.podGang)
			}
			outcomes[i] = r.createPod(ctx, clique, pod)
			return nil
		})
	}
	_ = group.Wait()
	return r.tell(ctx, clique, outcomes)
}

// takenBy are the pods of other PodCliques that had the clique's name, by index. Such a
// clique has gone without its pods when it is lost in etcd (D25): its pods may be all that
// is left of the work, and have the host names that the clique's own would have. They are
// neither deleted nor is a pod made beside them.
func (r *Reconciler) takenBy(ctx context.Context, clique *grovev1alpha1.PodClique) (map[int32]string, error) {
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, index.OfCliqueNamed(clique.Namespace, clique.Name)...); err != nil {
		return nil, fmt.Errorf("list the pods of namesakes: %w", err)
	}
	var taken map[int32]string
	for i := range pods.Items {
		pod := &pods.Items[i]
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		podIndex, ok := labels.ParseIndex(pod.Labels[labels.PodIndex])
		if metav1.IsControlledBy(pod, clique) || ended || !ok {
			continue
		}
		if taken == nil {
			taken = map[int32]string{}
		}
		taken[podIndex] = pod.Name
	}
	return taken, nil
}

// membersOf is how many pods of a clique are in its gang: those below its minimum (D23).
func membersOf(clique *grovev1alpha1.PodClique) int32 {
	if clique.Spec.MinAvailable == nil {
		return clique.Spec.Replicas
	}
	return min(*clique.Spec.MinAvailable, clique.Spec.Replicas)
}

var (
	// errForeignPod says that a pod of another owner has the name.
	errForeignPod = errors.New("a pod of another owner has the name")
	// errStrayPod says that a pod of the clique itself is not as it was made.
	errStrayPod = errors.New("the labels by which the pod is known were changed, by somebody, or by a policy or webhook as it was made: it is deleted")
	// errNamesakesPod says that a pod of an earlier clique of the same name has the index.
	errNamesakesPod = errors.New("a pod of another PodClique of this name, which is lost, has the index")
)

// createPod makes one pod. One that exists is a success only if it is the clique's own
// and not on its way out; its name says that it is the same index and attempt.
func (r *Reconciler) createPod(ctx context.Context, clique *grovev1alpha1.PodClique, pod *corev1.Pod) error {
	name := pod.Name
	err := r.Client.Create(ctx, pod)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		// The clique goes as well: its own deletion is on the way.
		return nil
	}
	if err == nil && gang.IsStray(clique, pod) {
		return r.deleteStray(ctx, clique, pod)
	}
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	existing := &corev1.Pod{}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: clique.Namespace, Name: name}, existing); err != nil {
		// Gone again: its delete event brings another pass.
		return client.IgnoreNotFound(err)
	}
	if !metav1.IsControlledBy(existing, clique) {
		return fmt.Errorf("%s: %w", name, errForeignPod)
	}
	if gang.IsStray(clique, existing) {
		// The cache need not know it: its end may bring no other pass than the next trial.
		return r.deleteStray(ctx, clique, existing)
	}
	return nil
}

// tell puts failures to make pods into the clique's conditions and events, and returns
// them so that the clique is tried again with back-off.
func (r *Reconciler) tell(ctx context.Context, clique *grovev1alpha1.PodClique, outcomes []error) error {
	var failed, foreign []error
	for _, err := range outcomes {
		switch {
		case err == nil:
		case errors.Is(err, errForeignPod), errors.Is(err, errNamesakesPod):
			foreign = append(foreign, err)
		default:
			failed = append(failed, err)
		}
	}
	all := errors.Join(errors.Join(failed...), errors.Join(foreign...))
	if all == nil {
		return nil
	}
	updated := clique.DeepCopy()
	var news []metav1.Condition
	for _, problem := range []metav1.Condition{
		{Type: grovev1alpha1.ConditionTypePodCreationFailed, Reason: reasonOf(failed), Message: summaryOf(failed)},
		{Type: grovev1alpha1.ConditionTypeNameConflict, Reason: grovev1alpha1.ReasonForeignPod, Message: summaryOf(foreign)},
	} {
		problem.Status = metav1.ConditionTrue
		problem.ObservedGeneration = clique.Generation
		problem.LastTransitionTime = metav1.NewTime(r.Clock.Now())
		if problem.Message != "" && meta.SetStatusCondition(&updated.Status.Conditions, problem) {
			news = append(news, problem)
		}
	}
	if len(news) > 0 {
		if err := r.Client.Status().Update(ctx, updated); err != nil {
			return errors.Join(all, fmt.Errorf("write the status: %w", err))
		}
	}
	for _, problem := range news {
		r.Recorder.Eventf(clique, nil, corev1.EventTypeWarning, problem.Reason, "CreatePod", "%s", problem.Message)
	}
	return fmt.Errorf("create pods of %s: %w", clique.Name, all)
}

// summaryOf tells the first of several errors; empty when there is none.
func summaryOf(errs []error) string {
	switch len(errs) {
	case 0:
		return ""
	case 1:
		return errs[0].Error()
	}
	return fmt.Sprintf("%s (and the same or like it for %d others)", errs[0], len(errs)-1)
}

// reasonOf names the first failure by the API server's own reason.
func reasonOf(errs []error) string {
	if len(errs) == 0 {
		return ""
	}
	if reason := apierrors.ReasonForError(errs[0]); reason != metav1.StatusReasonUnknown {
		return string(reason)
	}
	return "CreateFailed"
}

// deletePods deletes pods by UID, in parallel: a pod that took the name of another is
// never hit. One of which seen has a resourceVersion is deleted only as it was seen.
func (r *Reconciler) deletePods(ctx context.Context, clique *grovev1alpha1.PodClique, pods []gang.Pod, seen map[types.UID]string, options ...client.DeleteOption) error {
	group := errgroup.Group{}
	group.SetLimit(parallelWrites)
	for _, pod := range pods {
		group.Go(func() error {
			obj := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: clique.Namespace, Name: pod.Name}}
			same := client.Preconditions{UID: &pod.UID}
			if version, isSeen := seen[pod.UID]; isSeen {
				same.ResourceVersion = &version
			}
			err := r.Client.Delete(ctx, obj, append([]client.DeleteOption{same}, options...)...)
			// Another UID under the name is a conflict: the pod that was meant is gone. One that
			// has changed is too: its event brings another pass.
			if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
				return fmt.Errorf("delete pod %s: %w", pod.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// deleteSeen deletes pods of a live list, each only as it was seen.
func (r *Reconciler) deleteSeen(ctx context.Context, clique *grovev1alpha1.PodClique, all []corev1.Pod) error {
	var pods []gang.Pod
	seen := map[types.UID]string{}
	for _, pod := range gang.NewPods(clique, all) {
		if !pod.Terminating() {
			pods = append(pods, pod)
			seen[pod.UID] = pod.Version
		}
	}
	return r.deletePods(ctx, clique, pods, seen)
}

// deleteStray deletes a stray that is in the way, and fails: the back-off is what brings the
// next pass.
func (r *Reconciler) deleteStray(ctx context.Context, clique *grovev1alpha1.PodClique, pod *corev1.Pod) error {
	return errors.Join(fmt.Errorf("%s: %w", pod.Name, errStrayPod), r.deleteSeen(ctx, clique, []corev1.Pod{*pod}))
}

// deleteAndTell deletes pods, and tells of those that are none of the clique's: people may
// wonder where they are.
func (r *Reconciler) deleteAndTell(ctx context.Context, o *observation, pods []gang.Pod, seen map[types.UID]string) error {
	if err := r.deletePods(ctx, o.snapshot.Clique, pods, seen); err != nil {
		return err
	}
	for _, pod := range pods {
		if pod.Stray && o.snapshot.Clique.DeletionTimestamp == nil {
			r.announce(o, gang.StrayDeletion(pod))
		}
	}
	return nil
}

// forceDelete removes pods whose end no kubelet will confirm.
func (r *Reconciler) forceDelete(ctx context.Context, o *observation, pods []gang.Pod) error {
	if err := r.deletePods(ctx, o.snapshot.Clique, pods, nil, client.GracePeriodSeconds(0)); err != nil {
		return err
	}
	for _, pod := range pods {
		r.announce(o, gang.ForceDeletion(o.snapshot, pod))
	}
	return nil
}
