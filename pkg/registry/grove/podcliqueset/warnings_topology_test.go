package podcliqueset

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

// topologies has one topology, gpu, of zones, racks and hosts, or an error.
type topologies struct{ err error }

func (s topologies) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	if s.err != nil {
		return nil, s.err
	}
	if name != "gpu" {
		return nil, apierrors.NewNotFound(grove.Resource("clustertopologybindings"), name)
	}
	return &grove.ClusterTopologyBinding{Spec: grove.ClusterTopologyBindingSpec{Levels: []grove.TopologyLevel{
		{Domain: "zone"}, {Domain: "rack"}, {Domain: "host"},
	}}}, nil
}

func TestTopologyWarnings(t *testing.T) {
	const (
		set    = "spec.template.topologyConstraint."
		group  = "spec.template.podCliqueScalingGroups[0].topologyConstraint."
		router = "spec.template.cliques[0].topologyConstraint."
		worker = "spec.template.cliques[1].topologyConstraint."
	)
	packed := func(topology, required, preferred string) *grove.TopologyConstraint {
		return &grove.TopologyConstraint{TopologyName: topology, Pack: &grove.TopologyPackConstraint{Required: required, Preferred: preferred}}
	}
	// constrain sets the constraints of the set, of the worker's group and of both cliques.
	constrain := func(ofSet, ofGroup, ofRouter, ofWorker *grove.TopologyConstraint) func(*grove.PodCliqueSet) {
		return func(pcs *grove.PodCliqueSet) {
			withGroup(ptr.To[int32](1), nil)(pcs)
			template := &pcs.Spec.Template
			template.TopologyConstraint, template.PodCliqueScalingGroups[0].TopologyConstraint = ofSet, ofGroup
			template.Cliques[0].TopologyConstraint, template.Cliques[1].TopologyConstraint = ofRouter, ofWorker
		}
	}
	tests := map[string]struct {
		err   error
		tweak func(*grove.PodCliqueSet)
		want  []string
	}{
		"no constraint":                             {tweak: all(), err: errors.New("is not asked")},
		"broad to narrow":                           {tweak: constrain(packed("gpu", "zone", "rack"), packed("", "rack", ""), packed("", "host", ""), packed("", "rack", "host"))},
		"no such topology":                          {tweak: constrain(packed("cpu", "socket", ""), nil, nil, nil), want: []string{set + "topologyName"}},
		"no such topology, of a group":              {tweak: constrain(nil, packed("cpu", "socket", ""), nil, nil), want: []string{group + "topologyName"}},
		"no such topology, of a clique":             {tweak: constrain(nil, nil, nil, packed("cpu", "socket", "")), want: []string{worker + "topologyName"}},
		"no answer, no warning":                     {tweak: constrain(packed("gpu", "socket", ""), nil, nil, nil), err: errors.New("no answer")},
		"required is no level":                      {tweak: constrain(packed("gpu", "socket", ""), nil, nil, packed("", "rack", "")), want: []string{set + "pack.required"}},
		"preferred is no level":                     {tweak: constrain(packed("gpu", "", "socket"), nil, nil, nil), want: []string{set + "pack.preferred"}},
		"preferred is broader than required":        {tweak: constrain(packed("gpu", "rack", "zone"), nil, nil, nil), want: []string{set + "pack.preferred"}},
		"preferred is as broad as required":         {tweak: constrain(packed("gpu", "rack", "rack"), nil, nil, nil)},
		"a group is broader than its set":           {tweak: constrain(packed("gpu", "rack", ""), packed("", "zone", ""), nil, nil), want: []string{group + "pack.required"}},
		"a clique is broader than its set":          {tweak: constrain(packed("gpu", "rack", ""), nil, packed("", "zone", ""), nil), want: []string{router + "pack.required"}},
		"a clique is broader than its group":        {tweak: constrain(packed("gpu", "zone", ""), packed("", "host", ""), packed("", "zone", ""), packed("", "rack", "")), want: []string{worker + "pack.required"}},
		"preferences are compared with preferences": {tweak: constrain(packed("gpu", "", "rack"), nil, nil, packed("", "zone", "")), want: nil},
		"a preference broader than that around it":  {tweak: constrain(packed("gpu", "", "rack"), nil, nil, packed("", "", "zone")), want: []string{worker + "pack.preferred"}},
		"a constraint without domains":              {tweak: constrain(&grove.TopologyConstraint{TopologyName: "gpu"}, nil, nil, packed("", "zone", ""))},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			strategy := newStrategy(Defaults{})
			strategy.topologies = topologies{tc.err}
			var got []string
			for _, warning := range strategy.topologyWarnings(context.Background(), mkPodCliqueSet(tc.tweak)) {
				path, _, _ := strings.Cut(warning, ": ")
				got = append(got, path)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// What a scheduler is never told is said at once; what the cluster has switched off, a
// condition says.
func TestUntoldTopologyWarnings(t *testing.T) {
	const (
		set    = "spec.template.topologyConstraint"
		group  = "spec.template.podCliqueScalingGroups[0].topologyConstraint"
		worker = "spec.template.cliques[1].topologyConstraint"
	)
	packed := func(required, preferred string) *grove.TopologyConstraint {
		return &grove.TopologyConstraint{TopologyName: "gpu", Pack: &grove.TopologyPackConstraint{Required: required, Preferred: preferred}}
	}
	ofSet := func(required, preferred string) func(*grove.PodCliqueSet) {
		return func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.TopologyConstraint = packed(required, preferred) }
	}
	ofWorker := func(required, preferred string) func(*grove.PodCliqueSet) {
		return func(pcs *grove.PodCliqueSet) {
			pcs.Spec.Template.Cliques[1].TopologyConstraint = packed(required, preferred)
		}
	}
	ofGroup := all(withGroup(ptr.To[int32](2), ptr.To[int32](1)), func(pcs *grove.PodCliqueSet) {
		pcs.Spec.Template.PodCliqueScalingGroups[0].TopologyConstraint = packed("rack", "")
	})
	by := func(scheduler string) func(*grove.PodCliqueSet) {
		return func(pcs *grove.PodCliqueSet) {
			for i := range pcs.Spec.Template.Cliques {
				pcs.Spec.Template.Cliques[i].Spec.PodSpec.SchedulerName = scheduler
			}
		}
	}
	tests := map[string]struct {
		tweak func(*grove.PodCliqueSet)
		want  []string
	}{
		"no constraint":                {tweak: all()},
		"required of the set":          {tweak: ofSet("rack", "")},
		"preferred":                    {tweak: ofSet("zone", "rack"), want: []string{set + ".pack.preferred"}},
		"required of a part":           {tweak: ofWorker("rack", ""), want: []string{worker + ".pack.required"}},
		"and preferred":                {tweak: ofWorker("rack", "host"), want: []string{worker + ".pack.required", worker + ".pack.preferred"}},
		"of a copy beside others":      {tweak: ofGroup, want: []string{group + ".pack.required"}},
		"KAI is told all":              {tweak: all(ofSet("zone", "rack"), ofWorker("rack", "host"), by("kai-scheduler"))},
		"another scheduler is told no": {tweak: all(ofWorker("rack", "host"), by("other")), want: []string{worker}},
		"and needs to be told once":    {tweak: all(ofSet("zone", ""), ofWorker("rack", "host"), ofGroup, by("other")), want: []string{set}},
		"the same of a group":          {tweak: all(ofGroup, by("other")), want: []string{group}},
		"and nothing of no constraint": {tweak: by("other")},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, warning := range newStrategy(Defaults{}).WarningsOnCreate(context.Background(), mkPodCliqueSet(tc.tweak)) {
				path, _, _ := strings.Cut(warning, ": ")
				if strings.Contains(path, "opologyConstraint") {
					got = append(got, path)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
