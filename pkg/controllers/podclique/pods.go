package podclique

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
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
	podContext := podspec.ContextOf(o.set, clique, r.ClusterDomain)
	need := membersOf(clique)
	outcomes := newOutcomes()
	group := errgroup.Group{}
	group.SetLimit(parallelWrites)
	for _, index := range indexes {
		group.Go(func() error {
			pod := podspec.Render(clique, index, podContext)
			if r.Backend != nil && index < need {
				r.Backend.PreparePod(pod, o.podGang)
			}
			outcomes.add(r.createPod(ctx, clique, pod))
			return nil
		})
	}
	_ = group.Wait()
	return r.tell(ctx, clique, outcomes)
}

// membersOf is how many pods of a clique are in its gang: those below its minimum (D23).
func membersOf(clique *grovev1alpha1.PodClique) int32 {
	if clique.Spec.MinAvailable == nil {
		return clique.Spec.Replicas
	}
	return min(*clique.Spec.MinAvailable, clique.Spec.Replicas)
}

// errForeignPod says that a pod of another owner has the name.
var errForeignPod = errors.New("a pod of another owner has the name")

// createPod makes one pod. One that exists is a success only if it is the clique's own
// and not on its way out; its name says that it is the same index, attempt and template.
func (r *Reconciler) createPod(ctx context.Context, clique *grovev1alpha1.PodClique, pod *corev1.Pod) error {
	name := pod.Name
	err := r.Client.Create(ctx, pod)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		// The clique goes as well: its own deletion is on the way.
		return nil
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
	return nil
}

// outcomes collects what became of parallel writes.
type outcomes struct {
	mu      sync.Mutex
	failed  []error
	foreign []error
}

func newOutcomes() *outcomes { return &outcomes{} }

func (o *outcomes) add(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case err == nil:
	case errors.Is(err, errForeignPod):
		o.foreign = append(o.foreign, err)
	default:
		o.failed = append(o.failed, err)
	}
}

// tell puts failures to make pods into the clique's conditions and events, and returns
// them so that the clique is tried again with back-off.
func (r *Reconciler) tell(ctx context.Context, clique *grovev1alpha1.PodClique, o *outcomes) error {
	if len(o.failed)+len(o.foreign) == 0 {
		return nil
	}
	updated := clique.DeepCopy()
	changed := false
	set := func(conditionType, reason string, errs []error) {
		if len(errs) == 0 {
			return
		}
		message := errs[0].Error()
		if len(errs) > 1 {
			message = fmt.Sprintf("%s (and %d more pods)", message, len(errs)-1)
		}
		if meta.SetStatusCondition(&updated.Status.Conditions, metav1.Condition{
			Type: conditionType, Status: metav1.ConditionTrue, Reason: reason, Message: message, ObservedGeneration: clique.Generation,
			LastTransitionTime: metav1.NewTime(r.Clock.Now()),
		}) {
			changed = true
			r.Recorder.Eventf(clique, nil, corev1.EventTypeWarning, reason, "CreatePod", "%s", message)
		}
	}
	set(grovev1alpha1.ConditionTypePodCreationFailed, reasonOf(o.failed), o.failed)
	set(grovev1alpha1.ConditionTypeNameConflict, grovev1alpha1.ReasonForeignPod, o.foreign)
	errs := append(append([]error{fmt.Errorf("create pods of %s", clique.Name)}, o.failed...), o.foreign...)
	if changed {
		if err := r.Client.Status().Update(ctx, updated); err != nil {
			errs = append(errs, fmt.Errorf("write the status: %w", err))
		}
	}
	return errors.Join(errs...)
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
// never hit.
func (r *Reconciler) deletePods(ctx context.Context, clique *grovev1alpha1.PodClique, pods []gang.Pod) error {
	group := errgroup.Group{}
	group.SetLimit(parallelWrites)
	for _, pod := range pods {
		group.Go(func() error {
			obj := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: clique.Namespace, Name: pod.Name}}
			err := r.Client.Delete(ctx, obj, client.Preconditions{UID: &pod.UID})
			// Another UID under the name is a conflict: the pod that was meant is gone.
			if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
				return fmt.Errorf("delete pod %s: %w", pod.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}
