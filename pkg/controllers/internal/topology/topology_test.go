package topology

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/scheduling"
	"github.com/copse-dev/copse/pkg/scheduling/kai"
	"github.com/copse-dev/copse/pkg/scheduling/none"
)

func expect(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// newSet is a set of one clique that names a topology, if it is not empty.
func newSet(name, topology string, changes ...func(*grovev1alpha1.PodCliqueSet)) *grovev1alpha1.PodCliqueSet {
	pcs := &grovev1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	pcs.Spec.Template.Cliques = make([]grovev1alpha1.PodCliqueTemplateSpec, 1)
	if topology != "" {
		pcs.Spec.Template.TopologyConstraint = &grovev1alpha1.TopologyConstraint{TopologyName: topology}
	}
	for _, change := range changes {
		change(pcs)
	}
	return pcs
}

func newBinding(name string) *grovev1alpha1.ClusterTopologyBinding {
	return &grovev1alpha1.ClusterTopologyBinding{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 2}}
}

func newClient(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := grovev1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
}

func TestTheTopologyOfASet(t *testing.T) {
	backends := &scheduling.Backends{Others: none.New(nil), ByScheduler: map[string]scheduling.Backend{"kai-scheduler": kai.New(nil, true)}}
	byKAI := func(pcs *grovev1alpha1.PodCliqueSet) {
		pcs.Spec.Template.Cliques[0].Spec.PodSpec.SchedulerName = "kai-scheduler"
	}
	unnamed := func(pcs *grovev1alpha1.PodCliqueSet) {
		pcs.Spec.Template.TopologyConstraint = &grovev1alpha1.TopologyConstraint{}
	}
	tests := map[string]struct {
		set       *grovev1alpha1.PodCliqueSet
		off       bool
		err       error
		wantName  string
		wantGangs bool
		wantErr   bool
	}{
		"no constraint, no question": {set: newSet("a", "", byKAI), err: errors.New("boom")},
		"it is there":                {set: newSet("a", "gpu", byKAI), wantName: "gpu", wantGangs: true},
		"it is not":                  {set: newSet("a", "cpu", byKAI), wantGangs: true},
		"it has no name":             {set: newSet("a", "", unnamed, byKAI), err: errors.New("boom"), wantGangs: true},
		"another scheduler":          {set: newSet("a", "gpu"), wantName: "gpu"},
		"it is switched off":         {set: newSet("a", "gpu", byKAI), off: true, err: errors.New("boom"), wantGangs: true},
		"it cannot be read":          {set: newSet("a", "gpu", byKAI), err: errors.New("boom"), wantErr: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			funcs := interceptor.Funcs{}
			if tc.err != nil {
				funcs.Get = func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
					return tc.err
				}
			}
			got, err := Source{Off: tc.off, Backends: backends}.Of(t.Context(), newClient(t, funcs, newBinding("gpu")), tc.set)
			expect(t, "failed", tc.wantErr, err != nil)
			expect(t, "off", tc.off, got.Off)
			found := ""
			if got.Binding != nil {
				found = got.Binding.Name
			}
			expect(t, "topology", tc.wantName, found)
			expect(t, "the scheduler looks at it", tc.wantGangs, got.Support.Gangs)
		})
	}
}

func TestSame(t *testing.T) {
	of := func(uid types.UID, generation int64) gang.Topology {
		binding := newBinding("gpu")
		binding.UID, binding.Generation = uid, generation
		return gang.Topology{Binding: binding}
	}
	expect(t, "none and none", true, Same(gang.Topology{}, gang.Topology{}))
	expect(t, "none and one", false, Same(gang.Topology{}, of("a", 1)))
	expect(t, "one and none", false, Same(of("a", 1), gang.Topology{}))
	expect(t, "the same", true, Same(of("a", 1), of("a", 1)))
	expect(t, "a later one", false, Same(of("a", 1), of("a", 2)))
	expect(t, "a namesake", false, Same(of("a", 1), of("b", 1)))
}

func TestTheSetsOfATopology(t *testing.T) {
	c := newClient(t, interceptor.Funcs{}, newSet("a", "gpu"), newSet("b", "cpu"), newSet("c", ""), newSet("d", "gpu"))
	var names []string
	for _, pcs := range SetsOf(t.Context(), c, newBinding("gpu")) {
		names = append(names, pcs.Name)
	}
	expect(t, "sets", []string{"a", "d"}, names)
	failing := newClient(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("boom")
	}})
	expect(t, "sets that cannot be listed", 0, len(SetsOf(t.Context(), failing, newBinding("gpu"))))
}

func TestWhichChangesOfATopologyMatter(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*grovev1alpha1.ClusterTopologyBinding)
		want   bool
	}{
		"its status": {func(b *grovev1alpha1.ClusterTopologyBinding) { b.Status.Conditions = make([]metav1.Condition, 1) }, false},
		"its levels": {func(b *grovev1alpha1.ClusterTopologyBinding) { b.Generation++ }, true},
		"a namesake": {func(b *grovev1alpha1.ClusterTopologyBinding) { b.UID = "other" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := newBinding("gpu"), newBinding("gpu")
			tc.change(after)
			expect(t, "matters", tc.want, LevelsChanged().Update(event.TypedUpdateEvent[*grovev1alpha1.ClusterTopologyBinding]{ObjectOld: before, ObjectNew: after}))
		})
	}
	expect(t, "one that comes matters", true, LevelsChanged().Create(event.TypedCreateEvent[*grovev1alpha1.ClusterTopologyBinding]{Object: newBinding("gpu")}))
	expect(t, "one that goes matters", true, LevelsChanged().Delete(event.TypedDeleteEvent[*grovev1alpha1.ClusterTopologyBinding]{Object: newBinding("gpu")}))
}
