package protection

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/apis/scheduler"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
)

const (
	namespace  = "ns"
	gc         = "system:serviceaccount:kube-system:generic-garbage-collector"
	namespaces = "system:serviceaccount:kube-system:namespace-controller"
	shared     = "system:kube-controller-manager"
)

// grants is an authorizer by a list of who may override what and where; "*" is everywhere.
// It keeps the questions.
type grants struct {
	allowed map[string]string
	asked   []string
}

func (g *grants) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	where := "*"
	if a.GetName() != "" {
		where = a.GetNamespace() + "/" + a.GetName()
	}
	question := strings.Join([]string{a.GetUser().GetName(), a.GetVerb(), a.GetAPIGroup(), a.GetResource(), a.GetSubresource(), where}, " ")
	g.asked = append(g.asked, question)
	if !a.IsResourceRequest() {
		return authorizer.DecisionDeny, "", nil
	}
	if g.allowed[a.GetUser().GetName()] == where {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func controlledBy(apiVersion, kind string, controller bool) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "llm", UID: types.UID("set"), Controller: ptr.To(controller)}}
}

// clique is managed by a set.
func clique() *grove.PodClique {
	return &grove.PodClique{
		ObjectMeta: metav1.ObjectMeta{
			Name: "llm-0-worker", Namespace: namespace, ResourceVersion: "7", Finalizers: []string{"foregroundDeletion"},
			OwnerReferences: controlledBy("grove.io/v1alpha1", "PodCliqueSet", true),
		},
		Spec: grove.PodCliqueSpec{Replicas: 3},
	}
}

func with(change func(*grove.PodClique)) *grove.PodClique {
	c := clique()
	change(c)
	return c
}

func attributes(obj, old runtime.Object, subresource string, operation admission.Operation, who string) admission.Attributes {
	name := "llm-0-worker"
	return admission.NewAttributesRecord(obj, old, grovev1alpha1.SchemeGroupVersion.WithKind("PodClique"), namespace, name,
		grovev1alpha1.SchemeGroupVersion.WithResource("podcliques"), subresource, operation, nil, false, &user.DefaultInfo{Name: who})
}

func TestWhoMayChangeAManagedChild(t *testing.T) {
	own := clique()
	resized := with(func(c *grove.PodClique) { c.Spec.Replicas = 9 })
	labelled := with(func(c *grove.PodClique) { c.Labels = map[string]string{"app.kubernetes.io/managed-by": "me"} })
	disowned := with(func(c *grove.PodClique) { c.OwnerReferences = nil })
	released := with(func(c *grove.PodClique) { c.Finalizers, c.OwnerReferences, c.ResourceVersion = nil, nil, "" })
	free := with(func(c *grove.PodClique) {
		c.OwnerReferences = nil
		c.Labels = map[string]string{"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "llm"}
	})
	foreign := with(func(c *grove.PodClique) { c.OwnerReferences = controlledBy("apps/v1", "Deployment", true) })
	owned := with(func(c *grove.PodClique) { c.OwnerReferences = controlledBy("grove.io/v1alpha1", "PodCliqueSet", false) })
	unreadable := with(func(c *grove.PodClique) { c.OwnerReferences = controlledBy("a/b/c", "PodCliqueSet", true) })
	const create, update, remove = admission.Create, admission.Update, admission.Delete
	tests := map[string]struct {
		attributes admission.Attributes
		allowed    bool
	}{
		"a person changes the spec":                   {attributes(resized, own, "", update, "dev"), false},
		"a person changes a label":                    {attributes(labelled, own, "", update, "dev"), false},
		"a person changes the status":                 {attributes(own, own, "status", update, "dev"), false},
		"a person deletes it":                         {attributes(nil, own, "", remove, "dev"), false},
		"a person makes one":                          {attributes(own, nil, "", create, "dev"), false},
		"a person makes one of what was free":         {attributes(own, free, "", update, "dev"), false},
		"a person takes its owner away":               {attributes(disowned, own, "", update, "dev"), false},
		"a person scales it":                          {attributes(&autoscalingv1.Scale{}, &autoscalingv1.Scale{}, "scale", update, "dev"), true},
		"a person changes what is free":               {attributes(free, free, "", update, "dev"), true},
		"a person deletes what is free":               {attributes(nil, free, "", remove, "dev"), true},
		"a person makes what is free":                 {attributes(free, nil, "", create, "dev"), true},
		"a person changes what a Deployment controls": {attributes(foreign, foreign, "", update, "dev"), true},
		"a person changes what a set owns only":       {attributes(owned, owned, "", update, "dev"), true},
		"a person changes what nobody can control":    {attributes(unreadable, unreadable, "", update, "dev"), true},

		"the controller changes the spec": {attributes(resized, own, "", update, "controller"), true},
		"the controller writes status":    {attributes(own, own, "status", update, "controller"), true},
		"the controller makes one":        {attributes(own, nil, "", create, "controller"), true},
		"the controller deletes it":       {attributes(nil, own, "", remove, "controller"), true},
		"one who may override this one":   {attributes(resized, own, "", update, "helper"), true},
		"one who may override another":    {attributes(resized, own, "", update, "other"), false},

		"the garbage collector deletes it":              {attributes(nil, own, "", remove, gc), true},
		"the garbage collector lets go of owners":       {attributes(released, own, "", update, gc), true},
		"the garbage collector changes the spec":        {attributes(resized, own, "", update, gc), false},
		"the garbage collector changes a label":         {attributes(labelled, own, "", update, gc), false},
		"the garbage collector writes status":           {attributes(own, own, "status", update, gc), false},
		"the garbage collector makes one":               {attributes(own, nil, "", create, gc), false},
		"the namespace controller deletes it":           {attributes(nil, own, "", remove, namespaces), true},
		"controllers that share an account delete it":   {attributes(nil, own, "", remove, shared), true},
		"another controller of the cluster deletes it":  {attributes(nil, own, "", remove, "system:serviceaccount:kube-system:job-controller"), false},
		"an account of that name elsewhere deletes it":  {attributes(nil, own, "", remove, "system:serviceaccount:ns:generic-garbage-collector"), false},
		"an autoscaler scales it":                       {attributes(&autoscalingv1.Scale{}, &autoscalingv1.Scale{}, "scale", update, "system:serviceaccount:kube-system:horizontal-pod-autoscaler"), true},
		"an autoscaler changes the spec another way":    {attributes(resized, own, "", update, "system:serviceaccount:kube-system:horizontal-pod-autoscaler"), false},
		"the garbage collector takes labels with owner": {attributes(with(func(c *grove.PodClique) { c.OwnerReferences, c.Labels = nil, map[string]string{"a": "b"} }), own, "", update, gc), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			plugin := New()
			plugin.SetUnconditionalAuthorizer(&grants{allowed: map[string]string{"controller": "*", "helper": "ns/llm-0-worker", "other": "ns/llm-0-router"}})
			if !plugin.Handles(tc.attributes.GetOperation()) {
				t.Fatal("is not asked")
			}
			err := plugin.Validate(t.Context(), tc.attributes, nil)
			if tc.allowed {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if !apierrors.IsForbidden(err) {
				t.Fatalf("got %v, want a refusal", err)
			}
			for _, part := range []string{`podcliques.grove.io "llm-0-worker" is forbidden`, "managed by PodCliqueSet llm", `the verb "override" on podcliques.grove.io`} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is missing in %q", part, err)
				}
			}
		})
	}
}

// Members of scaling groups, and the gangs of the scheduler's group, are children as well.
func TestControllersOfBothGroupsManage(t *testing.T) {
	for _, owner := range []metav1.OwnerReference{
		{APIVersion: "grove.io/v1alpha1", Kind: "PodCliqueScalingGroup", Name: "llm-0-decode", Controller: ptr.To(true)},
		{APIVersion: "grove.io/v1", Kind: "PodCliqueSet", Name: "llm", Controller: ptr.To(true)},
		{APIVersion: "scheduler.grove.io/v1alpha1", Kind: "PodGang", Name: "llm-0", Controller: ptr.To(true)},
	} {
		gang := &scheduler.PodGang{ObjectMeta: metav1.ObjectMeta{Name: "llm-0", Namespace: namespace, OwnerReferences: []metav1.OwnerReference{owner}}}
		plugin, asked := New(), &grants{}
		plugin.SetUnconditionalAuthorizer(asked)
		// A collection is deleted one by one, under no name.
		err := plugin.Validate(t.Context(), admission.NewAttributesRecord(nil, gang, schedulerv1alpha1.SchemeGroupVersion.WithKind("PodGang"), namespace, "",
			schedulerv1alpha1.SchemeGroupVersion.WithResource("podgangs"), "", admission.Delete, nil, false, &user.DefaultInfo{Name: "dev"}), nil)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), owner.Kind+" "+owner.Name) || !strings.Contains(err.Error(), `"llm-0"`) {
			t.Errorf("%s: got %v", owner.Kind, err)
		}
		want := []string{"dev override scheduler.grove.io podgangs  *", "dev override scheduler.grove.io podgangs  ns/llm-0"}
		if diff := cmp.Diff(want, asked.asked); diff != "" {
			t.Errorf("%s: questions (-want +got):\n%s", owner.Kind, diff)
		}
	}
}

// The controller-manager's answer is the same for all its objects, so that one question
// is asked and the answer is found in the authorizer's cache from then on.
func TestTheControllerCostsOneQuestion(t *testing.T) {
	plugin, asked := New(), &grants{allowed: map[string]string{"controller": "*"}}
	plugin.SetUnconditionalAuthorizer(asked)
	if err := plugin.Validate(t.Context(), attributes(clique(), clique(), "status", admission.Update, "controller"), nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"controller override grove.io podcliques  *"}, asked.asked); diff != "" {
		t.Errorf("questions (-want +got):\n%s", diff)
	}
}

// Nobody is told that they may not when that could not be found out.
func TestAnAuthorizerThatIsAwayIsNoRefusal(t *testing.T) {
	plugin := New()
	plugin.SetUnconditionalAuthorizer(authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionNoOpinion, "", errors.New("the cluster is away")
	}))
	err := plugin.Validate(t.Context(), attributes(nil, clique(), "", admission.Delete, "dev"), nil)
	if !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "the cluster is away") {
		t.Errorf("got %v", err)
	}
}

func TestAPluginWithoutAnAuthorizerDoesNotStart(t *testing.T) {
	plugin := New()
	if plugin.ValidateInitialization() == nil {
		t.Error("it starts")
	}
	plugin.SetUnconditionalAuthorizer(&grants{})
	if err := plugin.ValidateInitialization(); err != nil {
		t.Error(err)
	}
}
