package gang

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

type setOption func(*grovev1alpha1.PodCliqueSet)

// newSet is a set of one replica without cliques.
func newSet(workload grovev1alpha1.WorkloadType, options ...setOption) *grovev1alpha1.PodCliqueSet {
	pcs := &grovev1alpha1.PodCliqueSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set", UID: "set", Generation: 5},
		Spec:       grovev1alpha1.PodCliqueSetSpec{WorkloadType: workload, Replicas: 1},
	}
	for _, option := range options {
		option(pcs)
	}
	return pcs
}

func trainingSet(options ...setOption) *grovev1alpha1.PodCliqueSet {
	return newSet(grovev1alpha1.WorkloadTypeTraining, options...)
}

func inferenceSet(options ...setOption) *grovev1alpha1.PodCliqueSet {
	return newSet(grovev1alpha1.WorkloadTypeInference, options...)
}

func replicas(n int32) setOption {
	return func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Spec.Replicas = n }
}

// template adds a clique to the template.
func template(name string, size, minimum int32) setOption {
	return func(pcs *grovev1alpha1.PodCliqueSet) {
		pcs.Spec.Template.Cliques = append(pcs.Spec.Template.Cliques, grovev1alpha1.PodCliqueTemplateSpec{
			Name: name, Spec: grovev1alpha1.PodCliqueSpec{Replicas: size, MinAvailable: ptr.To(minimum)},
		})
	}
}

// group adds a scaling group to the template; a number below 0 is left out.
func group(name string, copies, minimum int32, cliques ...string) setOption {
	return func(pcs *grovev1alpha1.PodCliqueSet) {
		config := grovev1alpha1.PodCliqueScalingGroupConfig{Name: name, CliqueNames: cliques}
		if copies >= 0 {
			config.Replicas = ptr.To(copies)
		}
		if minimum >= 0 {
			config.MinAvailable = ptr.To(minimum)
		}
		pcs.Spec.Template.PodCliqueScalingGroups = append(pcs.Spec.Template.PodCliqueScalingGroups, config)
	}
}

func replicaAttempt(index, n int32) setOption {
	return func(pcs *grovev1alpha1.PodCliqueSet) {
		pcs.Status.ReplicaStatuses = append(pcs.Status.ReplicaStatuses, grovev1alpha1.PodCliqueSetReplicaStatus{Index: index, Attempt: n})
	}
}

func TestExpectedCliques(t *testing.T) {
	// row is an expected clique without its pointers.
	type row struct {
		Name, Template, Group, GroupName string
		Copy                             int32
		Gang, BaseGang                   string
	}
	sizes := func(n int32) GroupSizes {
		return func(int32, *grovev1alpha1.PodCliqueScalingGroupConfig) int32 { return n }
	}
	tests := map[string]struct {
		set     *grovev1alpha1.PodCliqueSet
		replica int32
		sizes   GroupSizes
		want    []row
	}{
		"no clique": {set: inferenceSet(), sizes: TemplateSizes},
		"standalone cliques, in the order of the template": {
			set: inferenceSet(template("z", 1, 1), template("a", 1, 1)), replica: 4, sizes: TemplateSizes,
			want: []row{
				{Name: "set-4-z", Template: "z", Gang: "set-4", BaseGang: "set-4"},
				{Name: "set-4-a", Template: "a", Gang: "set-4", BaseGang: "set-4"},
			},
		},
		"a name that is the end of another": {
			set: inferenceSet(template("prefill-worker", 1, 1), template("worker", 1, 1), template("r", 1, 1), group("prefill", 1, 1, "worker")), sizes: TemplateSizes,
			want: []row{
				{Name: "set-0-prefill-worker", Template: "prefill-worker", Gang: "set-0", BaseGang: "set-0"},
				{Name: "set-0-prefill-0-worker", Template: "worker", Group: "prefill", GroupName: "set-0-prefill", Gang: "set-0", BaseGang: "set-0"},
				{Name: "set-0-r", Template: "r", Gang: "set-0", BaseGang: "set-0"},
			},
		},
		"copies up to the minimum are in the base gang, each further one is a gang of its own": {
			set: inferenceSet(template("router", 1, 1), template("leader", 1, 1), template("worker", 3, 3), group("decode", 4, 2, "worker", "leader")), replica: 1, sizes: TemplateSizes,
			want: []row{
				{Name: "set-1-router", Template: "router", Gang: "set-1", BaseGang: "set-1"},
				{Name: "set-1-decode-0-leader", Template: "leader", Group: "decode", GroupName: "set-1-decode", Copy: 0, Gang: "set-1", BaseGang: "set-1"},
				{Name: "set-1-decode-1-leader", Template: "leader", Group: "decode", GroupName: "set-1-decode", Copy: 1, Gang: "set-1", BaseGang: "set-1"},
				{Name: "set-1-decode-2-leader", Template: "leader", Group: "decode", GroupName: "set-1-decode", Copy: 2, Gang: "set-1-decode-0", BaseGang: "set-1"},
				{Name: "set-1-decode-3-leader", Template: "leader", Group: "decode", GroupName: "set-1-decode", Copy: 3, Gang: "set-1-decode-1", BaseGang: "set-1"},
				{Name: "set-1-decode-0-worker", Template: "worker", Group: "decode", GroupName: "set-1-decode", Copy: 0, Gang: "set-1", BaseGang: "set-1"},
				{Name: "set-1-decode-1-worker", Template: "worker", Group: "decode", GroupName: "set-1-decode", Copy: 1, Gang: "set-1", BaseGang: "set-1"},
				{Name: "set-1-decode-2-worker", Template: "worker", Group: "decode", GroupName: "set-1-decode", Copy: 2, Gang: "set-1-decode-0", BaseGang: "set-1"},
				{Name: "set-1-decode-3-worker", Template: "worker", Group: "decode", GroupName: "set-1-decode", Copy: 3, Gang: "set-1-decode-1", BaseGang: "set-1"},
			},
		},
		"one copy and a minimum of one unless the template says more": {
			set: inferenceSet(template("a", 1, 1), group("g", -1, -1, "a")), sizes: TemplateSizes,
			want: []row{{Name: "set-0-g-0-a", Template: "a", Group: "g", GroupName: "set-0-g", Gang: "set-0", BaseGang: "set-0"}},
		},
		"a minimum of one when only the size is known": {
			set: inferenceSet(template("a", 1, 1), group("g", -1, -1, "a")), sizes: sizes(2),
			want: []row{
				{Name: "set-0-g-0-a", Template: "a", Group: "g", GroupName: "set-0-g", Copy: 0, Gang: "set-0", BaseGang: "set-0"},
				{Name: "set-0-g-1-a", Template: "a", Group: "g", GroupName: "set-0-g", Copy: 1, Gang: "set-0-g-0", BaseGang: "set-0"},
			},
		},
		"a group that is scaled to nothing": {
			set: inferenceSet(template("a", 1, 1), template("b", 1, 1), group("g", 2, 1, "a")), sizes: sizes(0),
			want: []row{{Name: "set-0-b", Template: "b", Gang: "set-0", BaseGang: "set-0"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []row
			for _, e := range ExpectedCliques(tc.set, tc.replica, tc.sizes) {
				r := row{Name: e.Name, Template: e.Template.Name, GroupName: e.GroupName, Copy: e.Copy, Gang: e.Gang, BaseGang: e.BaseGang}
				if e.Group != nil {
					r.Group = e.Group.Name
				}
				expect(t, "replica", tc.replica, e.Replica)
				got = append(got, r)
			}
			expect(t, "cliques", tc.want, got)
		})
	}
}

func TestExpectedCliquesAsksForTheSizesOfItsReplica(t *testing.T) {
	ExpectedCliques(inferenceSet(template("a", 1, 1), group("g", 2, 1, "a")), 3, func(replica int32, config *grovev1alpha1.PodCliqueScalingGroupConfig) int32 {
		expect(t, "replica", int32(3), replica)
		expect(t, "group", "g", config.Name)
		return 1
	})
}

func TestAttemptsAndHashesAreFoundByIndexAndName(t *testing.T) {
	pcs := inferenceSet(replicaAttempt(2, 5), replicaAttempt(0, 1))
	expect(t, "attempt of replica 0", int32(1), ReplicaAttempt(pcs, 0))
	expect(t, "attempt of replica 2", int32(5), ReplicaAttempt(pcs, 2))
	expect(t, "attempt of a replica that is not told of", int32(0), ReplicaAttempt(pcs, 1))

	scalingGroup := &grovev1alpha1.PodCliqueScalingGroup{}
	scalingGroup.Status.ReplicaAttempts = []grovev1alpha1.ScalingGroupReplicaAttempt{{Index: 3, Attempt: 2, SetAttempt: 7}, {Index: 1, Attempt: 4}}
	expect(t, "attempt of copy 3", int32(2), CopyAttempt(scalingGroup, 3))
	expect(t, "attempt of copy 1", int32(4), CopyAttempt(scalingGroup, 1))
	expect(t, "attempt of a copy that was never recycled", int32(0), CopyAttempt(scalingGroup, 0))
	expect(t, "attempt of a copy without a group", int32(0), CopyAttempt(nil, 3))

	pcs.Status.CliqueHashes = []grovev1alpha1.CliqueHash{{Name: "prefill-worker", Hash: "p"}, {Name: "worker", Hash: "w"}}
	expect(t, "hash", "w", TemplateHash(pcs, "worker"))
	expect(t, "hash of a clique that is not there", "", TemplateHash(pcs, "x"))
}

// The clique in the template is found by the name that it leads to, never by a suffix,
// and at a cost that no label's value can raise.
func TestTemplateOf(t *testing.T) {
	pcs := &grovev1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Name: "llm"}}
	pcs.Spec.Template.Cliques = []grovev1alpha1.PodCliqueTemplateSpec{{Name: "worker"}, {Name: "decode-worker"}, {Name: "leader"}}
	pcs.Spec.Template.PodCliqueScalingGroups = []grovev1alpha1.PodCliqueScalingGroupConfig{{Name: "g", CliqueNames: []string{"leader"}}}
	tests := map[string]struct {
		clique, replica, copyIndex, want string
	}{
		"standalone":                     {"llm-0-worker", "0", "", "worker"},
		"one that ends like another":     {"llm-0-decode-worker", "0", "", "decode-worker"},
		"member":                         {"llm-0-g-7-leader", "0", "7", "leader"},
		"member of a far copy":           {"llm-0-g-2147483647-leader", "0", "2147483647", "leader"},
		"member without its copy":        {"llm-0-g-7-leader", "0", "", ""},
		"another replica than its label": {"llm-1-worker", "0", "", ""},
		"no replica":                     {"llm-0-worker", "", "", ""},
		"no clique of the set":           {"llm-0-x", "0", "", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			clique := &grovev1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Name: tc.clique, Labels: map[string]string{
				labels.ReplicaIndex: tc.replica, labels.ScalingGroupReplicaIndex: tc.copyIndex,
			}}}
			got := ""
			if template := TemplateOf(pcs, clique); template != nil {
				got = template.Name
			}
			expect(t, "template", tc.want, got)
		})
	}
}
