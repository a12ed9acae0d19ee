package gang

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
)

func TestTopologyCondition(t *testing.T) {
	set := func(options ...setOption) *grovev1alpha1.PodCliqueSet {
		return inferenceSet(append([]setOption{template("router", 1, 1), template("worker", 2, 2)}, options...)...)
	}
	oneLevel, allLevels := TopologySupport{Gangs: true, Fixed: true}, TopologySupport{Gangs: true, Parts: true}
	// placed are gangs with what is required of them.
	placed := func(keys map[string]string) map[string]*schedulerv1alpha1.PodGang {
		gangs := map[string]*schedulerv1alpha1.PodGang{}
		for name, key := range keys {
			gangs[name] = &schedulerv1alpha1.PodGang{Spec: *placedGang(key, nil, name+"-router", name+"-worker")}
		}
		return gangs
	}
	tests := map[string]struct {
		set      *grovev1alpha1.PodCliqueSet
		topology Topology
		gangs    map[string]*schedulerv1alpha1.PodGang
		// want is status, reason and message; empty when there is no condition.
		want string
	}{
		"no constraint": {set: set()},
		"all levels are there": {
			set: set(packedSet("gpu: rack")), topology: Topology{Binding: gpus(), Support: oneLevel},
			want: `False AllClusterTopologyLevelsAvailable all levels are in ClusterTopologyBinding "gpu"`,
		},
		"levels are missing": {
			set: set(packedSet("gpu: block rack"), packedClique(0, ": socket block")), topology: Topology{Binding: gpus(), Support: oneLevel},
			want: `True ClusterTopologyLevelsUnavailable ClusterTopologyBinding "gpu" lacks the levels block, socket: pods are placed without these`,
		},
		"there is no topology": {
			set: set(packedSet("gpu: rack")), topology: Topology{Support: allLevels},
			want: `Unknown ClusterTopologyNotFound there is no ClusterTopologyBinding "gpu": pods are placed without the constraints`,
		},
		"none is named": {
			set: set(packedSet(": rack")), topology: Topology{Support: allLevels},
			want: `Unknown TopologyNameMissing no constraint names a ClusterTopologyBinding: pods are placed without the constraints`,
		},
		"it is switched off": {
			set: set(packedSet("gpu: rack")), topology: Topology{Off: true, Support: allLevels},
			want: `Unknown TopologyAwareSchedulingDisabled the controller-manager runs with --topology-aware-scheduling=false: pods are placed without the constraints`,
		},
		"the scheduler looks at none": {
			set: set(packedSet("gpu: rack")), topology: Topology{Binding: gpus(), Support: TopologySupport{Lacks: "it is so"}},
			want: `Unknown TopologyAwareSchedulingDisabled it is so: pods are placed without the constraints`,
		},
		"the scheduler knows one level": {
			set: set(packedSet("gpu: zone rack"), packedClique(1, ": host")), topology: Topology{Binding: gpus(), Support: oneLevel},
			want: `False AllClusterTopologyLevelsAvailable all levels are in ClusterTopologyBinding "gpu"; the scheduler knows one level for a whole gang, which is required, and is not told ` +
				`spec.template.topologyConstraint.pack.preferred (rack); spec.template.cliques[1].topologyConstraint.pack.required (host)`,
		},
		"the scheduler knows all": {
			set: set(packedSet("gpu: zone rack"), packedClique(1, ": host")), topology: Topology{Binding: gpus(), Support: allLevels},
			want: `False AllClusterTopologyLevelsAvailable all levels are in ClusterTopologyBinding "gpu"`,
		},
		"gangs are placed as it was": {
			set: set(replicas(3), packedSet("gpu: rack")), topology: Topology{Binding: gpus(), Support: oneLevel},
			gangs: placed(map[string]string{"set-0": "", "set-1": "key/rack", "set-2": "key/zone"}),
			want:  `False AllClusterTopologyLevelsAvailable all levels are in ClusterTopologyBinding "gpu"; PodGangs that are placed by other constraints until their next attempt: set-0; set-2`,
		},
		"gangs of a topology that is gone": {
			set: set(packedSet("gpu: rack")), topology: Topology{Support: oneLevel}, gangs: placed(map[string]string{"set-0": "key/rack"}),
			want: `Unknown ClusterTopologyNotFound there is no ClusterTopologyBinding "gpu": pods are placed without the constraints; PodGangs that are placed by other constraints until their next attempt: set-0`,
		},
		"a scheduler that changes its mind": {
			set: set(packedSet("gpu: rack")), topology: Topology{Binding: gpus(), Support: allLevels}, gangs: placed(map[string]string{"set-0": ""}),
			want: `False AllClusterTopologyLevelsAvailable all levels are in ClusterTopologyBinding "gpu"`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			snapshot := setOf(tc.set, have{})
			snapshot.Topology, snapshot.Gangs = tc.topology, tc.gangs
			decision := DecideSet(snapshot, now)
			got := ""
			if c := meta.FindStatusCondition(decision.Status.Conditions, grovev1alpha1.ConditionTypeTopologyLevelsUnavailable); c != nil {
				got = string(c.Status) + " " + c.Reason + " " + c.Message
				expect(t, "generation", tc.set.Generation, c.ObservedGeneration)
			}
			expect(t, "condition", tc.want, got)
		})
	}
}

// A set that has ended is not judged again, and one without constraints loses what was said.
func TestTheTopologyConditionComesAndGoes(t *testing.T) {
	told := func(pcs *grovev1alpha1.PodCliqueSet) {
		setCondition(&pcs.Status.Conditions, 1, now, grovev1alpha1.ConditionTypeTopologyLevelsUnavailable, "True", "Before", "before")
	}
	reason := func(pcs *grovev1alpha1.PodCliqueSet) string {
		status := DecideSet(setOf(pcs, have{}), now).Status
		if c := meta.FindStatusCondition(status.Conditions, grovev1alpha1.ConditionTypeTopologyLevelsUnavailable); c != nil {
			return c.Reason
		}
		return ""
	}
	expect(t, "of a set that has ended", "Before", reason(trainingSet(template("a", 1, 1), packedSet("gpu: rack"), phase(grovev1alpha1.PodCliqueSetSucceeded), told)))
	expect(t, "of a set without constraints", "", reason(inferenceSet(template("a", 1, 1), told)))
}

func TestUntold(t *testing.T) {
	const (
		ofSet, ofGroup = "spec.template.topologyConstraint.pack.", "spec.template.podCliqueScalingGroups[0].topologyConstraint.pack."
		ofA, ofB       = "spec.template.cliques[0].topologyConstraint.pack.", "spec.template.cliques[1].topologyConstraint.pack."
	)
	staged := func(pcs *grovev1alpha1.PodCliqueSet) {
		pcs.Spec.StartupPolicy = &grovev1alpha1.StartupPolicy{StartupPolicyOrder: grovev1alpha1.StartupPolicyInOrder}
	}
	a, b := template("a", 1, 1), template("b", 1, 1)
	tests := map[string]struct {
		set  []setOption
		want []string
	}{
		"no constraint":               {[]setOption{a}, nil},
		"required of the set":         {[]setOption{a, b, packedSet("gpu: rack")}, nil},
		"preferred of the set":        {[]setOption{a, packedSet("gpu: zone rack")}, []string{ofSet + "preferred"}},
		"of one clique of two":        {[]setOption{a, b, packedClique(1, "gpu: rack host")}, []string{ofB + "required", ofB + "preferred"}},
		"of the only clique":          {[]setOption{a, packedClique(0, "gpu: rack")}, nil},
		"of a clique in its stage":    {[]setOption{a, b, staged, packedClique(1, "gpu: rack")}, nil},
		"the same as around it":       {[]setOption{a, b, packedSet("gpu: rack"), packedClique(1, ": rack")}, nil},
		"the same as the group's":     {[]setOption{a, b, group("g", 1, 1, "a", "b"), packedGroup("gpu: rack"), packedClique(1, ": rack")}, nil},
		"of a group that is all":      {[]setOption{a, b, group("g", 3, 1, "a", "b"), packedGroup("gpu: rack")}, nil},
		"of copies beside each other": {[]setOption{a, b, group("g", 3, 2, "a", "b"), packedGroup("gpu: rack")}, []string{ofGroup + "required"}},
		"of a group beside a clique":  {[]setOption{a, b, group("g", 1, 1, "a"), packedGroup("gpu: rack")}, []string{ofGroup + "required"}},
		"of a group in stages":        {[]setOption{a, b, staged, group("g", 1, 1, "a", "b"), packedGroup("gpu: rack"), packedClique(0, ": host")}, nil},
		"of copies in stages":         {[]setOption{a, b, staged, group("g", 2, 2, "a", "b"), packedGroup("gpu: rack"), packedClique(0, ": host")}, []string{ofGroup + "required", ofA + "required"}},
		"of a member of a group":      {[]setOption{a, group("g", 2, -1, "a"), packedClique(0, "gpu: host")}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, untold := range Untold(inferenceSet(tc.set...)) {
				got = append(got, untold.Path.String())
				expect(t, "preferred", slices.Contains([]string{ofSet + "preferred", ofB + "preferred"}, untold.Path.String()), untold.Preferred)
			}
			expect(t, "paths", tc.want, got)
		})
	}
}
