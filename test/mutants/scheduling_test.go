package mutants

const sched = "pkg/scheduling/"

// schedulingMutants are mistakes of the back ends: each of them lets a gang run in part, wait
// for ever, or say what is not so.
func schedulingMutants() map[string]mutant {
	return map[string]mutant{
		"scheduling: a gang is released before it is complete": {
			file: sched + "none/none.go", old: "there < needed.Members && !gang.WasScheduled(podGang)", new: "there == 0",
		},
		"scheduling: a replacement in a gang that runs waits for the others": {
			file: sched + "none/none.go", old: "there < needed.Members && !gang.WasScheduled(podGang)", new: "there < needed.Members",
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
			file: sched + "native/native.go", old: "policy.MinCount < needed.Members && needed.Raise", new: "policy.MinCount < needed.Members",
		},
		"scheduling: cliques that come back from 0 are placed pod by pod": {
			file: sched + "native/native.go", old: "policy.MinCount < needed.Members && needed.Raise", new: "policy.MinCount < 0 && needed.Raise",
		},
		"scheduling: a replacement waits for pods that have finished outside its group": {
			file: sched + "native/native.go", old: "return !isIn(pod, name) && !hasEnded(pod)", new: "return !isIn(pod, name) && pod.Status.Phase != corev1.PodRunning",
		},
		"scheduling: pods outside a group are waited for when the others come back": {
			file: sched + "native/native.go", old: " || raises(current, needed) {", new: " {",
		},
		"scheduling: a gang of nobody has a group": {
			file: sched + "native/native.go", old: "	if needed.Members < 1 {\n		return nil\n	}\n", new: "",
		},
		"scheduling: a gang that has finished in part is a whole again": {
			file: gang + "podgang.go", old: "Raise: left == all", new: "Raise: true",
		},
		"scheduling: pods of a clique that comes back do not wait until its gang's group is of so many": {
			file: ctrl + "podclique/controller.go", old: " && gang.IsTold(podGang)", new: "",
		},
		"scheduling: surplus pods of a clique that comes back do not wait for its members": {
			file: gang + "replacement.go", old: "(index >= need && !awake)", new: "(index < 0 && !awake)",
		},
		"scheduling: a replacement waits for pods of a PodGang that was deleted": {
			file: sched + "native/native.go", old: "return !isIn(pod, name) && !hasEnded(pod)", new: "return false",
		},
		"scheduling: pods of a PodGang that was deleted have no place": {
			file: sched + "native/native.go", old: "(all > 0 && placed >= all)", new: "(all < 0 && placed >= all)",
		},
		"scheduling: KAI is not told whose pods are left of a PodGang that was deleted": {
			file: sched + "kai/kai.go", old: "group == \"\" || group == groupName(podGang)", new: "true || group == groupName(podGang)",
		},
		"scheduling: a pod above the minimum has a newer class than its gang": {
			file: sched + "native/native.go", old: "PrepareSurplus(pod *corev1.Pod, podGang *schedulerv1alpha1.PodGang) {\n	pod.Spec", new: "PrepareSurplus(pod *corev1.Pod, podGang *schedulerv1alpha1.PodGang) {\n	pod = pod.DeepCopy()\n	pod.Spec",
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
