package mutants

const grouping = "pkg/podgrouper/"

// groupingMutants are mistakes of the pod grouper's webhook and its certificate: each of them
// puts a pod into a group that is never placed, or keeps pods from being created.
func groupingMutants() map[string]mutant {
	return map[string]mutant{
		"grouping: a pod joins a group whose priority it cannot have": {
			file: grouping + "admission/class.go", old: "return exists && (live.priority == nil || *live.priority == value)", new: "return exists && value == value",
		},
		"grouping: a pod gets a class that is gone": {
			file: grouping + "admission/class.go", old: "return exists && (live.priority == nil", new: "return (exists || live.name != \"\") && (live.priority == nil",
		},
		"grouping: pods of a new group keep their own classes": {
			file: grouping + "admission/members.go", old: "	case !identity.PerPod:\n", new: "	case !identity.PerPod && false:\n",
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
	}
}
