package admission

import (
	"encoding/json"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// ask sends a pod as the API server does.
func ask(t *testing.T, s *scene, pod string, change func(*admissionv1.AdmissionRequest)) admission.Response {
	t.Helper()
	request := admissionv1.AdmissionRequest{
		UID: "request", Operation: admissionv1.Create, Namespace: namespace, Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Object: runtime.RawExtension{Raw: []byte(pod)},
	}
	if change != nil {
		change(&request)
	}
	handler := &Handler{Members: s.members(), Decoder: admission.NewDecoder(scheme())}
	response := handler.Handle(t.Context(), admission.Request{AdmissionRequest: request})
	if err := response.Complete(admission.Request{AdmissionRequest: request}); err != nil {
		t.Fatal(err)
	}
	return response
}

// paths are what a patch changes.
func paths(t *testing.T, response admission.Response) []string {
	t.Helper()
	var operations []struct{ Op, Path string }
	if response.Patch != nil {
		if err := json.Unmarshal(response.Patch, &operations); err != nil {
			t.Fatal(err)
		}
	}
	var out []string
	for _, o := range operations {
		out = append(out, o.Op+" "+o.Path)
	}
	slices.Sort(out)
	return out
}

// A pod comes with fields that we do not know of, from an API server that is newer: nothing
// but what is ours is patched.
func TestThePatchHasNothingButWhatIsOurs(t *testing.T) {
	s := newScene(t)
	response := ask(t, s, `{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"job-","creationTimestamp":null,"fromLater":1},
		"spec":{"containers":[{"name":"main","image":"i","fromLater":{"a":1}}],"schedulerName":"default-scheduler","priority":7,"preemptionPolicy":"PreemptLowerPriority","fromLater":true}}`, nil)
	expect(t, "allowed", true, response.Allowed)
	expect(t, "operations", []string{
		"add /metadata/annotations", "add /spec/priorityClassName", "add /spec/schedulingGroup", "remove /spec/preemptionPolicy", "remove /spec/priority",
	}, paths(t, response))
}

func TestNothingIsPatchedWhereNothingChanges(t *testing.T) {
	const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[],"schedulerName":"kai-scheduler"}}`
	response := ask(t, newScene(t), pod, nil)
	expect(t, "allowed", true, response.Allowed)
	expect(t, "operations", []string(nil), paths(t, response))
}

func TestOnlyCreationIsAnswered(t *testing.T) {
	const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[]}}`
	for name, change := range map[string]func(*admissionv1.AdmissionRequest){
		"an update":     func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Update },
		"a subresource": func(r *admissionv1.AdmissionRequest) { r.SubResource = "eviction" },
	} {
		t.Run(name, func(t *testing.T) {
			response := ask(t, newScene(t), pod, change)
			expect(t, "allowed", true, response.Allowed)
			expect(t, "operations", []string(nil), paths(t, response))
		})
	}
}

func TestARefusalHasItsReason(t *testing.T) {
	s := newScene(t)
	s.starting = true
	response := ask(t, s, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[]}}`, nil)
	expect(t, "allowed", false, response.Allowed)
	expect(t, "reason", metav1.StatusReasonServiceUnavailable, response.Result.Reason)
	expect(t, "code", int32(503), response.Result.Code)
	if response = ask(t, newScene(t), `{`, nil); response.Allowed || response.Result.Code != 400 {
		t.Errorf("no pod is answered with %+v", response.Result)
	}
}
