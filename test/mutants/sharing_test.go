package mutants

// sharingMutants are mistakes of claims that pods share: each takes devices from pods, gives them
// to others, shows what is not to be seen, or leaves pods waiting.
func sharingMutants() map[string]mutant {
	return map[string]mutant{
		"sharing: a claim is removed while a pod uses it": {
			file: ctrl + "replica/claims.go", old: "!wanted[name] && len(claim.Status.ReservedFor) == 0", new: "!wanted[name]",
		},
		"sharing: claims of what is not seen are removed": {
			file: ctrl + "replica/claims.go", old: "			isKnown = false\n", new: "",
		},
		"sharing: a claim of the whole set is made by each replica": {
			file: gang + "sharing.go", old: "!isPerReplica(sharing) && replica != 0", new: "false",
		},
		"sharing: a filter that names a group leaves its cliques out": {
			file: gang + "sharing.go", old: "(group != nil && slices.Contains(filter.ChildScalingGroupNames, group.Name))", new: "false",
		},
		"sharing: an allocation is shown once for ever": {
			file: gang + "sharing.go", old: "claim.Annotations[labels.AllocationSeen] == first", new: "claim.Annotations[labels.AllocationSeen] != \"\"",
		},
		"sharing: the scheduler's allocation is not looked at": {
			file: ctrl + "replica/setup.go", old: "gang.UnseenAllocation(e.ObjectNew) != \"\" &&", new: "false &&",
		},
		"sharing: a template of another namespace is not asked for again": {
			file: "pkg/apiserver/admission/claimtemplate/claimtemplate.go", old: "		if asked.Has(foreign.reference) {\n", new: "		if a.GetOldObject() != nil || asked.Has(foreign.reference) {\n",
		},
	}
}
