package mutants

// updateMutants are mistakes of updates: each takes more of a service than it may, brings a
// template where it does not belong, or never comes to its end.
func updateMutants() map[string]mutant {
	return map[string]mutant{
		"update: one pod too many goes": {
			file: gang + "update_clique.go", old: "			if away <= 0 {\n", new: "			if away < 0 {\n",
		},
		"update: pods that are away for another reason do not count": {
			file: gang + "update_clique.go", old: "s.Turn.MaxUnavailable - (s.Clique.Spec.Replicas - readyIn(pods.current))", new: "s.Turn.MaxUnavailable",
		},
		"update: pods go before it is recorded": {
			file: gang + "update_clique.go", old: "GenerationHash, ReadyReplicas: ready,\n		}\n		return true\n", new: "GenerationHash, ReadyReplicas: ready,\n		}\n		return false\n",
		},
		"update: it ends before the new pods are Ready": {
			file: gang + "update_clique.go", old: "(!old && isReadyAgain(s, pods, progress))", new: "!old",
		},
		"update: a failure without a pod waits for its back-off": {
			file: gang + "update_clique.go", old: " || mendsFailure(s, pods.current, status))", new: ")",
		},
		"update: a gang of another class is up to date": {
			file: gang + "update.go", old: "replicas[i].updated && isOfAnotherClass(s, &replicas[i])", new: "replicas[i].updated && isOfAnotherClass(s, &replicas[i]) && false",
		},
		"update: a gang that comes late has the class of before": {
			file: ctrl + "replica/desired.go", old: "!haveTakenTemplate(pcs, plan)", new: "!gang.IsReplicaInTurn(pcs, replica)",
		},
		"update: annotations of a scaling group stay": {
			file: ctrl + "replica/plan.go", old: "!maps.Equal(group.Annotations, want.Annotations)", new: "false",
		},
		"update: it ends while an old pod is left": {
			file: gang + "update_clique.go", old: "(!old && isReadyAgain(s, pods, progress))", new: "isReadyAgain(s, pods, progress)",
		},
		"update: a newer template forgets how many were Ready": {
			file: gang + "update_clique.go", old: "ready = max(ready, progress.ReadyReplicas)", new: "ready = max(ready, 0)",
		},
		"update: a newer template ends it before its turn": {
			file: gang + "update.go", old: "return progress != nil && progress.PodCliqueSetGenerationHash == generationHash(pcs) && !IsReplicaInTurn(pcs, replica)", new: "return progress != nil && !IsReplicaInTurn(pcs, replica)",
		},
		"update: old pods that come up again are not seen": {
			file: gang + "update_clique.go", old: "				status.CurrentPodTemplateHash = ptr.To(other)\n", new: "",
		},
		"update: a new template waits for the back-off of the old": {
			file: gang + "replacement.go", old: "due.After(now) && !isOfEarlierTemplate(status, failed)", new: "due.After(now)",
		},
		"update: all replicas at once": {
			file: gang + "update.go", old: "	return turn != nil && turn.ReplicaIndex == replica\n", new: "	return turn != nil\n",
		},
		"update: the next replica before the last is available": {
			file: gang + "update.go", old: "if !replica.updated || (turn.WasAvailable && !replica.available) {", new: "if !replica.updated {",
		},
		"update: a replica that never was available blocks the others": {
			file: gang + "update.go", old: "(turn.WasAvailable && !replica.available)", new: "!replica.available",
		},
		"update: the first replica before one without pods": {
			file: gang + "update.go", old: "		case r.scheduled == 0:\n			return 0\n", new: "",
		},
		"update: it does not end": {
			file: gang + "update.go", old: "		progress.UpdateEndedAt = ptr.To(metav1.NewTime(now))\n		return []Event", new: "		return []Event",
		},
		"update: OnDelete deletes": {
			file: gang + "update.go", old: "	if updatesOnDelete(pcs) || progress == nil || progress.UpdateEndedAt != nil", new: "	if progress == nil || progress.UpdateEndedAt != nil",
		},
		"update: two copies at once": {
			file: gang + "update_group.go", old: "			if away >= s.Turn.MaxUnavailable {", new: "			if away > s.Turn.MaxUnavailable {",
		},
		"update: copies that are in turn are not away": {
			file: gang + "update_group.go", old: "if !c.available || inTurn(c.index) {", new: "if !c.available {",
		},
		"update: a gang of another class than its pods": {
			file: gang + "update.go", old: "	progress.CurrentlyUpdating = []grovev1alpha1.PodCliqueSetReplicaUpdateProgress{{\n		ReplicaIndex: next.index, UpdateStartedAt: metav1.NewTime(now), WasAvailable: next.available,\n	}}\n	return renew(s, next)", new: "	progress.CurrentlyUpdating = []grovev1alpha1.PodCliqueSetReplicaUpdateProgress{{\n		ReplicaIndex: next.index, UpdateStartedAt: metav1.NewTime(now), WasAvailable: next.available,\n	}}\n	return nil",
		},
		"update: a breach counts meanwhile": {
			file: gang + "availability.go", old: "	case isUpdating(status):\n		return metav1.ConditionUnknown", new: "	case false:\n		return metav1.ConditionUnknown",
		},
		"update: a size that was scaled is reset": {
			file: "pkg/controllers/replica/desired.go", old: "		out.Spec.PodSpec = want.Spec.PodSpec\n", new: "		out.Spec.PodSpec, out.Spec.Replicas = want.Spec.PodSpec, want.Spec.Replicas\n",
		},
		"update: a failure brings the template before its turn": {
			file: "pkg/controllers/replica/desired.go", old: "(raised && gang.IsReplicaInTurn(pcs, expected.Replica))", new: "raised",
		},
	}
}
