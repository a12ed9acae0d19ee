package claimtemplate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/copse-dev/copse/pkg/apis/grove"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// grants lets some templates be read, and keeps what it was asked.
type grants struct {
	allowed, asked []string
	err            error
}

func (g *grants) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	question := strings.Join([]string{a.GetUser().GetName(), a.GetVerb(), a.GetResource() + "." + a.GetAPIGroup(), a.GetNamespace() + "/" + a.GetName()}, " ")
	g.asked = append(g.asked, question)
	if slices.Contains(g.allowed, a.GetNamespace()+"/"+a.GetName()) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", g.err
}

func sharing(namespace, name string) grove.ResourceSharingSpec {
	return grove.ResourceSharingSpec{Namespace: namespace, Name: name, Scope: grove.ResourceSharingScopeAllReplicas}
}

// newSet refers to a template of the set, and to others of a clique and a scaling group.
func newSet(ofSet, ofClique, ofGroup grove.ResourceSharingSpec) *grove.PodCliqueSet {
	return &grove.PodCliqueSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "llm"},
		Spec: grove.PodCliqueSetSpec{Template: grove.PodCliqueSetTemplateSpec{
			ResourceSharing:        []grove.PCSResourceSharingSpec{{ResourceSharingSpec: ofSet}},
			Cliques:                []grove.PodCliqueTemplateSpec{{}, {ResourceSharing: []grove.ResourceSharingSpec{ofClique}}},
			PodCliqueScalingGroups: []grove.PodCliqueScalingGroupConfig{{ResourceSharing: []grove.PCSGResourceSharingSpec{{ResourceSharingSpec: ofGroup}}}},
		}},
	}
}

func TestWhoMayReferToATemplateOfAnotherNamespace(t *testing.T) {
	const question = "dev get resourceclaimtemplates.resource.k8s.io "
	here, own := sharing("", "gpu"), sharing("ns", "gpu")
	there, elsewhere := sharing("shared", "gpu"), sharing("shared", "nic")
	tests := map[string]struct {
		obj, old    runtime.Object
		subresource string
		allowed     []string
		err         error
		asked       []string
		// want begins with the path of the field.
		want   string
		reason metav1.StatusReason
	}{
		"templates of the set's namespace": {obj: newSet(here, own, here)},
		"one that the user may read":       {obj: newSet(there, here, here), allowed: []string{"shared/gpu"}, asked: []string{question + "shared/gpu"}},
		"is asked for once":                {obj: newSet(there, there, there), allowed: []string{"shared/gpu"}, asked: []string{question + "shared/gpu"}},
		"of the set": {
			obj: newSet(there, here, here), asked: []string{question + "shared/gpu"}, want: "spec.template.resourceSharing[0].namespace", reason: metav1.StatusReasonForbidden,
		},
		"of a clique": {
			obj: newSet(here, there, here), asked: []string{question + "shared/gpu"}, want: "spec.template.cliques[1].resourceSharing[0].namespace", reason: metav1.StatusReasonForbidden,
		},
		"of a scaling group": {
			obj: newSet(here, here, there), asked: []string{question + "shared/gpu"}, want: "spec.template.podCliqueScalingGroups[0].resourceSharing[0].namespace", reason: metav1.StatusReasonForbidden,
		},
		"one of two": {
			obj: newSet(there, elsewhere, here), allowed: []string{"shared/gpu"}, asked: []string{question + "shared/gpu", question + "shared/nic"},
			want: "spec.template.cliques[1].resourceSharing[0].namespace", reason: metav1.StatusReasonForbidden,
		},
		"one that is there already": {obj: newSet(there, here, here), old: newSet(there, here, here)},
		"one that is changed": {
			obj: newSet(elsewhere, here, here), old: newSet(there, here, here), asked: []string{question + "shared/nic"}, want: "spec.template.resourceSharing[0].namespace", reason: metav1.StatusReasonForbidden,
		},
		"the answer is not known": {
			obj: newSet(there, here, here), err: errors.New("boom"), asked: []string{question + "shared/gpu"}, want: "cannot find out", reason: metav1.StatusReasonServiceUnavailable,
		},
		"status":       {obj: newSet(there, here, here), old: newSet(here, here, here), subresource: "status"},
		"scale":        {obj: &autoscalingv1.Scale{}, old: &autoscalingv1.Scale{}, subresource: "scale"},
		"another kind": {obj: &grove.PodClique{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			asked := &grants{allowed: tc.allowed, err: tc.err}
			plugin := New()
			plugin.SetUnconditionalAuthorizer(asked)
			operation := admission.Create
			if tc.old != nil {
				operation = admission.Update
			}
			err := plugin.Validate(t.Context(), admission.NewAttributesRecord(tc.obj, tc.old, grovev1alpha1.SchemeGroupVersion.WithKind("PodCliqueSet"), "ns", "llm",
				grovev1alpha1.SchemeGroupVersion.WithResource("podcliquesets"), tc.subresource, operation, nil, false, &user.DefaultInfo{Name: "dev"}), nil)
			if diff := cmp.Diff(tc.asked, asked.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if got := apierrors.ReasonForError(err); tc.want != "" && got != tc.reason {
				t.Errorf("reason %s, want %s", got, tc.reason)
			}
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestThePluginNeedsAnAuthorizer(t *testing.T) {
	plugin := New()
	if err := plugin.ValidateInitialization(); err == nil {
		t.Error("it does without")
	}
	plugin.SetUnconditionalAuthorizer(&grants{})
	if err := plugin.ValidateInitialization(); err != nil {
		t.Error(err)
	}
	if plugin.Handles(admission.Delete) {
		t.Error("it has a say in deletions")
	}
}
