package validation

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

// The longest generated name is a pod's host name, of 63 characters at most.
func TestValidatePodCliqueSetNameBudget(t *testing.T) {
	// named gives the set a name that makes the longest host name of the worker, whose
	// other parts are rest characters long, 63 characters long; more makes it longer.
	named := func(rest string, more int) func(*grove.PodCliqueSet) {
		return func(pcs *grove.PodCliqueSet) { pcs.Name = strings.Repeat("a", 63-len(rest)+more) }
	}
	oneClique := func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.Cliques = pcs.Spec.Template.Cliques[1:] }
	shapes := map[string]struct {
		rest  string
		tweak func(*grove.PodCliqueSet)
	}{
		"standalone clique":   {"-0-worker-0", oneClique},
		"member clique":       {"-0-decode-0-worker-0", all(oneClique, withGroup("decode", "worker"))},
		"replica of 3 digits": {"-100-worker-0", all(oneClique, func(pcs *grove.PodCliqueSet) { pcs.Spec.Replicas = 101 })},
		"set scaled to 0":     {"-0-worker-0", all(oneClique, func(pcs *grove.PodCliqueSet) { pcs.Spec.Replicas = 0 })},
		"pod of 2 digits":     {"-0-worker-10", all(oneClique, cliqueSpec(0, func(s *grove.PodCliqueSpec) { s.Replicas = 11 }))},
		"pod of 1 digit":      {"-0-worker-9", all(oneClique, cliqueSpec(0, func(s *grove.PodCliqueSpec) { s.Replicas = 10 }))},
		"pod that an autoscaler may make": {"-0-worker-99", all(oneClique, cliqueSpec(0, func(s *grove.PodCliqueSpec) {
			s.AutoScalingConfig = &grove.AutoScalingConfig{MaxReplicas: 100}
		}))},
		"copy of 2 digits": {"-0-decode-10-worker-0", all(oneClique, withGroup("decode", "worker"), group(0, func(g *grove.PodCliqueScalingGroupConfig) {
			g.Replicas = ptr.To[int32](11)
		}))},
		"copy that an autoscaler may make": {"-0-decode-99-worker-0", all(oneClique, withGroup("decode", "worker"), group(0, func(g *grove.PodCliqueScalingGroupConfig) {
			g.ScaleConfig = &grove.AutoScalingConfig{MaxReplicas: 100}
		}))},
		"group without replicas": {"-0-decode-0-worker-0", all(oneClique, withGroup("decode", "worker"), group(0, func(g *grove.PodCliqueScalingGroupConfig) {
			g.Replicas = nil
		}))},
	}
	tests := map[string]createCase[grove.PodCliqueSet]{}
	for name, shape := range shapes {
		tests[name+": 63 characters"] = createCase[grove.PodCliqueSet]{tweak: all(shape.tweak, named(shape.rest, 0))}
		tests[name+": 64 characters"] = createCase[grove.PodCliqueSet]{
			tweak: all(shape.tweak, named(shape.rest, 1)),
			want:  field.ErrorList{invalid(clique0 + ".name")},
		}
	}
	testCreate(t, mkPodCliqueSet, ValidatePodCliqueSet, tests)
}

// Two cliques of a set never lead to PodCliques of one name.
func TestCliquesOfASetHaveNamesApart(t *testing.T) {
	cliques := func(names ...string) func(*grove.PodCliqueSet) {
		return func(pcs *grove.PodCliqueSet) {
			base := pcs.Spec.Template.Cliques[0]
			pcs.Spec.Template.Cliques = nil
			for _, name := range names {
				clique := *base.DeepCopy()
				clique.Name, clique.Spec.RoleName = name, name
				pcs.Spec.Template.Cliques = append(pcs.Spec.Template.Cliques, clique)
			}
		}
	}
	tests := map[string]createCase[grove.PodCliqueSet]{
		"standalone like a copy":          {tweak: all(cliques("worker", "decode-0-worker"), withGroup("decode", "worker")), want: field.ErrorList{invalid("spec.template.cliques[1].name")}},
		"standalone like a far copy":      {tweak: all(cliques("worker", "decode-12-worker"), withGroup("decode", "worker")), want: field.ErrorList{invalid("spec.template.cliques[1].name")}},
		"standalone with another member":  {tweak: all(cliques("worker", "decode-0-leader"), withGroup("decode", "worker"))},
		"standalone without a number":     {tweak: all(cliques("worker", "decode-x-worker"), withGroup("decode", "worker"))},
		"standalone that goes on":         {tweak: all(cliques("worker", "decode-0-worker-b"), withGroup("decode", "worker"))},
		"groups a and a-0":                {tweak: all(cliques("0-b", "b"), withGroup("a", "0-b"), withGroup("a-0", "b")), want: field.ErrorList{invalid("spec.template.cliques[0].name")}},
		"groups a and a-0-x":              {tweak: all(cliques("x-1-b", "b"), withGroup("a", "x-1-b"), withGroup("a-0-x", "b")), want: field.ErrorList{invalid("spec.template.cliques[0].name")}},
		"groups a and a-b":                {tweak: all(cliques("0-b", "b"), withGroup("a", "0-b"), withGroup("a-b", "b"))},
		"groups a and a-0, other members": {tweak: all(cliques("worker", "b"), withGroup("a", "worker"), withGroup("a-0", "b"))},
		"two cliques of one group":        {tweak: all(cliques("worker", "leader"), withGroup("decode", "worker", "leader"))},
		"the gang of a stage": {
			tweak: all(cliques("g-0-b", "b"), withGroup("g", "g-0-b", "b"), startupInOrder(waitReady("g-0-b"))), want: field.ErrorList{invalid("spec.template.cliques[0].name")},
		},
		"of one that is in no stage": {tweak: all(cliques("g-0-b", "b"), withGroup("g", "g-0-b", "b"))},
	}
	testCreate(t, mkPodCliqueSet, ValidatePodCliqueSet, tests)
}
