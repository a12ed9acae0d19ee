package conformance

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
)

func life(s *subject) {
	created := s.create("life", map[string]string{"a": "1"})
	if created.GetUID() == "" || created.GetResourceVersion() == "" || created.GetCreationTimestamp().Unix() <= 0 {
		s.t.Errorf("created without metadata: %v", created.Object["metadata"])
	}
	if created.GetAPIVersion() != s.resource.GroupVersion().String() || created.GetKind() != s.name {
		s.t.Errorf("type %s %s", created.GetAPIVersion(), created.GetKind())
	}
	_, err := s.client.Create(s.t.Context(), s.object("life", nil), metav1.CreateOptions{})
	s.refused("a second one of the name", metav1.StatusReasonAlreadyExists, err)

	// A controller may write in between.
	var updated *unstructured.Unstructured
	s.accepted("update", retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		changed := s.get("life")
		changed.SetLabels(map[string]string{"a": "2"})
		updated, err = s.client.Update(s.t.Context(), changed, metav1.UpdateOptions{})
		return err
	}))
	if updated.GetLabels()["a"] != "2" || updated.GetUID() != created.GetUID() || updated.GetResourceVersion() == created.GetResourceVersion() {
		s.t.Errorf("updated to %v", updated.Object["metadata"])
	}
	s.accepted("update to the same", retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		current := s.get("life")
		again, err := s.client.Update(s.t.Context(), current, metav1.UpdateOptions{})
		if err == nil && again.GetResourceVersion() != current.GetResourceVersion() {
			s.t.Error("an update to the same writes")
		}
		return err
	}))
	s.accepted("delete", s.client.Delete(s.t.Context(), "life", metav1.DeleteOptions{}))
	s.gone("life")
	_, err = s.client.Update(s.t.Context(), updated, metav1.UpdateOptions{})
	s.refused("an update of what is gone", metav1.StatusReasonNotFound, err)
	s.refused("a deletion of what is gone", metav1.StatusReasonNotFound, s.client.Delete(s.t.Context(), "life", metav1.DeleteOptions{}))
}

func generateName(s *subject) {
	obj := s.object("", nil)
	obj.SetName("")
	obj.SetGenerateName("gen-")
	created, err := s.client.Create(s.t.Context(), obj, metav1.CreateOptions{})
	s.accepted("create", err)
	s.removeLater(created.GetName())
	if name := created.GetName(); !strings.HasPrefix(name, "gen-") || len(name) <= len("gen-") {
		s.t.Errorf("name %q", name)
	}
}

func sentWrongly(s *subject) {
	for what, change := range map[string]func(*unstructured.Unstructured){
		"a name that is none":  func(o *unstructured.Unstructured) { o.SetName("Not a name") },
		"no name":              func(o *unstructured.Unstructured) { o.SetName("") },
		"a label that is none": func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"a b": "c"}) },
	} {
		obj := s.object("wrong", nil)
		change(obj)
		_, err := s.client.Create(s.t.Context(), obj, metav1.CreateOptions{})
		s.refused(what, metav1.StatusReasonInvalid, err)
	}
	obj := s.object("wrong", nil)
	obj.SetResourceVersion("1")
	_, err := s.client.Create(s.t.Context(), obj, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "resourceVersion should not be set") {
		s.t.Errorf("a resource version at creation: %v", err)
	}
	if s.clustered {
		return
	}
	obj = s.object("wrong", nil)
	obj.SetNamespace("elsewhere")
	_, err = s.client.Create(s.t.Context(), obj, metav1.CreateOptions{})
	s.refused("another namespace than that of the path", metav1.StatusReasonBadRequest, err)
}

func generation(s *subject) {
	created := s.create("gen", nil)
	if !s.hasSpec {
		return
	}
	labelled, err := s.client.Patch(s.t.Context(), "gen", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"},"annotations":{"a":"b"}}}`), metav1.PatchOptions{})
	s.accepted("label", err)
	changed, err := s.client.Patch(s.t.Context(), "gen", types.MergePatchType, s.patchOf(), metav1.PatchOptions{})
	s.accepted("change", err)
	if created.GetGeneration() != 1 || labelled.GetGeneration() != 1 || changed.GetGeneration() != 2 {
		s.t.Errorf("generation %d at creation, %d with a label, %d with another spec", created.GetGeneration(), labelled.GetGeneration(), changed.GetGeneration())
	}
}

// isolation: the object's endpoint leaves the status, and the status' endpoint all else.
func isolation(s *subject) {
	obj := s.object("parts", nil)
	const sent = int64(77)
	obj.Object["status"] = map[string]any{"observedGeneration": sent}
	created, err := s.client.Create(s.t.Context(), obj, metav1.CreateOptions{FieldValidation: metav1.FieldValidationIgnore})
	s.accepted("create with a status", err)
	s.removeLater("parts")
	if got, _, _ := unstructured.NestedInt64(created.Object, "status", "observedGeneration"); got == sent {
		s.t.Errorf("the status was taken over: %v", created.Object["status"])
	}
	if !s.hasSpec {
		return
	}
	// A controller may write in between.
	s.accepted("update the status", retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		other := s.change(s.get("parts"))
		other.SetLabels(map[string]string{"a": "b"})
		_, err := s.client.UpdateStatus(s.t.Context(), other, metav1.UpdateOptions{})
		return err
	}))
	after := s.get("parts")
	value, _, _ := unstructured.NestedFieldNoCopy(after.Object, s.path...)
	want, _, _ := unstructured.NestedFieldNoCopy(created.Object, s.path...)
	if text(value) != text(want) || after.GetGeneration() != created.GetGeneration() || after.GetLabels()["a"] != "" {
		s.t.Errorf("the status' endpoint changes the spec to %v, or the labels to %v", value, after.GetLabels())
	}
	_, err = s.client.Get(s.t.Context(), "parts", metav1.GetOptions{}, "status")
	s.accepted("get the status", err)
	_, err = s.client.Get(s.t.Context(), "parts", metav1.GetOptions{}, "nothing")
	s.refused("an endpoint that there is not", metav1.StatusReasonNotFound, err)
}

func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func preconditions(s *subject) {
	created := s.create("pre", nil)
	stale := created.DeepCopy()
	_, err := s.client.Patch(s.t.Context(), "pre", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	s.accepted("label", err)
	stale.SetLabels(map[string]string{"c": "d"})
	_, err = s.client.Update(s.t.Context(), stale, metav1.UpdateOptions{})
	s.refused("an update of an old version", metav1.StatusReasonConflict, err)
	_, err = s.client.Patch(s.t.Context(), "pre", types.MergePatchType, []byte(`{"metadata":{"resourceVersion":"`+created.GetResourceVersion()+`","labels":{"e":"f"}}}`), metav1.PatchOptions{})
	s.refused("a patch of an old version", metav1.StatusReasonConflict, err)
	err = s.client.Delete(s.t.Context(), "pre", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(types.UID("another"))}})
	s.refused("a deletion of another UID", metav1.StatusReasonConflict, err)
	err = s.client.Delete(s.t.Context(), "pre", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: ptr.To(created.GetResourceVersion())}})
	s.refused("a deletion of an old version", metav1.StatusReasonConflict, err)
	s.accepted("a deletion of what there is", s.client.Delete(s.t.Context(), "pre", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(created.GetUID())}}))
}

func dryRun(s *subject) {
	all := []string{metav1.DryRunAll}
	_, err := s.client.Create(s.t.Context(), s.object("dry", nil), metav1.CreateOptions{DryRun: all})
	s.accepted("create", err)
	_, err = s.client.Get(s.t.Context(), "dry", metav1.GetOptions{})
	s.refused("what was never made", metav1.StatusReasonNotFound, err)
	s.create("dry", nil)
	before := s.get("dry")
	patched, err := s.client.Patch(s.t.Context(), "dry", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{DryRun: all})
	s.accepted("patch", err)
	if patched.GetLabels()["a"] != "b" {
		s.t.Error("a dry run does not show what would be")
	}
	s.accepted("delete", s.client.Delete(s.t.Context(), "dry", metav1.DeleteOptions{DryRun: all}))
	if after := s.get("dry"); after.GetDeletionTimestamp() != nil || after.GetLabels()["a"] != before.GetLabels()["a"] {
		s.t.Errorf("a dry run left %v", after.Object["metadata"])
	}
	_, err = s.client.Create(s.t.Context(), s.object("other", nil), metav1.CreateOptions{DryRun: []string{"Some"}})
	s.refused("a dry run that is none", metav1.StatusReasonInvalid, err)
}

func fieldValidation(s *subject) {
	obj := s.object("fields", nil)
	obj.Object["nonsense"] = "x"
	_, err := s.client.Create(s.t.Context(), obj, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	s.refused("an unknown field", metav1.StatusReasonBadRequest, err)
	if err != nil && !strings.Contains(err.Error(), `unknown field "nonsense"`) {
		s.t.Errorf("the field is not named: %v", err)
	}
	created, err := s.client.Create(s.t.Context(), obj, metav1.CreateOptions{FieldValidation: metav1.FieldValidationIgnore})
	s.accepted("an unknown field that is ignored", err)
	s.removeLater("fields")
	if _, kept := created.Object["nonsense"]; kept {
		s.t.Error("an unknown field is kept")
	}
}

func patches(s *subject) {
	s.create("patch", map[string]string{"a": "1"})
	for patchType, patch := range map[types.PatchType]string{
		types.JSONPatchType:           `[{"op":"test","path":"/metadata/labels/a","value":"1"},{"op":"add","path":"/metadata/labels/json","value":"x"}]`,
		types.MergePatchType:          `{"metadata":{"labels":{"merge":"x"}}}`,
		types.StrategicMergePatchType: `{"metadata":{"labels":{"strategic":"x"}}}`,
	} {
		_, err := s.client.Patch(s.t.Context(), "patch", patchType, []byte(patch), metav1.PatchOptions{})
		s.accepted(string(patchType), err)
	}
	labels := s.get("patch").GetLabels()
	if labels["json"] != "x" || labels["merge"] != "x" || labels["strategic"] != "x" || labels["a"] != "1" {
		s.t.Errorf("labels %v", labels)
	}
	_, err := s.client.Patch(s.t.Context(), "patch", types.JSONPatchType, []byte(`[{"op":"test","path":"/metadata/labels/a","value":"2"}]`), metav1.PatchOptions{})
	s.refused("a test that fails", metav1.StatusReasonInvalid, err)
	_, err = s.client.Patch(s.t.Context(), "patch", types.MergePatchType, []byte(`{`), metav1.PatchOptions{})
	s.refused("a patch that is none", metav1.StatusReasonBadRequest, err)
	_, err = s.client.Patch(s.t.Context(), "patch", "application/nonsense", []byte(`{}`), metav1.PatchOptions{})
	s.refused("a type that is none", metav1.StatusReasonUnsupportedMediaType, err)
	_, err = s.client.Patch(s.t.Context(), "nobody", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
	s.refused("a patch of nothing", metav1.StatusReasonNotFound, err)
	_, err = s.client.Patch(s.t.Context(), "patch", types.MergePatchType, []byte(`{"metadata":{"uid":"another"}}`), metav1.PatchOptions{})
	s.refused("another UID", metav1.StatusReasonInvalid, err)
}
