package mutants

const (
	grouping = "pkg/podgrouper/"
	podGroup = ctrl + "podgroup/"
)

// groupingMutants are mistakes of the pod grouper's webhook, its certificate and its
// controller: each of them puts a pod into a group that is never placed, keeps pods from being
// created, places a gang in part, or says what is not so.
func groupingMutants() map[string]mutant {
	return map[string]mutant{
		"grouping: a pod joins a group whose priority it cannot have": {
			file: grouping + "admission/class.go", old: "return exists && (live.priority == nil || *live.priority == value)", new: "return exists && value == value",
		},
		"grouping: a group gets a class of the system": {
			file: grouping + "admission/members.go", old: "	if m.tooHigh(class) {", new: "	if false && m.tooHigh(class) {",
		},
		"grouping: pods in groups from before are waited for": {
			file: podGroup + "native.go", old: "	n := r.strays(s)\n", new: "	n := min(0, r.strays(s))\n",
		},
		"grouping: groups of KAI have no queue": {
			file: grouping + "keys.go", old: "const DefaultQueue = \"default-queue\"", new: "const DefaultQueue = \"\"", tests: "./pkg/podgrouper",
		},
		"grouping: a pod gets a class that is gone": {
			file: grouping + "admission/class.go", old: "return exists && (live.priority == nil", new: "return (exists || live.name != \"\") && (live.priority == nil",
		},
		"grouping: pods of a new group keep their own classes": {
			file: grouping + "admission/members.go", old: "	if live == nil && !identity.PerPod {", new: "	if false && live == nil {",
		},
		"grouping: a pod that is tried out decides for the others": {
			file: grouping + "admission/recent.go", old: "	if !dryRun {\n", new: "	if dryRun || !dryRun {\n",
		},
		"grouping: the priority of another class stays in the pod": {
			file: grouping + "admission/class.go", old: "	pod.Spec.Priority, pod.Spec.PreemptionPolicy = nil, nil\n", new: "",
		},
		"grouping: a pod in a group is put into another": {
			file: grouping + "admission/members.go", old: "pod.Spec.SchedulingGroup != nil || len(pod.Spec.EvictionResponders) > 0", new: "len(pod.Spec.EvictionResponders) > 0",
		},
		"grouping: marks copied from another pod count": {
			file: grouping + "admission/members.go", old: "	forgetCopies(pod)\n", new: "",
		},
		"grouping: an owner that changes while it is read is kept as it was": {
			file: grouping + "owners/lookups.go", old: "	if l.removed.Load() == removed {\n", new: "	if l.removed.Load() >= removed {\n",
		},
		"grouping: a group has a name that comes back": {
			file: grouping + "name.go", old: "naming.Hash(uid, m.SubKey)", new: "naming.Hash(uid[:0], m.SubKey)",
		},
		"grouping: a minimum above the pods that come at once": {
			file: grouping + "decision.go", old: "ptr.To(int32(min(asked, most)))", new: "ptr.To(int32(asked))",
		},
		"grouping: pods from before that have ended are forgotten": {
			file: podGroup + "pods/cache.go", old: "return GroupOf(pod) == \"\" && pod.Spec.SchedulingGroup == nil", new: "return GroupOf(pod) == \"\" && pod.Spec.SchedulingGroup == nil && !HasEnded(pod)",
		},
		"grouping: a group is not looked at when its pods are known": {
			file: podGroup + "loose.go", old: "	if !known && await {\n", new: "	if !known && await && false {\n",
		},
		"grouping: any pod that names a group lowers its minimum": {
			file: podGroup + "native.go", old: "return s.loose.Has(pod.UID) || pods.IsGrouped(pod)", new: "return true",
		},
		"grouping: pods of other schedulers lower the minimum of a group": {
			file: podGroup + "native.go", old: "	if r.backEndOf(pod) != podgrouper.Native {\n		return false\n	}\n", new: "",
		},
		"grouping: the first pod of a workload that starts anew is placed alone": {
			file: podGroup + "minimum.go", old: "(m.waiting == 0 || m.coming)", new: "m.waiting == 0",
		},
		"grouping: a replacement waits for ever for members that were cleared away": {
			file: podGroup + "minimum.go", old: "(m.waiting == 0 || m.coming)", new: "true",
		},
		"grouping: nobody looks again when no more pods come": {
			file: podGroup + "minimum.go", old: "		s.again = m.settles\n", new: "",
		},
		"grouping: a pod from before hides that the scheduler's group is missing": {
			file: podGroup + "status/explain.go", old: "s.BackEnd == podgrouper.Native && c.waiting > 0", new: "s.BackEnd == podgrouper.Native && c.waiting > 0 && c.loose == 0",
		},
		"grouping: a group that was placed once waits for no members": {
			file: podGroup + "status/explain.go", old: "inGroup && s.Native != nil && c.loose > 0", new: "inGroup && s.Native != nil && !native.IsScheduled(s.Native) && c.loose > 0",
		},
		"grouping: a replacement waits for pods from before that succeeded": {
			file: podGroup + "stray.go", old: "pod.Status.Phase == corev1.PodSucceeded || (pod.Del", new: "(pod.Del",
		},
		"grouping: a queue that was set on KAI's copy is lost": {
			file: podGroup + "kai.go", old: "		asked.Queue = live.Spec.Queue\n", new: "",
		},
		"grouping: the label of a group of KAI without a queue counts for nothing": {
			file: podGroup + "follow.go", old: "cmp.Or(out.Labels[podgrouper.QueueLabel], s.described.Queue)", new: "cmp.Or(s.described.Queue, out.Labels[podgrouper.QueueLabel])",
		},
	}
}
