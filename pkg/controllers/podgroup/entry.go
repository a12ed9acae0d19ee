package podgroup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/copse-dev/copse/pkg/controllers/internal/pace"
	"github.com/copse-dev/copse/pkg/controllers/podgroup/pods"
	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/owners"
)

// entry looks at the pods that name no group: KAI's are put into theirs, and those of
// Kubernetes' own scheduler, which takes none later, are remembered.
type entry struct {
	*Reconciler
}

// PodKey is a pod as the entry looks at it. One by its name later is another.
type PodKey struct {
	types.NamespacedName
	UID types.UID
}

// errNoKAI says that a pod is KAI's, and the cluster has no KAI yet.
var errNoKAI = errors.New("the API of KAI is not served")

// Reconcile looks at one pod.
func (r *entry) Reconcile(ctx context.Context, key PodKey) (reconcile.Result, error) {
	pod := &corev1.Pod{}
	err := r.Pods.Get(ctx, key.NamespacedName, pod)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("read the pod: %w", err)
	}
	if err != nil || pod.UID != key.UID || !pods.IsLoose(pod) {
		r.queue.add(r.loose.forget(key.UID)...)
		return reconcile.Result{}, nil
	}
	group, subGroup, err := r.groupOf(ctx, pod)
	if pods.HasEnded(pod) && (errors.Is(err, errNoKAI) || owners.IsMissing(err) || r.backEndOf(pod) == podgrouper.KAI) {
		// It is put into no group any more, and nobody waits for it.
		r.place(pod, "")
		return reconcile.Result{}, nil
	}
	if errors.Is(err, errNoKAI) {
		r.place(pod, "")
		wait := pace.Until(r.kai.again(), r.Clock.Now())
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if err != nil {
		// It holds up no others.
		r.place(pod, "")
		return reconcile.Result{}, err
	}
	if group != "" && r.backEndOf(pod) == podgrouper.KAI {
		r.place(pod, "")
		return reconcile.Result{}, r.mark(ctx, pod, group, subGroup)
	}
	r.place(pod, group)
	return reconcile.Result{}, nil
}

// place remembers the group of a pod, and has it looked at, and those that the pod was in or
// was not known for.
func (r *entry) place(pod *corev1.Pod, name string) {
	group := types.NamespacedName{Namespace: pod.Namespace, Name: name}
	r.queue.add(r.loose.put(pod.UID, group)...)
	r.queue.add(group)
}

// groupOf is the group that a pod would be in; empty when it is in none.
func (r *entry) groupOf(ctx context.Context, pod *corev1.Pod) (group, subGroup string, err error) {
	enabled, err := r.isEnabled(ctx, pod.Namespace)
	if err != nil || !enabled {
		return "", "", err
	}
	grouper := r.Grouping.Current()
	// Most pods that are in no group need no look at their owners for that.
	id, err := grouper.Identify(pod, owners.Chain{})
	if err != nil || !id.Needed() {
		r.count(id)
		return "", "", err
	}
	if r.backEndOf(pod) == podgrouper.KAI && !r.kai.isServed() {
		return "", "", errNoKAI
	}
	chain, err := r.Grouping.Resolver().Find(ctx, pod)
	if err != nil {
		if !pods.HasEnded(pod) {
			r.tellMissing(pod, err)
		}
		return "", "", fmt.Errorf("find the owners of the pod: %w", err)
	}
	if id, err = grouper.Identify(pod, chain); err != nil || !id.Needed() {
		r.count(id)
		return "", "", err
	}
	return id.Name, id.SubGroup, nil
}

func (r *entry) count(id podgrouper.Identity) {
	if id.Exempt != "" {
		r.Metrics.PodNotGrouped(string(id.Exempt))
	}
}

// isEnabled says whether the pods of a namespace are grouped.
func (r *entry) isEnabled(ctx context.Context, name string) (bool, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := r.Pods.Get(ctx, types.NamespacedName{Name: name}, namespace); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return namespace.Labels[podgrouper.NamespaceLabel] == podgrouper.NamespaceEnabled, nil
}

// mark puts a pod into its group, and tells KAI's own grouper that it is in one.
func (r *entry) mark(ctx context.Context, pod *corev1.Pod, group, subGroup string) error {
	metadata := map[string]any{
		"uid": pod.UID,
		"annotations": map[string]string{
			podgrouper.PodGroupAnnotation: group, podgrouper.GroupedByAnnotation: podgrouper.GroupedByValue, podgrouper.KAISkipAnnotation: "true",
		},
	}
	if subGroup != "" {
		metadata["labels"] = map[string]string{podgrouper.SubGroupLabel: subGroup}
	}
	text, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return fmt.Errorf("write the mark of the pod as JSON: %w", err)
	}
	target := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	err = r.Writer.Patch(ctx, target, client.RawPatch(types.MergePatchType, text))
	// One that took its name is not touched.
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("put the pod into its group: %w", err)
	}
	return nil
}
