package mutants

// huntedMutants are mistakes after which a set waits for ever, or starts too early. The
// hunt among sets that are drawn by lot is to find each without being told where to look.
func huntedMutants() map[string]mutant {
	const setup = ctrl + "replica/setup.go"
	all := map[string]mutant{
		"a gate wants what has succeeded to be Ready": {
			file: gang + "gate.go", old: "return Available(clique) >= max(effectiveMinAvailable(&clique.Spec), 1)",
			new: "return clique.Status.ReadyReplicas >= max(effectiveMinAvailable(&clique.Spec), 1)",
		},
		"a gate counts all pods of a clique that others wait for": {
			file: gang + "gate.go", old: "return Available(clique) >= max(effectiveMinAvailable(&clique.Spec), 1)", new: "return Available(clique) >= clique.Spec.Replicas",
		},
		"a gate opens when one pod is there": {
			file: gang + "gate.go", old: "return Available(clique) >= max(effectiveMinAvailable(&clique.Spec), 1)", new: "return Available(clique) >= 1",
		},
		"a gate waits for cliques of scaled gangs": {
			file: gang + "gate.go", old: " || (!sameGroup && parent.Gang != parent.BaseGang)", new: "",
		},
		"a copy waits for all copies": {
			file: gang + "gate.go", old: "(sameGroup && parent.Copy != child.Copy) || ", new: "",
		},
		"all wait for the first clique": {
			file: gang + "gate.go", old: "return []string{cliques[i-1].Name}", new: "return []string{cliques[0].Name}",
		},
		"a barrier waits for the targets of all gangs": {
			file: gang + "gate.go", old: "barriers[w.Gang] = append(barriers[w.Gang], w)", new: "barriers[w.BaseGang] = append(barriers[w.BaseGang], w)",
		},
		"a stage wants what has succeeded to be Ready": {
			file: gang + "startup.go", old: "return min(Available(clique), want), want", new: "return min(clique.Status.ReadyReplicas, want), want",
		},
		"a stage opens with the minimum of the one before": {
			file: gang + "startup.go", old: "	want = clique.Spec.Replicas\n", new: "	want = effectiveMinAvailable(&clique.Spec)\n",
		},
		"a barrier of a copy that has expired ends nothing": {
			file: gang + "scalinggroup.go", old: "		recycleExpired(s, copies, status, now, &decision)\n", new: "",
		},
		"it is not said what is waited for": {
			file: gang + "replicastatus.go", old: "WaitingFor: waiting,\n", new: "\n",
		},
		"it is not said that a gang has no room": {
			file: gang + "replicastatus.go", old: "		waiting.Status, waiting.Message = condition.Reason, condition.Message\n", new: "",
		},
		"surplus pods are never made": {
			file: gang + "replacement.go", old: "return m.BaseScheduled && m.Scheduled", new: "return m.BaseScheduled && m.Scheduled && false",
		},
		"pods of scaled gangs are made before the base gang has a place": {
			file: gang + "replacement.go", old: "	if member {\n		return m.BaseScheduled\n	}", new: "	if member {\n		return true\n	}",
		},
		"nobody looks at the gate when a clique is there": {
			file: setup, old: "return gang.AtGate(e.ObjectOld) != gang.AtGate(e.ObjectNew)", new: "return false",
		},
		"nobody is told of a stage that opens": {
			file: setup, old: " ||\n				!gang.HaveSameStages(e.ObjectOld, e.ObjectNew)", new: "",
		},
		"a copy is not told that its members are there": {
			file: setup, old: "gang.HasAll(e.ObjectOld) != gang.HasAll(e.ObjectNew)", new: "false",
		},
		"cliques that start after each other are admitted": {
			file: valid + "graph.go", old: "for _, c := range startsAfter(template, path).cycles(names) {", new: "for _, c := range startsAfter(template, path).cycles(nil) {",
		},
		"a target of the barrier that waits for another is admitted": {
			file: valid + "barrier.go", old: "if len(targets) < 2 {", new: "if len(targets) >= 0 {",
		},
	}
	hunted := make(map[string]mutant, len(all))
	for name, m := range all {
		m.tests = "./test/deadlock"
		hunted["hunted: "+name] = m
	}
	return hunted
}
