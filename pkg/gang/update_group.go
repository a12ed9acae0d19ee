package gang

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// GroupTurn is what the set lets the update of a scaling group do.
type GroupTurn struct {
	// Due says that it is the turn of the group's replica.
	Due bool
	// MaxUnavailable is how many copies may be away at once.
	MaxUnavailable int32
	// GenerationHash is the set's hash.
	GenerationHash string
	// TemplateHashes are the hashes of the group's cliques in it, by the names of PodCliques.
	TemplateHashes map[string]string
	// Over says that nobody updates the group for the template as it is now.
	Over bool
}

// TurnOfGroup reads the turn of a scaling group, whose members are given.
func TurnOfGroup(pcs *grovev1alpha1.PodCliqueSet, replica int32, members []grovev1alpha1.PodClique) GroupTurn {
	turn := GroupTurn{
		Due: IsReplicaInTurn(pcs, replica), Over: isTurnOver(pcs, replica),
		MaxUnavailable: maxUnavailable(pcs), GenerationHash: generationHash(pcs), TemplateHashes: map[string]string{},
	}
	for i := range members {
		if template := TemplateOf(pcs, &members[i]); template != nil {
			turn.TemplateHashes[members[i].Name] = TemplateHash(pcs, template.Name)
		}
	}
	return turn
}

// isGroupUpdating says that an update of a scaling group is in course.
func isGroupUpdating(status *grovev1alpha1.PodCliqueScalingGroupStatus) bool {
	return status.UpdateProgress != nil && status.UpdateProgress.UpdateEndedAt == nil
}

// isCopyInTurn says that the update of a scaling group to a template has come to a copy.
func isCopyInTurn(group *grovev1alpha1.PodCliqueScalingGroup, copyIndex int32, hash string) bool {
	return group != nil && isGroupUpdating(&group.Status) && group.Status.UpdateProgress.PodCliqueSetGenerationHash == hash &&
		slices.Contains(copiesInTurn(&group.Status), copyIndex)
}

func copiesInTurn(status *grovev1alpha1.PodCliqueScalingGroupStatus) []int32 {
	if status.UpdateProgress == nil || status.UpdateProgress.ReadyReplicaIndicesSelectedToUpdate == nil {
		return nil
	}
	return status.UpdateProgress.ReadyReplicaIndicesSelectedToUpdate.Updating
}

// SameCopyTurns says that two states of a scaling group have the same copies follow the
// template.
func SameCopyTurns(a, b *grovev1alpha1.PodCliqueScalingGroup) bool {
	hash := func(group *grovev1alpha1.PodCliqueScalingGroup) string {
		if !isGroupUpdating(&group.Status) {
			return ""
		}
		return group.Status.UpdateProgress.PodCliqueSetGenerationHash
	}
	return hash(a) == hash(b) && slices.Equal(copiesInTurn(&a.Status), copiesInTurn(&b.Status))
}

// decideGroupUpdate says which copies are being brought to the template. One that is not
// available loses nothing and goes at once; of the others as many as may be away, the first
// ones first.
func decideGroupUpdate(s GroupSnapshot, copies []copyState, status *grovev1alpha1.PodCliqueScalingGroupStatus, now time.Time) {
	behind := slices.DeleteFunc(slices.Clone(copies), func(c copyState) bool { return !c.exists || c.followsTemplate })
	updating := isGroupUpdating(status)
	switch {
	case updating && s.Turn.Over, updating && s.Turn.Due && len(behind) == 0:
		status.UpdateProgress.UpdateEndedAt = ptr.To(metav1.NewTime(now))
		finishCopies(status.UpdateProgress, copies)
		updating = false
	case s.Turn.Due && len(behind) > 0:
		if !updating || status.UpdateProgress.PodCliqueSetGenerationHash != s.Turn.GenerationHash {
			started := &grovev1alpha1.PodCliqueScalingGroupUpdateProgress{
				UpdateStartedAt: metav1.NewTime(now), PodCliqueSetGenerationHash: s.Turn.GenerationHash,
				ReadyReplicaIndicesSelectedToUpdate: &grovev1alpha1.ReplicaIndicesSelectedToUpdate{},
			}
			if updating {
				// Those that lack pods already stay first.
				started.ReadyReplicaIndicesSelectedToUpdate.Updating = copiesInTurn(status)
			}
			status.UpdateProgress = started
		}
		finishCopies(status.UpdateProgress, copies)
		chooseCopies(s, copies, behind, status.UpdateProgress.ReadyReplicaIndicesSelectedToUpdate)
		updating = true
	}
	if !updating && len(behind) == 0 && s.Turn.GenerationHash != "" {
		status.CurrentPodCliqueSetGenerationHash = ptr.To(s.Turn.GenerationHash)
	}
	if progress := status.UpdateProgress; progress != nil {
		countMembersUpdated(s, copies, progress)
	}
}

// finishCopies moves copies that follow the template, or are no more, from those in turn to
// the completed ones.
func finishCopies(progress *grovev1alpha1.PodCliqueScalingGroupUpdateProgress, copies []copyState) {
	selected := progress.ReadyReplicaIndicesSelectedToUpdate
	if selected == nil {
		return
	}
	var left []int32
	for _, index := range selected.Updating {
		switch {
		case int(index) >= len(copies):
		case copies[index].followsTemplate:
			selected.Completed = append(slices.Clone(selected.Completed), index)
		default:
			left = append(left, index)
		}
	}
	selected.Updating = left
}

// chooseCopies adds copies to those in turn.
func chooseCopies(s GroupSnapshot, copies, behind []copyState, selected *grovev1alpha1.ReplicaIndicesSelectedToUpdate) {
	inTurn := func(index int32) bool { return slices.Contains(selected.Updating, index) }
	away := int32(0)
	for _, c := range copies {
		if !c.available || inTurn(c.index) {
			away++
		}
	}
	for _, c := range behind {
		if inTurn(c.index) {
			continue
		}
		if c.available {
			if away >= s.Turn.MaxUnavailable {
				continue
			}
			away++
		}
		selected.Updating = append(slices.Clone(selected.Updating), c.index)
	}
	slices.Sort(selected.Updating)
	if len(selected.Updating) > 0 {
		selected.Current = selected.Updating[0]
	}
}

func countMembersUpdated(s GroupSnapshot, copies []copyState, progress *grovev1alpha1.PodCliqueScalingGroupUpdateProgress) {
	progress.TotalPodCliquesCount, progress.UpdatedPodCliquesCount = 0, 0
	for _, c := range copies {
		for _, clique := range c.members {
			progress.TotalPodCliquesCount++
			if followsTemplate(clique, s.Turn.TemplateHashes[clique.Name]) {
				progress.UpdatedPodCliquesCount++
			}
		}
	}
}
