package mutants

const sched = "pkg/scheduling/"

// schedulingMutants are mistakes of the back ends: each of them lets a gang run in part, wait
// for ever, or say what is not so.
func schedulingMutants() map[string]mutant {
	return map[string]mutant{
		"scheduling: a gang is released before it is complete": {
			file: sched + "none/none.go", old: "there < needed && !gang.WasScheduled(podGang)", new: "there == 0",
		},
		"scheduling: a replacement in a gang that runs waits for the others": {
			file: sched + "none/none.go", old: "there < needed && !gang.WasScheduled(podGang)", new: "there < needed",
		},
		"scheduling: pods on their way out complete a gang": {
			file: sched + "none/none.go", old: "		if pod.DeletionTimestamp != nil {\n			continue\n		}\n", new: "",
		},
		"scheduling: the pods of a gang are not held": {
			file: sched + "none/none.go", old: "	if gang.WasScheduled(podGang) {\n		return\n	}\n", new: "	if !gang.WasScheduled(podGang) {\n		return\n	}\n",
		},
		"scheduling: a pod that took a name is released": {
			file: sched + "none/none.go", old: `{"metadata":{"uid":%q},"spec"`, new: `{"metadata":{"labels":{"uid":%q}},"spec"`,
		},
		"scheduling: gated pods are explained by what is said of them": {
			file: sched + "members.go", old: " && c.Reason != corev1.PodReasonSchedulingGated {", new: " {",
		},
		"scheduling: it is not told what the nodes lack": {
			file: sched + "native/explain.go", old: "missing != \"\" && ", new: "missing == \"\" && ",
		},
		"scheduling: a pod that waits with its gang hides what another lacks": {
			file: sched + "members.go", old: "; missing != \"\" {", new: "; missing == \"-\" {",
		},
		"scheduling: every name of a scheduler is Kubernetes' own": {
			file: sched + "backends.go", old: "	if backend, ok := b.ByScheduler[schedulerName]; ok {", new: "	if backend, ok := b.ByScheduler[corev1.DefaultSchedulerName]; ok {",
		},
		"scheduling: what a gang of KAI says no more stays": {
			file: sched + "kai/kai.go", old: "want == nothing && !slices.Contains(strings.Split(said, \",\"), field)", new: "want == nothing && !slices.Contains(strings.Split(said, \",\"), field+\"?\")",
		},
		"scheduling: an earlier attempt's group stays": {
			file: sched + "native/native.go", old: "attemptOf(group) >= attemptOf(podGang)", new: "attemptOf(group) <= attemptOf(podGang)",
		},
		"scheduling: the minimum of a group is raised": {
			file: sched + "native/native.go", old: "policy == nil || policy.MinCount <= needed", new: "policy == nil || policy.MinCount == needed",
		},
		"scheduling: a replacement waits for pods of a PodGang that was deleted": {
			file: sched + "native/native.go", old: "gang.MembersNeeded(podGang, nil)-outside(members, name)", new: "gang.MembersNeeded(podGang, nil)-0*outside(members, name)",
		},
		"scheduling: pods of a PodGang that was deleted have no place": {
			file: sched + "native/native.go", old: "(all > 0 && outside(members, group.Name) >= all)", new: "(all < 0 && outside(members, group.Name) >= all)",
		},
		"scheduling: KAI is not told whose pods are left of a PodGang that was deleted": {
			file: sched + "kai/kai.go", old: "group == \"\" || group == groupName(podGang)", new: "true || group == groupName(podGang)",
		},
		"scheduling: members that differ are a scheduler's fault": {
			file: sched + "native/explain.go", old: "	case says(\"all pods in a single pod group should have the same\"):\n		return schedulerv1alpha1.ReasonMemberMismatch\n", new: "",
		},
		"scheduling: a gang that runs is explained": {
			file: gang + "explain.go", old: "		if counts.waiting == 0 {\n			return nil\n		}\n", new: "",
		},
		"scheduling: a gate in the way is not told": {
			file: gang + "explain.go", old: "	case s.Gated > 0:\n", new: "	case s.Gated > counts.need:\n",
		},
		"scheduling: an explanation is written in each pass": {
			file: gang + "explain.go", old: "			return before\n", new: "",
		},
		"scheduling: a gang has no priority but its set's": {
			file: gang + "update.go", old: "		if class := clique.PodSpec.PriorityClassName; class != \"\" {\n			return class\n		}\n", new: "		_ = clique\n",
		},
	}
}
