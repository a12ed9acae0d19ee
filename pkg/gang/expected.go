package gang

import (
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
)

// ExpectedClique is a PodClique that a set consists of, created or not.
type ExpectedClique struct {
	// Name of the PodClique.
	Name string
	// Template is the clique in the set's template.
	Template *grovev1alpha1.PodCliqueTemplateSpec
	// Replica is the index of the set's replica.
	Replica int32
	// Group is the clique's scaling group in the template, nil for a standalone clique.
	Group *grovev1alpha1.PodCliqueScalingGroupConfig
	// GroupName is the name of the PodCliqueScalingGroup.
	GroupName string
	// Copy is the index of the scaling group's copy.
	Copy int32
	// Gang is the name of the PodGang that the clique's members are scheduled with, and
	// BaseGang that of the base gang: the replica's, or its stage's in a staged set. They
	// are the same in the base gang.
	Gang, BaseGang string
}

// GroupSizes tells how many copies a scaling group of a replica has: what its
// PodCliqueScalingGroup says, since it may have been scaled.
type GroupSizes func(replica int32, group *grovev1alpha1.PodCliqueScalingGroupConfig) int32

// TemplateSizes are the sizes that the template gives to new scaling groups.
func TemplateSizes(_ int32, group *grovev1alpha1.PodCliqueScalingGroupConfig) int32 {
	return ptr.Deref(group.Replicas, 1)
}

// BaseGang is the name of the base gang of a clique of the template in a replica: the
// replica's, or that of the clique's own stage in a staged set.
func BaseGang(pcs *grovev1alpha1.PodCliqueSet, replica int32, clique string) string {
	if IsStaged(pcs) {
		return naming.StageGang(pcs.Name, replica, clique)
	}
	return naming.Replica(pcs.Name, replica)
}

// ExpectedCliques are the cliques of one replica of a set, in the order of the template
// and of the copies.
func ExpectedCliques(pcs *grovev1alpha1.PodCliqueSet, replica int32, sizes GroupSizes) []ExpectedClique {
	template := &pcs.Spec.Template
	groupOf := map[string]*grovev1alpha1.PodCliqueScalingGroupConfig{}
	for i := range template.PodCliqueScalingGroups {
		for _, name := range template.PodCliqueScalingGroups[i].CliqueNames {
			groupOf[name] = &template.PodCliqueScalingGroups[i]
		}
	}
	var out []ExpectedClique
	for i := range template.Cliques {
		clique := &template.Cliques[i]
		group, baseGang := groupOf[clique.Name], BaseGang(pcs, replica, clique.Name)
		if group == nil {
			out = append(out, ExpectedClique{
				Name:     naming.StandaloneClique(pcs.Name, replica, clique.Name),
				Template: clique, Replica: replica, Gang: baseGang, BaseGang: baseGang,
			})
			continue
		}
		for copyIndex := range sizes(replica, group) {
			gang := baseGang
			if inBase := ptr.Deref(group.MinAvailable, 1); copyIndex >= inBase {
				gang = naming.ScaledGang(pcs.Name, replica, group.Name, copyIndex-inBase)
				if IsStaged(pcs) {
					gang = naming.ScaledStageGang(pcs.Name, replica, group.Name, copyIndex-inBase, clique.Name)
				}
			}
			out = append(out, ExpectedClique{
				Name:      naming.MemberClique(pcs.Name, replica, group.Name, copyIndex, clique.Name),
				Template:  clique,
				Replica:   replica,
				Group:     group,
				GroupName: naming.ScalingGroup(pcs.Name, replica, group.Name),
				Copy:      copyIndex,
				Gang:      gang,
				BaseGang:  baseGang,
			})
		}
	}
	return out
}

// TemplateOf is the template's clique that a PodClique was made from, nil when there is
// none. It is found by the name that each clique of the template leads to, never by a suffix.
func TemplateOf(pcs *grovev1alpha1.PodCliqueSet, clique *grovev1alpha1.PodClique) *grovev1alpha1.PodCliqueTemplateSpec {
	replica, ok := labels.ParseIndex(clique.Labels[labels.ReplicaIndex])
	if !ok {
		return nil
	}
	copyIndex, isMember := labels.ParseIndex(clique.Labels[labels.ScalingGroupReplicaIndex])
	for i := range pcs.Spec.Template.Cliques {
		template := &pcs.Spec.Template.Cliques[i]
		name := naming.StandaloneClique(pcs.Name, replica, template.Name)
		if group := groupOf(pcs, template.Name); group != nil {
			if !isMember {
				continue
			}
			name = naming.MemberClique(pcs.Name, replica, group.Name, copyIndex, template.Name)
		}
		if name == clique.Name {
			return template
		}
	}
	return nil
}

// ReplicaAttempt is the attempt of a replica of a set, 0 unless its status says otherwise.
func ReplicaAttempt(pcs *grovev1alpha1.PodCliqueSet, replica int32) int32 {
	for i := range pcs.Status.ReplicaStatuses {
		if pcs.Status.ReplicaStatuses[i].Index == replica {
			return pcs.Status.ReplicaStatuses[i].Attempt
		}
	}
	return 0
}

// SumOfAttempts sums up the attempts of a set's replicas: they only rise, so another sum
// means another attempt.
func SumOfAttempts(pcs *grovev1alpha1.PodCliqueSet) int64 {
	var sum int64
	for i := range pcs.Status.ReplicaStatuses {
		sum += int64(pcs.Status.ReplicaStatuses[i].Attempt)
	}
	return sum
}

// CopyAttempt is the attempt of a copy of a scaling group, 0 unless its status says
// otherwise. group may be nil.
func CopyAttempt(group *grovev1alpha1.PodCliqueScalingGroup, copyIndex int32) int32 {
	if group == nil {
		return 0
	}
	for i := range group.Status.ReplicaAttempts {
		if group.Status.ReplicaAttempts[i].Index == copyIndex {
			return group.Status.ReplicaAttempts[i].Attempt
		}
	}
	return 0
}

// TemplateHash is the hash that the server gave to a clique of the template.
func TemplateHash(pcs *grovev1alpha1.PodCliqueSet, clique string) string {
	for i := range pcs.Status.CliqueHashes {
		if pcs.Status.CliqueHashes[i].Name == clique {
			return pcs.Status.CliqueHashes[i].Hash
		}
	}
	return ""
}
