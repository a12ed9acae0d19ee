package gang

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

// How running pods follow a changed template (docs/decisions/0025). One replica of a set is
// updated at a time; in it all standalone cliques pod by pod, and the scaling groups copy by
// copy. Each level records whose turn it is before the level below acts on it (D4): the set
// the replica, a scaling group its copies, a clique that it replaces pods at all.

// PodTemplateHash is the hash of the template that a clique makes its pods from.
func PodTemplateHash(clique *grovev1alpha1.PodClique) string {
	return clique.Labels[labels.PodTemplateHash]
}

// generationHash is the hash that the server gave to all templates of a set together.
func generationHash(pcs *grovev1alpha1.PodCliqueSet) string {
	return ptr.Deref(pcs.Status.CurrentGenerationHash, "")
}

// maxUnavailable is how many pods of a standalone clique, and how many copies of a scaling
// group, an update may keep from being available at once.
func maxUnavailable(pcs *grovev1alpha1.PodCliqueSet) int32 {
	if pcs.Spec.UpdateStrategy == nil {
		return 1
	}
	return max(ptr.Deref(pcs.Spec.UpdateStrategy.MaxUnavailable, 1), 1)
}

// updatesOnDelete says that pods of a set take a new template only when somebody deletes them.
func updatesOnDelete(pcs *grovev1alpha1.PodCliqueSet) bool {
	return pcs.Spec.UpdateStrategy != nil && pcs.Spec.UpdateStrategy.Type == grovev1alpha1.UpdateStrategyOnDelete
}

// IsReplicaInTurn says that it is a replica's turn to be brought to the set's template as it
// is now.
func IsReplicaInTurn(pcs *grovev1alpha1.PodCliqueSet, replica int32) bool {
	progress := pcs.Status.UpdateProgress
	if updatesOnDelete(pcs) || progress == nil || progress.UpdateEndedAt != nil || progress.PodCliqueSetGenerationHash != generationHash(pcs) {
		return false
	}
	turn := currentTurn(progress)
	return turn != nil && turn.ReplicaIndex == replica
}

// isTurnOver says that a replica is not updated for the template as it is now. While nobody
// has decided that yet it may still be.
func isTurnOver(pcs *grovev1alpha1.PodCliqueSet, replica int32) bool {
	progress := pcs.Status.UpdateProgress
	if updatesOnDelete(pcs) {
		return true
	}
	return progress != nil && progress.PodCliqueSetGenerationHash == generationHash(pcs) && !IsReplicaInTurn(pcs, replica)
}

// currentTurn is the replica that is being updated, nil when there is none.
func currentTurn(progress *grovev1alpha1.PodCliqueSetUpdateProgress) *grovev1alpha1.PodCliqueSetReplicaUpdateProgress {
	for i := range progress.CurrentlyUpdating {
		if progress.CurrentlyUpdating[i].UpdateEndedAt == nil {
			return &progress.CurrentlyUpdating[i]
		}
	}
	return nil
}

// replicaTakesTemplate says that cliques of a replica are to make new pods from the set's
// template as it is now: standalone ones, and members of scaling groups in their copy's turn.
// With OnDelete all are, for none is replaced.
func replicaTakesTemplate(pcs *grovev1alpha1.PodCliqueSet, replica int32) bool {
	// In Training the template does not change (D14).
	return pcs.Spec.WorkloadType != grovev1alpha1.WorkloadTypeTraining && (updatesOnDelete(pcs) || IsReplicaInTurn(pcs, replica))
}

// TakesTemplate says so of one clique. group is the object of its scaling group, nil for a
// standalone clique.
func TakesTemplate(pcs *grovev1alpha1.PodCliqueSet, clique ExpectedClique, group *grovev1alpha1.PodCliqueScalingGroup) bool {
	return replicaTakesTemplate(pcs, clique.Replica) &&
		(updatesOnDelete(pcs) || clique.Group == nil || isCopyInTurn(group, clique.Copy, generationHash(pcs)))
}

// SameTurns says that two states of a set have the same cliques follow the template.
func SameTurns(a, b *grovev1alpha1.PodCliqueSet) bool {
	turn := func(pcs *grovev1alpha1.PodCliqueSet) (int32, string) {
		progress := pcs.Status.UpdateProgress
		if progress == nil || progress.UpdateEndedAt != nil || currentTurn(progress) == nil {
			return -1, ""
		}
		return currentTurn(progress).ReplicaIndex, progress.PodCliqueSetGenerationHash
	}
	replicaA, hashA := turn(a)
	replicaB, hashB := turn(b)
	return replicaA == replicaB && hashA == hashB
}

// followsTemplate says that all pods of a clique have been made from a template, and that as
// many are Ready as were before. One that says nothing yet was made from it; a template that
// has no hash yet is followed by all.
func followsTemplate(clique *grovev1alpha1.PodClique, hash string) bool {
	return hash == "" || PodTemplateHash(clique) == hash && ptr.Deref(clique.Status.CurrentPodTemplateHash, hash) == hash && !isUpdating(&clique.Status)
}

// isUpdated says so of a clique of a replica. One that does not exist is made from the
// template as it is now.
func (c *cliqueState) isUpdated(pcs *grovev1alpha1.PodCliqueSet) bool {
	if c.object == nil || c.object.DeletionTimestamp != nil {
		return true
	}
	return followsTemplate(c.object, TemplateHash(pcs, c.Template.Name))
}

// decideUpdate begins and ends the update of the set, and says whose turn it is. A replica
// whose gangs need another priority class is made anew as a whole, because the pods of a gang
// have the same (D23): that raises its attempt, in the write that gives it its turn.
func decideUpdate(s SetSnapshot, replicas []replicaState, status *grovev1alpha1.PodCliqueSetStatus, now time.Time) []Event {
	if s.Set.Spec.WorkloadType == grovev1alpha1.WorkloadTypeTraining {
		return nil
	}
	var behind []*replicaState
	for i := range replicas {
		if replicas[i].updated && isOfAnotherClass(s, &replicas[i]) {
			replicas[i].updated = false
		}
		if !replicas[i].updated {
			behind = append(behind, &replicas[i])
		}
	}
	events := begin(s, behind, status, now)
	if progress := status.UpdateProgress; progress != nil {
		if progress.UpdateEndedAt == nil {
			events = append(events, takeTurns(s, replicas, behind, status, now)...)
		}
		countUpdated(s, replicas, progress)
	}
	tellUpdate(s, status, now)
	return events
}

// begin starts an update when pods do not follow the template, and starts it anew when the
// template has changed once more: the replica whose turn it is keeps it, for it is the one
// that lacks pods already.
func begin(s SetSnapshot, behind []*replicaState, status *grovev1alpha1.PodCliqueSetStatus, now time.Time) []Event {
	progress, hash := status.UpdateProgress, generationHash(s.Set)
	inCourse := progress != nil && progress.UpdateEndedAt == nil
	isSame := progress != nil && progress.PodCliqueSetGenerationHash == hash
	switch {
	case len(behind) == 0 && !inCourse:
		return nil
	case updatesOnDelete(s.Set):
		if !inCourse && isSame {
			return nil
		}
		at := metav1.NewTime(now)
		status.UpdateProgress = &grovev1alpha1.PodCliqueSetUpdateProgress{UpdateStartedAt: at, UpdateEndedAt: &at, PodCliqueSetGenerationHash: hash}
		return nil
	case inCourse && isSame:
		return nil
	}
	next := &grovev1alpha1.PodCliqueSetUpdateProgress{UpdateStartedAt: metav1.NewTime(now), PodCliqueSetGenerationHash: hash}
	if inCourse {
		if turn := currentTurn(progress); turn != nil {
			next.CurrentlyUpdating = []grovev1alpha1.PodCliqueSetReplicaUpdateProgress{*turn}
		}
	}
	status.UpdateProgress = next
	return []Event{{corev1.EventTypeNormal, EventUpdateStarted,
		fmt.Sprintf("pods of %d of %d replicas follow an earlier template, and are replaced one replica at a time", len(behind), s.Set.Spec.Replicas)}}
}

// takeTurns gives the turn to the next replica when the one before is done.
func takeTurns(s SetSnapshot, replicas []replicaState, behind []*replicaState, status *grovev1alpha1.PodCliqueSetStatus, now time.Time) []Event {
	progress := status.UpdateProgress
	if turn := currentTurn(progress); turn != nil {
		if int(turn.ReplicaIndex) < len(replicas) {
			replica := &replicas[turn.ReplicaIndex]
			if !replica.updated || (turn.WasAvailable && !replica.available) {
				return renew(s, replica)
			}
		}
		turn.UpdateEndedAt = ptr.To(metav1.NewTime(now))
	}
	next := pick(behind)
	if next == nil {
		progress.UpdateEndedAt = ptr.To(metav1.NewTime(now))
		return []Event{{corev1.EventTypeNormal, EventUpdateCompleted, fmt.Sprintf("all pods of %d replicas follow the template", s.Set.Spec.Replicas)}}
	}
	progress.CurrentlyUpdating = []grovev1alpha1.PodCliqueSetReplicaUpdateProgress{{
		ReplicaIndex: next.index, UpdateStartedAt: metav1.NewTime(now), WasAvailable: next.available,
	}}
	return renew(s, next)
}

// isOfAnotherClass says that a replica has a gang whose pods do not have the set's priority class,
// though they are of its template: they came one by one, with OnDelete, or to a gang that had none.
// What cliques ask for by themselves is not compared: in gangs of other schedulers they may differ.
func isOfAnotherClass(s SetSnapshot, replica *replicaState) bool {
	if updatesOnDelete(s.Set) || s.Set.Spec.Template.PriorityClassName == "" {
		return false
	}
	_, _, found := otherClass(s, replica)
	return found
}

// pick chooses the replica that loses least: one that has no pod on a node, then one that
// lacks pods, then the first.
func pick(behind []*replicaState) *replicaState {
	rank := func(r *replicaState) int {
		switch {
		case r.scheduled == 0:
			return 0
		case r.breached:
			return 1
		}
		return 2
	}
	if len(behind) == 0 {
		return nil
	}
	return slices.MinFunc(behind, func(a, b *replicaState) int { return rank(a) - rank(b) })
}

// renew raises the attempt of a replica with a gang that has another priority class than the
// template gives to it. A gang of an earlier attempt has not followed yet.
func renew(s SetSnapshot, replica *replicaState) []Event {
	if replica.restartCause != "" {
		return nil
	}
	was, want, found := otherClass(s, replica)
	if !found {
		return nil
	}
	replica.raise(fmt.Sprintf("its gangs get priority class %q, and had %q", want, was))
	return []Event{{corev1.EventTypeNormal, EventReplicaRenewed, fmt.Sprintf("replica %d is made anew (attempt %d): %s", replica.index, replica.attempt, replica.restartCause)}}
}

// otherClass finds a gang of a replica, in its attempt, that has another priority class than the
// template gives to it.
func otherClass(s SetSnapshot, replica *replicaState) (was, want string, found bool) {
	for _, clique := range replica.cliques {
		podGang := s.Gangs[clique.Gang]
		attempt := replica.attempt
		if clique.Gang != clique.BaseGang {
			attempt += clique.copyAttempt
		}
		if podGang == nil || podGang.DeletionTimestamp != nil || GangAttempt(podGang) != attempt {
			continue
		}
		if want = s.Set.Spec.Template.PriorityClassName; want == "" {
			want = PriorityClass(s.Set, templatesOf(replica, clique.Gang))
		}
		if podGang.Spec.PriorityClassName != want {
			return podGang.Spec.PriorityClassName, want, true
		}
	}
	return "", "", false
}

// PriorityClass is the class of a gang: the set's, else that of its pods, which are all the
// same where the scheduler wants it so (D23).
func PriorityClass(pcs *grovev1alpha1.PodCliqueSet, cliques []*grovev1alpha1.PodCliqueSpec) string {
	if class := pcs.Spec.Template.PriorityClassName; class != "" {
		return class
	}
	for _, clique := range cliques {
		if class := clique.PodSpec.PriorityClassName; class != "" {
			return class
		}
	}
	return ""
}

func templatesOf(replica *replicaState, gang string) []*grovev1alpha1.PodCliqueSpec {
	var out []*grovev1alpha1.PodCliqueSpec
	for i := range replica.cliques {
		if replica.cliques[i].Gang == gang {
			out = append(out, &replica.cliques[i].Template.Spec)
		}
	}
	return out
}

// countUpdated sets what the progress tells in numbers.
func countUpdated(s SetSnapshot, replicas []replicaState, progress *grovev1alpha1.PodCliqueSetUpdateProgress) {
	progress.TotalPodCliquesCount, progress.UpdatedPodCliquesCount = 0, 0
	progress.TotalPodCliqueScalingGroupsCount, progress.UpdatedPodCliqueScalingGroupsCount = 0, 0
	groups := map[string]bool{}
	for i := range replicas {
		for j := range replicas[i].cliques {
			clique := &replicas[i].cliques[j]
			updated := clique.isUpdated(s.Set)
			if clique.Group != nil {
				before, seen := groups[clique.GroupName]
				groups[clique.GroupName] = updated && (before || !seen)
				continue
			}
			progress.TotalPodCliquesCount++
			if updated {
				progress.UpdatedPodCliquesCount++
			}
		}
	}
	for _, updated := range groups {
		progress.TotalPodCliqueScalingGroupsCount++
		if updated {
			progress.UpdatedPodCliqueScalingGroupsCount++
		}
	}
}

// tellUpdate says whether running pods follow the template, and how far an update has come.
func tellUpdate(s SetSnapshot, status *grovev1alpha1.PodCliqueSetStatus, now time.Time) {
	old, all, cliques := int32(0), int32(0), 0
	for _, name := range slices.Sorted(maps.Keys(s.Cliques)) {
		clique := s.Cliques[name]
		all += clique.Status.Replicas
		if behind := clique.Status.Replicas - clique.Status.UpdatedReplicas; behind > 0 {
			old += behind
			cliques++
		}
	}
	set := func(value metav1.ConditionStatus, reason, message string) {
		setCondition(&status.Conditions, s.Set.Generation, now, grovev1alpha1.ConditionTypeUpdatePending, value, reason, message)
	}
	lag := fmt.Sprintf("%d of %d pods, of %d cliques, were made from an earlier template", old, all, cliques)
	progress := status.UpdateProgress
	switch {
	case progress != nil && progress.UpdateEndedAt == nil:
		message := lag
		if turn := currentTurn(progress); turn != nil {
			message += fmt.Sprintf("; replica %d is being updated%s", turn.ReplicaIndex, whatBlocks(s, turn.ReplicaIndex))
		}
		set(metav1.ConditionTrue, grovev1alpha1.ReasonRollingUpdate, message)
	case old > 0 && updatesOnDelete(s.Set):
		set(metav1.ConditionTrue, grovev1alpha1.ReasonWaitingForDeletion, lag+", and are replaced when somebody deletes them")
	default:
		set(metav1.ConditionFalse, grovev1alpha1.ReasonPodsFollowTemplate, "all pods follow the template")
	}
}

// whatBlocks names the first clique of a replica that is being updated and has fewer Ready
// pods than before, else the first scaling group none of whose copies may go now.
func whatBlocks(s SetSnapshot, replica int32) string {
	for _, name := range slices.Sorted(maps.Keys(s.Cliques)) {
		clique := s.Cliques[name]
		if index, ok := labels.ParseIndex(clique.Labels[labels.ReplicaIndex]); !ok || index != replica || !isUpdating(&clique.Status) {
			continue
		}
		return fmt.Sprintf(": %s has %d of %d pods of the new template, %d Ready", name, clique.Status.UpdatedReplicas, clique.Spec.Replicas, clique.Status.ReadyReplicas)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Groups)) {
		group, most := s.Groups[name], maxUnavailable(s.Set)
		if index, ok := labels.ParseIndex(group.Labels[labels.ReplicaIndex]); !ok || index != replica || !isGroupUpdating(&group.Status) {
			continue
		}
		if group.Spec.Replicas-group.Status.AvailableReplicas >= most {
			return fmt.Sprintf(": %s has %d of %d copies available, and %d may be away", name, group.Status.AvailableReplicas, group.Spec.Replicas, most)
		}
	}
	return ""
}

// isBreached says that a clique or scaling group lacks pods that it had.
func isBreached(conditions []metav1.Condition) bool {
	return meta.IsStatusConditionTrue(conditions, grovev1alpha1.ConditionTypeMinAvailableBreached)
}
