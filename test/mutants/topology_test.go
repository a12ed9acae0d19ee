package mutants

// topologyMutants are mistakes of topology: each places pods apart that belong together, holds
// them up for what is not there, or says what is not so.
func topologyMutants() map[string]mutant {
	return map[string]mutant{
		"topology: a missing level holds its place": {
			file: gang + "topology.go", old: "		if level < 0 {\n			return nil\n		}\n", new: "		level = max(level, 0)\n",
		},
		"topology: a scaled gang is placed as its set alone": {
			file: gang + "topology.go", old: "		whole = levels.place(first.Group.TopologyConstraint).within(set)\n", new: "		_ = first\n",
		},
		"topology: what is broader than around it counts": {
			file: gang + "topology.go", old: "out := place{required: max(p.required, outer.required), preferred: p.preferred}", new: "out := place{required: p.required, preferred: p.preferred}",
		},
		"topology: a part of a gang is taken for all of it": {
			file: gang + "topology.go", old: "len(config.PodGroupNames) == len(spec.PodGroups)", new: "len(config.PodGroupNames) > 0",
		},
		"topology: a part is all of a gang of which the rest is scaled to 0": {
			file: gang + "topology.go", old: "	if !topology.Support.Parts && len(members) < sizeOfGang(pcs, members[0]) {", new: "	if false {",
		},
		"topology: and of a gang of which the rest is scaled to 0 later": {
			file: gang + "topology.go", old: "	if len(groups) < len(podGang.Spec.PodGroups) {", new: "	if false {",
		},
		"topology: what is switched off is followed": {
			file: gang + "topology.go", old: "topology.Off || topology.Binding == nil", new: "topology.Binding == nil",
		},
		"topology: a gang changes in the middle of its attempt": {
			file: ctrl + "replica/desired.go", old: "gang.GangAttempt(existing) >= plan.attempt && topology.Support.Fixed", new: "gang.GangAttempt(existing) > plan.attempt && topology.Support.Fixed",
		},
		"topology: a gang is made before its topology is seen": {
			file: ctrl + "replica/controller.go", old: "	if !topology.Same(have.topology, current) {\n", new: "	if !topology.Same(have.topology, current) && false {\n",
		},
		"topology: any gang that does not fit misses its topology": {
			file: sched + "native/explain.go", old: "hasTopology(group) && (says(", new: "(says(",
		},
		"topology: a group is placed by what is dropped": {
			file: sched + "native/native.go", old: "key != \"\" && topology {", new: "key != \"\" {",
		},
		"topology: KAI waits for a topology that it cannot have": {
			file: sched + "kai/kai.go", old: "b.topologies || podGang.Annotations[labels.TopologyName] == \"\"", new: "podGang.Annotations[labels.TopologyName] != \"\"",
		},
		"topology: gangs that are placed as it was are not told of": {
			file: gang + "topology_status.go", old: "if RequiredOfAll(want) != RequiredOfAll(&podGang.Spec) {", new: "if RequiredOfAll(want) != RequiredOfAll(&podGang.Spec) && false {",
		},
		"topology: somebody else's topology is deleted": {
			file: ctrl + "clustertopologybinding/controller.go", old: "current != nil && !metav1.IsControlledBy(current, binding)", new: "current != nil && false",
		},
	}
}
