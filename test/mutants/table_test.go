package mutants

// mutants are the mistakes, by what a person would call them.
func mutants() map[string]mutant {
	return map[string]mutant{
		"a stage opens though the one before has not come that far": {
			file: gang + "startup.go", old: "waiting.Want == 0 || waiting.Have < waiting.Want", new: "false",
		},
		"a stage stays open in the next attempt": {
			file: gang + "startup.go", old: "before.Index == replica && before.Attempt == attempt", new: "before.Index == replica",
		},
		"the write that restarts a replica opens its stages": {
			file: gang + "startup.go", old: "if !isCurrent(clique.object, replica.attempt+clique.copyAttempt) || clique.object.DeletionTimestamp != nil {", new: "if clique.object == nil || clique.object.DeletionTimestamp != nil {",
		},
		"the gang of a stage that is not open is made": {
			file: ctrl + "replica/plan.go", old: "own.closed || own.incomplete", new: "own.incomplete",
		},
		"copies of a scaling group do not go through the order": {
			file: ctrl + "replica/plan.go", old: "held: held[want.Name]", new: "held: held[want.Name] && false",
		},
		"a gate is opened by cliques that are not there": {
			file: gang + "gate.go", old: "		if !found {\n", new: "		if !found && false {\n",
		},
		"pods of an earlier attempt open a gate": {
			file: gang + "gate.go", old: "!isCurrent(parent.object, replica.attempt+parent.copyAttempt) || !isUpToDate(parent.object)", new: "parent.object == nil || !isUpToDate(parent.object)",
		},
		"the barrier opens when some have started": {
			file: gang + "barrier.go", old: "	if all && ready {\n", new: "	if first != nil && ready {\n",
		},
		"a barrier expires at once": {
			file: gang + "barrier.go", old: "	if now.Before(due) {\n", new: "	if now.Before(due) && false {\n",
		},
		"an expired barrier ends nothing": {
			file: gang + "restart.go", old: "			consider(expiryOf(s, replica, clique))\n", new: "",
		},
		"a barrier that expired in an earlier attempt ends this one": {
			file: gang + "gate.go", old: "entry.Name == clique && entry.Attempt == attempt && entry.Expired", new: "entry.Name == clique && entry.Expired",
		},
		"pods that wait at the barrier are not told by the file": {
			file: ctrl + "replica/gate.go", old: "		updated.Data = map[string]string{podspec.GateFile: text}\n", new: "",
		},
		"a restart is not counted": {
			file: gang + "restart.go", old: "	status.RestartCount++\n", new: "",
		},
		"one restart too many": {
			file: gang + "restart.go", old: "int32(len(due)) > left", new: "int32(len(due)) > left+1",
		},
		"each failing replica is held against the whole budget": {
			file: gang + "restart.go", old: "left := max(budget-status.RestartCount, 0)", new: "left := budget",
		},
		"a budget that is used up restarts once more instead of failing": {
			file: gang + "restart.go", old: "			return decision\n		}\n	}\n	for i := range replicas {", new: "		}\n	}\n	for i := range replicas {",
		},
		"startTime is set again at each start": {
			file: gang + "set.go", old: "status.Phase == grovev1alpha1.PodCliqueSetRunning && status.StartTime == nil", new: "status.Phase == grovev1alpha1.PodCliqueSetRunning",
		},
		"Failed is set while pods are active": {
			file: gang + "set.go", old: "case isFailing(&s.Set.Status) && s.NoActivePods:", new: "case isFailing(&s.Set.Status):",
		},
		"Failed is set while a clique may be about to make a pod": {
			file: ctrl + "podcliqueset/controller.go", old: "!gang.KnowsOfFailure(&current[i])", new: "i < 0",
		},
		"success wins over a failure": {
			file: gang + "set.go", old: "case !isFailing(status) && s.Set.Spec.WorkloadType", new: "case s.Set.Spec.WorkloadType",
		},
		"maxRuntime ends a job that was done in time": {
			file: gang + "restart.go", old: "if s.FinishedAt.IsZero() || !s.FinishedAt.Before(runtime) {", new: "{",
		},
		"a deadline comes up to a second early": {
			file: gang + "deadline.go", old: "Add(time.Second + while)", new: "Add(while)",
		},
		"termination does not wait for its delay": {
			file: gang + "restart.go", old: "		case breach.due.After(now):\n			decision.Next = earliest(decision.Next, breach.due)\n", new: "",
		},
		"nobody looks again when the delay ends": {
			file: gang + "restart.go", old: "			decision.Next = earliest(decision.Next, breach.due)\n", new: "",
		},
		"gang termination is on without a delay": {
			file: gang + "deadline.go", old: "		return nil\n	}\n	if group != nil", new: "		return new(time.Duration)\n	}\n	if group != nil",
		},
		"a scaling group's own delay is ignored": {
			file: gang + "deadline.go", old: "if group != nil && group.TerminationDelay != nil {", new: "if false {",
		},
		"the breach of an earlier attempt restarts again": {
			file: gang + "restart.go", old: "isIn(clique.object, replica.attempt+CopyAttempt(s.Groups[clique.GroupName], clique.Copy))", new: "true",
		},
		"a group that speaks of an earlier attempt is believed": {
			file: gang + "restart.go", old: " || group.Status.ObservedAttempt != replica.attempt", new: "",
		},
		"a copy is recycled though too few are left": {
			file: gang + "scalinggroup.go", old: "if healthy >= need && s.Parent", new: "if _, _ = healthy, need; s.Parent",
		},
		"a recovering copy counts as available": {
			file: gang + "scalinggroup.go", old: "			recovering++\n			healthy--\n", new: "			recovering++\n",
		},
		"copies are recycled in Training": {
			file: gang + "scalinggroup.go", old: "!isGroupUpdating(status) && s.Group.Spec.WorkloadType != grovev1alpha1.WorkloadTypeTraining", new: "!isGroupUpdating(status)",
		},
		"wasAvailable does not stick": {
			file: gang + "availability.go", old: "case have >= need && !isUpdating(status):\n		status.WasAvailable = true\n", new: "default:\n		status.WasAvailable = have >= need && !isUpdating(status)\n",
		},
		"a clique that is not idle may forget that it was available": {
			file: valid + "status_podclique.go", old: " && neededReplicas(&old.Spec) > 0 {", new: " && false {",
		},
		"what was idle is breached while it starts": {
			file: gang + "availability.go", old: "		status.WasAvailable = false\n	case have", new: "	case have",
		},
		"what was never available is breached": {
			file: gang + "availability.go", old: "case !status.WasAvailable && !cannotBecomeAvailable(s.Clique, completed, status):", new: "case false:",
		},
		"a job that crashes at its first start hangs": {
			file: gang + "availability.go", old: "return isTraining(clique) && clique.Spec.Replicas-countBroken", new: "return false && clique.Spec.Replicas-countBroken",
		},
		"terminating pods count as available": {
			file: gang + "clique.go", old: "		if pod.Terminating() {\n			continue\n		}\n		status.Replicas++", new: "		status.Replicas++",
		},
		"a pass acts before it has recorded": {
			file: gang + "clique.go", old: "	if record {\n		return decision\n	}\n", new: "",
		},
		"the record of an attempt does not start anew": {
			file: gang + "clique.go", old: "	status.CompletedIndexes = \"\"\n	status.FailedIndexes = nil\n	status.RecoveredIndexes = nil\n", new: "",
		},
		"new pods are made beside old ones": {
			file: gang + "replacement.go", old: "if len(pods.old) > 0 || !s.OthersDrained {", new: "if false {",
		},
		"new pods are made beside the old ones of a sibling": {
			file: gang + "replacement.go", old: "if len(pods.old) > 0 || !s.OthersDrained {", new: "if len(pods.old) > 0 {",
		},
		"a finished pod is made again": {
			file: gang + "replacement.go", old: "pods.current.at(index) != nil || completed.Has(index) || !mayJoin", new: "pods.current.at(index) != nil || !mayJoin",
		},
		"exit 0 on SIGTERM counts as finished": {
			file: gang + "completion.go", old: "return pod.DeletionRequested == nil || (!pod.FinishedAt.IsZero() && pod.FinishedAt.Before(*pod.DeletionRequested))", new: "return true",
		},
		"the last request to delete counts as the first": {
			file: gang + "pod.go", old: "if grace == 0 {", new: "if false {",
		},
		"what was told to go finishes later": {
			file: gang + "completion.go", old: "if exitedWithZero(pod) && !wasToldToGo(status, pod) {", new: "if exitedWithZero(pod) {",
		},
		"a pod that has completed is unavailable until its phase says so": {
			file: gang + "pod.go", old: `(reason != reasonContainersNotReady && reason != reasonPodCompleted)`, new: `reason != reasonContainersNotReady`,
		},
		"a failing pod is a breach before its phase says so": {
			file: gang + "availability.go", old: "if !awaitsPhase(s, current, status, have, need) {", new: "if true {",
		},
		"a pod fails as often as it is seen": {
			file: gang + "completion.go", old: "failed != nil && uid != \"\" && failed.PodUID == uid {", new: "failed == nil && uid == \"\" {",
		},
		"record more failures than an object holds": {
			file: gang + "completion.go", old: "if len(status.FailedIndexes)+len(status.RecoveredIndexes) >= grovev1alpha1.MaxFailedIndexes {", new: "if false {",
		},
		"forget an index that has not recovered": {
			file: gang + "recovery.go", old: "if at != nil && (first < 0", new: "if first < 0 || at != nil && (first < 0",
		},
		"an index that was well for a while fails for the first time again": {
			file: gang + "recovery.go", old: "	if !found {\n", new: "	if found || !found {\n",
		},
		"a pod that is known in short fails a second time": {
			file: gang + "completion.go", old: "samePod := known && failed.PodUID != \"\" && strings.HasPrefix(string(uid), string(failed.PodUID))", new: "samePod := known && failed.PodUID == uid && strings.HasPrefix(string(uid), string(failed.PodUID))",
		},
		"the last recoveries are the first to be told in short": {
			file: gang + "recovery.go", old: "return status.FailedIndexes[b].RecoveredTime.Compare(status.FailedIndexes[a].RecoveredTime.Time)", new: "return status.FailedIndexes[a].RecoveredTime.Compare(status.FailedIndexes[b].RecoveredTime.Time)",
		},
		"let a count change in short": {
			file: "pkg/apis/grove/validation/status_podclique_failures.go", old: "was.Count != record.Count ||", new: "",
		},
		"a PodClique that is made starts by the gate of another": {
			file: "pkg/controllers/replica/controller.go", old: "	if err := r.forgetGone(ctx, pcs, key, have, p); err != nil {\n		return false, err\n	}\n", new: "",
		},
		"let any failure make room": {
			file: valid + "status_podclique_failures.go", old: "(was.RecoveredTime == nil || !isFull)", new: "(was == nil || !isFull)",
		},
		"a crash loop within the tolerance never ends": {
			file: gang + "completion.go", old: "failed.Count >= maxFailures && ", new: "false && ",
		},
		"pods of failing sets are replaced": {
			file: gang + "replacement.go", old: "if s.Parent != ParentActive || s.Clique.DeletionTimestamp != nil || !s.Membership.Known", new: "if s.Clique.DeletionTimestamp != nil || !s.Membership.Known",
		},
		"a copy of a pod is one of the clique's": {
			file: gang + "pod.go", old: "		!n.has(pod, index, attempt) {", new: "		n.clique == nil {",
		},
		"an upgrade takes older pods for copies": {
			file: gang + "pod.go", old: "rest == pod.Labels[labels.PodIndex] ||\n", new: "rest == pod.Labels[labels.PodIndex] || false &&\n",
		},
		"a reading from before the record shuts the server": {
			file: "pkg/apiserver/storageguard/readings.go", old: " || reading.Revision < g.record.Revision {", new: " {",
		},
		"params of policies are among what the server waits for": {
			file: "pkg/apiserver/admission/admission.go", old: "	case *validating.Plugin:\n		policies.SetExternalKubeInformerFactory(policyInformers{i.informers})", new: "	case *validating.Plugin:\n		policies.SetExternalKubeInformerFactory(i.informers)",
		},
		"healthy pods go by a size from the past": {
			file: ctrl + "podclique/controller.go", old: "	if takesHealthy(clique, decision.Delete) {", new: "	if false && takesHealthy(clique, decision.Delete) {",
		},
		"a node's clock that is ahead holds a replacement back": {
			file: gang + "completion.go", old: "pod.FinishedAt.IsZero() || at.After(now)", new: "pod.FinishedAt.IsZero()",
		},
		"a node's clock that is behind spares a crash loop its back-off": {
			file: gang + "completion.go", old: "	if at.Before(pod.Created) {\n		at = pod.Created\n	}\n", new: "",
		},
		"pods are deleted without their UID": {
			file: ctrl + "podclique/pods.go", old: "same := client.Preconditions{UID: &pod.UID}", new: "same := client.Preconditions{}",
		},
		"absence from the cache is a loss": {
			file: ctrl + "podclique/controller.go", old: "	pods, err := live.CliquePods(ctx, r.Live, o.snapshot.Clique)\n", new: "	if missing != nil {\n		o.snapshot.Lost = missing\n		return nil\n	}\n	pods, err := live.CliquePods(ctx, r.Live, o.snapshot.Clique)\n",
		},
		"pods are made from a cached set alone": {
			file: ctrl + "podclique/controller.go", old: "if current == nil || gang.ParentOf(current) != o.snapshot.Parent || attemptOf(current, clique) != attemptOf(o.set, clique) {", new: "if false && current == nil {",
		},
		"an attempt begins without a live list": {
			file: ctrl + "podclique/attempt.go", old: "ours && podAttempt < gang.WantedAttempt(sibling, groups, attempt) {", new: "false && ours && podAttempt < gang.WantedAttempt(sibling, groups, attempt) {",
		},
		"an attempt ends without a live look": {
			file: ctrl + "internal/confirm/confirm.go", old: "	if !gang.MayConfirm(clique, current) {", new: "	if true {\n		return true, nil\n	}\n	if !gang.MayConfirm(clique, current) {",
		},
		"cliques that are scaled away raise alarms": {
			file: gang + "event.go", old: " || s.Clique.DeletionTimestamp != nil {\n		// The pods are told to stop", new: " {\n		// The pods are told to stop",
		},
		"events tell of a write that was refused": {
			file: ctrl + "podcliqueset/controller.go", old: "	if err := r.Client.Status().Update(ctx, updated); client.IgnoreNotFound(err) != nil {\n		return reconcile.Result{}, fmt.Errorf(\"write the status: %w\", err)\n	}\n", new: "	err = r.Client.Status().Update(ctx, updated)\n",
		},
		"the set fails while the server has pods that the cache does not show": {
			file: ctrl + "podcliqueset/controller.go", old: "	return !slices.ContainsFunc(pods, isActive), nil\n", new: "	return len(pods) >= 0, nil\n",
		},
		"a gang's attempt falls with a stale scaling group": {
			file: ctrl + "replica/plan.go", old: "if gang.GangAttempt(podGang) > gang.GangAttempt(want) {", new: "if false {",
		},
		"members that have finished are waited for": {
			file: gang + "podgang.go", old: "out.Members = max(left, min(all, 1))", new: "out.Members = all",
		},
		"a gang that was evicted is placed pod by pod": {
			file: gang + "podgang.go", old: "left -= int32(completedOf(&clique.Status).CountBelow(group.MinReplicas))", new: "left -= group.MinReplicas - min(clique.Status.Replicas, group.MinReplicas)",
		},
		"the names of missing pods are not looked up": {
			file: ctrl + "replica/gate.go", old: "	for _, cached := range expired {\n", new: "	for _, cached := range expired[:0] {\n",
		},
		"the time of the barrier stops when the first pod goes": {
			file: gang + "barrier.go", old: "		begun := w.entry.FirstStarted\n", new: "		var begun *metav1.Time\n",
		},
		"counts of another size open a gate": {
			file: gang + "gate.go", old: " || !isUpToDate(parent.object)", new: "",
		},
		"counts of another size open a stage": {
			file: gang + "startup.go", old: "		if !isUpToDate(clique.object) {\n", new: "		if false {\n",
		},
		"a replica goes before its gate is shut": {
			file: ctrl + "replica/controller.go", old: "	if err := r.shutGate(ctx, pcs, key, have); err != nil {\n", new: "	if err := error(nil); err != nil {\n",
		},
		"the gate of a replica that has just come is shut": {
			file: ctrl + "replica/gate.go", old: "if err != nil || !agree(pcs, current, key.Replica) {\n		// To", new: "if _ = current; err != nil {\n		// To",
		},
		"a copy passes a barrier that has expired for its gang": {
			file: gang + "gate.go", old: "		if expired[gang] {\n", new: "		if false {\n",
		},
		"an error puts the deadline off": {
			file: ctrl + "replica/controller.go", old: "		r.queue.AddAfter(key, wait)\n", new: "",
		},
		"pods of a clique that goes open a gate": {
			file: gang + "gate.go", old: "going[staying[i].Name], staying[i].object = true, nil", new: "going[staying[i].Name] = false",
		},
		"a restart count may fall": {
			file: valid + "status_podcliqueset.go", old: "errs := validateNotFalling(count, was, path)", new: "var errs field.ErrorList",
		},
	}
}
