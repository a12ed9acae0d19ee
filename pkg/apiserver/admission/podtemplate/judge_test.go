package podtemplate

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

// llm is a set of a standalone clique and one in a scaling group.
func llm() *grove.PodCliqueSet {
	return &grove.PodCliqueSet{
		ObjectMeta: metav1.ObjectMeta{Name: "llm", Namespace: "ns"},
		Spec: grove.PodCliqueSetSpec{Template: grove.PodCliqueSetTemplateSpec{
			PriorityClassName: "high",
			Cliques: []grove.PodCliqueTemplateSpec{
				{Name: "router", Spec: grove.PodCliqueSpec{Replicas: 1, PodSpec: podSpec()}},
				{Name: "worker", Labels: map[string]string{"tier": "back"}, Annotations: map[string]string{"note": "a"}, Spec: grove.PodCliqueSpec{Replicas: 1, PodSpec: podSpec()}},
			},
			PodCliqueScalingGroups: []grove.PodCliqueScalingGroupConfig{{Name: "group", CliqueNames: []string{"worker"}}},
		}},
	}
}

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "fetch", Image: "example.com/fetch"}},
		Containers: []corev1.Container{{Name: "main", Image: "example.com/server", Env: []corev1.EnvVar{
			// The controllers' own variable of this name wins over the template's.
			{Name: "GROVE_PCS_NAME", Value: "mine"}, {Name: "MODE", Value: "fast"},
		}}},
		Volumes: []corev1.Volume{{Name: "data"}},
	}
}

func podInvalid(errs ...*field.Error) error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "llm-0-worker-0-abc", errs)
}

func TestAnswers(t *testing.T) {
	const of = "spec.template.cliques[1]"
	pcs := llm()
	clique := &pcs.Spec.Template.Cliques[1]
	pods := schema.GroupResource{Resource: "pods"}
	in := func(path string) *field.Path { return field.NewPath(path) }
	tests := map[string]struct {
		err error
		// fields are those of the refusal, and warnings are parts of what is warned of.
		fields, warnings []string
	}{
		"accepted":            {},
		"a field of the spec": {err: podInvalid(field.Required(in("spec.containers[0].image"), "")), fields: []string{of + ".spec.podSpec.containers[0].image"}},
		"a list of the spec":  {err: podInvalid(field.Invalid(in("spec.tolerations[0].operator"), "x", "no")), fields: []string{of + ".spec.podSpec.tolerations[0].operator"}},
		"the spec":            {err: podInvalid(field.Forbidden(in("spec"), "no")), fields: []string{of + ".spec.podSpec"}},
		"an annotation":       {err: podInvalid(field.Invalid(in("metadata.annotations[a]"), "x", "no")), fields: []string{of + ".annotations[a]"}},
		"a label":             {err: podInvalid(field.Invalid(in("metadata.labels"), "x", "no")), fields: []string{of + ".labels"}},
		"two fields": {err: podInvalid(field.Required(in("spec.containers[0].image"), ""), field.Invalid(in("spec.dnsPolicy"), "x", "no")),
			fields: []string{of + ".spec.podSpec.containers[0].image", of + ".spec.podSpec.dnsPolicy"}},
		"a field of ours beside one of the spec": {err: podInvalid(field.Required(in("spec.containers[0].image"), ""), field.Invalid(in("metadata.name"), "x", "too long")),
			fields: []string{of + ".spec.podSpec.containers[0].image"}, warnings: []string{"metadata.name"}},
		"the host name":       {err: podInvalid(field.Invalid(in("spec.hostname"), "x", "too long")), warnings: []string{"a pod of clique worker would be refused now: spec.hostname"}},
		"the subdomain":       {err: podInvalid(field.Invalid(in("spec.subdomain"), "x", "too long")), warnings: []string{"spec.subdomain"}},
		"a container of ours": {err: podInvalid(field.Required(in("spec.containers[1].image"), "")), warnings: []string{"spec.containers[1].image"}},
		"a variable":          {err: podInvalid(field.Invalid(in("spec.containers[0].env[9].valueFrom"), "x", "no")), fields: []string{of + ".spec.podSpec.containers[0].env[1].valueFrom"}},

		"forbidden":                      {err: apierrors.NewForbidden(pods, "p", errors.New("exceeded quota: q")), warnings: []string{"would be refused now", "exceeded quota: q"}},
		"the account of a new namespace": {err: apierrors.NewForbidden(pods, "p", errors.New(`error looking up service account ns/default: serviceaccount "default" not found`))},
		"another account":                {err: apierrors.NewForbidden(pods, "p", errors.New(`error looking up service account ns/mine: serviceaccount "mine" not found`)), warnings: []string{"would be refused now"}},
		"a webhook's 422":                {err: apierrors.NewGenericServerResponse(422, "post", pods, "p", "no", 0, true), warnings: []string{"would be refused now"}},
		"422 of another kind":            {err: apierrors.NewInvalid(schema.GroupKind{Kind: "Policy"}, "p", field.ErrorList{field.Required(in("spec.containers[0].image"), "")}), warnings: []string{"would be refused now"}},
		"422 without fields":             {err: podInvalid(), warnings: []string{"would be refused now"}},
		"a webhook without a dry":        {err: apierrors.NewBadRequest("admission webhook does not support dry run"), warnings: []string{"does not support dry run"}},
		"not found":                      {err: apierrors.NewNotFound(pods, "p"), warnings: []string{"would be refused now"}},

		"too many requests": {err: apierrors.NewTooManyRequestsError("later"), warnings: []string{of + ": the pods of clique worker were not tried out: Too many requests: later"}},
		"an internal error": {err: apierrors.NewInternalError(errors.New("webhook is down")), warnings: []string{"not tried out", "webhook is down"}},
		"a timeout":         {err: apierrors.NewTimeoutError("slow", 1), warnings: []string{"not tried out"}},
		"no answer":         {err: errors.New("connection\nrefused"), warnings: []string{"not tried out: connection refused"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := judge(tc.err, field.NewPath("spec", "template", "cliques").Index(1), clique, render(pcs, clique))
			var fields []string
			for _, cause := range got.causes {
				fields = append(fields, cause.Field)
			}
			if diff := cmp.Diff(tc.fields, fields); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
			text := strings.Join(got.warnings, "\n")
			if (len(tc.warnings) == 0) != (text == "") {
				t.Errorf("warnings: %q", text)
			}
			for _, part := range tc.warnings {
				if !strings.Contains(text, part) {
					t.Errorf("%q is missing in the warnings %q", part, text)
				}
			}
		})
	}
}

// An account that the template names is the author's to make, whatever its name.
func TestAnAccountThatTheTemplateNamesIsToldOf(t *testing.T) {
	pcs := llm()
	clique := &pcs.Spec.Template.Cliques[0]
	clique.Spec.PodSpec.ServiceAccountName = "default"
	missing := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New(`error looking up service account ns/default: serviceaccount "default" not found`))
	if got := judge(missing, field.NewPath("cliques"), clique, render(pcs, clique)); len(got.warnings) != 1 {
		t.Errorf("warnings: %q", got.warnings)
	}
}

// The refusal reads like one of the set's own validation.
func TestRefusal(t *testing.T) {
	pcs := llm()
	clique := &pcs.Spec.Template.Cliques[0]
	err := invalid("llm", judge(podInvalid(field.Required(field.NewPath("spec.containers[0].image"), "say which")), field.NewPath("cliques").Index(0), clique, render(pcs, clique)).causes)
	if !apierrors.IsInvalid(err) {
		t.Fatalf("got %v", err)
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		t.Fatal("has no status")
	}
	want := metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Message: `PodCliqueSet.grove.io "llm" is invalid: cliques[0].spec.podSpec.containers[0].image: Required value: say which`,
		Details: &metav1.StatusDetails{Name: "llm", Group: "grove.io", Kind: "PodCliqueSet", Causes: []metav1.StatusCause{
			{Type: metav1.CauseTypeFieldValueRequired, Message: "Required value: say which", Field: "cliques[0].spec.podSpec.containers[0].image"},
		}},
	}
	if diff := cmp.Diff(want, status.Status()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFieldsOfAPodInItsTemplate(t *testing.T) {
	pcs := llm()
	clique := &pcs.Spec.Template.Cliques[1]
	pod := render(pcs, clique)
	// What a later version adds to a pod comes last.
	pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: "waiter"})
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "token"})
	ours := len(pod.Spec.Containers[0].Env) - 1
	if ours < 5 || pod.Spec.Containers[0].Env[ours].Name != "MODE" {
		t.Fatalf("the environment is %v", pod.Spec.Containers[0].Env)
	}
	for podField, want := range map[string]string{
		"spec.containers[0].env[" + strconv.Itoa(ours) + "].name": "spec.podSpec.containers[0].env[1].name",
		"spec.containers[0].env[0].value":                         "spec.podSpec.containers[0].env[0].value",
		"spec.containers[0].env[1].value":                         "",
		"spec.containers[0].env[99].value":                        "",
		"spec.containers[0].envFrom[3].prefix":                    "spec.podSpec.containers[0].envFrom[3].prefix",
		"spec.containers[0].resources.limits[cpu]":                "spec.podSpec.containers[0].resources.limits[cpu]",
		"spec.containers[0]":                                      "spec.podSpec.containers[0]",
		"spec.containers":                                         "spec.podSpec.containers",
		"spec.initContainers[0].name":                             "spec.podSpec.initContainers[0].name",
		"spec.initContainers[1].name":                             "",
		"spec.initContainers[0].env[0].valueFrom":                 "",
		"spec.volumes[0].name":                                    "spec.podSpec.volumes[0].name",
		"spec.volumes[1].name":                                    "",
		"spec.containers[99999999999999999999].name":              "",
		"metadata.name":                                           "",
		"status":                                                  "",
		"":                                                        "",
	} {
		got, ok := inTemplate(podField, clique, pod)
		if ok != (want != "") || (ok && got != want) {
			t.Errorf("%q is at %q (%t), want %q", podField, got, ok, want)
		}
	}
}
