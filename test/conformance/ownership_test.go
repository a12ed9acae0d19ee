package conformance

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
)

// gone waits until an object does not exist any more.
func (s *subject) gone(name string) {
	s.t.Helper()
	err := wait.PollUntilContextTimeout(s.t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := s.client.Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	if err != nil {
		s.t.Fatalf("%s is still there: %v", name, err)
	}
}

func apply(s *subject) {
	const mine, theirs = "conformance-one", "conformance-two"
	manifest := s.object("apply", map[string]string{"one": "1"})
	created, err := s.client.Apply(s.t.Context(), "apply", manifest, metav1.ApplyOptions{FieldManager: mine})
	s.accepted("apply", err)
	s.removeLater("apply")
	again, err := s.client.Apply(s.t.Context(), "apply", manifest, metav1.ApplyOptions{FieldManager: mine})
	s.accepted("apply again", err)
	if again.GetUID() != created.GetUID() || again.GetGeneration() != created.GetGeneration() {
		s.t.Error("the same manifest changes the object")
	}
	other := s.object("apply", map[string]string{"one": "2", "two": "2"})
	delete(other.Object, "spec")
	_, err = s.client.Apply(s.t.Context(), "apply", other, metav1.ApplyOptions{FieldManager: theirs})
	s.refused("a field of another owner", metav1.StatusReasonConflict, err)
	_, err = s.client.Apply(s.t.Context(), "apply", other, metav1.ApplyOptions{FieldManager: theirs, Force: true})
	s.accepted("taken by force", err)
	if labels := s.get("apply").GetLabels(); labels["one"] != "2" || labels["two"] != "2" {
		s.t.Errorf("labels %v", labels)
	}
	other.SetLabels(map[string]string{"one": "2"})
	_, err = s.client.Apply(s.t.Context(), "apply", other, metav1.ApplyOptions{FieldManager: theirs})
	s.accepted("without a field", err)
	after := s.get("apply")
	if _, kept := after.GetLabels()["two"]; kept {
		s.t.Error("a field that its owner gave up is kept")
	}
	managers := map[string]bool{}
	for _, entry := range after.GetManagedFields() {
		managers[entry.Manager] = true
	}
	if !managers[theirs] || s.hasSpec && !managers[mine] {
		s.t.Errorf("owners %v", managers)
	}
	_, err = s.client.Apply(s.t.Context(), "apply", manifest, metav1.ApplyOptions{})
	s.refused("without an owner's name", metav1.StatusReasonInvalid, err)
}

// finalizers hold an object that is deleted until the last of them is taken off.
func finalizers(s *subject) {
	const ours = "example.com/conformance"
	obj := s.object("held", nil)
	obj.SetFinalizers([]string{ours})
	_, err := s.client.Create(s.t.Context(), obj, metav1.CreateOptions{})
	s.accepted("create", err)
	s.removeLater("held")
	s.accepted("delete", s.client.Delete(s.t.Context(), "held", metav1.DeleteOptions{}))
	held := s.get("held")
	if held.GetDeletionTimestamp() == nil || !slices.Contains(held.GetFinalizers(), ours) {
		s.t.Fatalf("held by %v, deleted at %v", held.GetFinalizers(), held.GetDeletionTimestamp())
	}
	_, err = s.client.Patch(s.t.Context(), "held", types.JSONPatchType, []byte(`[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/late"}]`), metav1.PatchOptions{})
	s.refused("a finalizer on what is deleted", metav1.StatusReasonInvalid, err)
	_, err = s.client.Patch(s.t.Context(), "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		s.t.Errorf("take the finalizers off: %v", err)
	}
	s.gone("held")
}

func propagation(s *subject) {
	for name, policy := range map[string]metav1.DeletionPropagation{
		"background": metav1.DeletePropagationBackground, "foreground": metav1.DeletePropagationForeground, "orphan": metav1.DeletePropagationOrphan,
	} {
		s.create(name, nil)
		s.accepted(name, s.client.Delete(s.t.Context(), name, metav1.DeleteOptions{PropagationPolicy: ptr.To(policy)}))
		s.gone(name)
	}
	s.create("other", nil)
	err := s.client.Delete(s.t.Context(), "other", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletionPropagation("Sideways"))})
	s.refused("a policy that is none", metav1.StatusReasonInvalid, err)
}
