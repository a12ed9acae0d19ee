// Package naming makes every name that Copse generates (D17). Validation uses it to
// bound names, controllers use it to make them. Nothing is ever parsed back out of a
// name: lookups go by owner UID.
package naming

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// hashLength is how many characters of a hash go into a name: 40 bits.
const hashLength = 8

// Replica names the headless Service, the base PodGang, the StartGate and the
// subdomain of a replica of a PodCliqueSet.
func Replica(set string, replica int32) string {
	return fmt.Sprintf("%s-%d", set, replica)
}

// ScalingGroup names a PodCliqueScalingGroup.
func ScalingGroup(set string, replica int32, group string) string {
	return fmt.Sprintf("%s-%d-%s", set, replica, group)
}

// StandaloneClique names the PodClique of a clique that is in no scaling group.
func StandaloneClique(set string, replica int32, clique string) string {
	return fmt.Sprintf("%s-%d-%s", set, replica, clique)
}

// MemberClique names the PodClique of a clique in one copy of a scaling group.
func MemberClique(set string, replica int32, group string, copyIndex int32, clique string) string {
	return fmt.Sprintf("%s-%d-%s-%d-%s", set, replica, group, copyIndex, clique)
}

// Copy names a copy of a scaling group in the base gang, where its pods are placed together.
func Copy(set string, replica int32, group string, copyIndex int32) string {
	return fmt.Sprintf("%s-%d-%s-%d", set, replica, group, copyIndex)
}

// ScaledGang names the PodGang of a copy of a scaling group that is not in the base
// gang: scaledIndex is the copy's index less the group's minAvailable.
func ScaledGang(set string, replica int32, group string, scaledIndex int32) string {
	return fmt.Sprintf("%s-%d-%s-%d", set, replica, group, scaledIndex)
}

// StageGang names the base PodGang of a clique that starts in a stage of its own (D20).
func StageGang(set string, replica int32, clique string) string {
	return fmt.Sprintf("%s-%d-%s", set, replica, clique)
}

// ScaledStageGang names the PodGang of such a clique in a copy of a scaling group that is
// not in the base gang.
func ScaledStageGang(set string, replica int32, group string, scaledIndex int32, clique string) string {
	return fmt.Sprintf("%s-%d-%s-%d-%s", set, replica, group, scaledIndex, clique)
}

// GateConfigMap names the ConfigMap by which the pods of a replica learn that they may
// start when they cannot reach the API (seed 002).
func GateConfigMap(set string, replica int32) string {
	return fmt.Sprintf("%s-%d-group-scheduling", set, replica)
}

// Hostname is the host name of the pod with an index in a PodClique. It is the longest
// of the names that have to be DNS labels.
func Hostname(clique string, index int32) string {
	return fmt.Sprintf("%s-%d", clique, index)
}

// Pod names a pod: one name per index within a PodClique object and attempt, so that the API
// server itself refuses a second pod of the same index, be it of another template.
func Pod(clique string, cliqueUID types.UID, index, attempt int32) string {
	return fmt.Sprintf("%s-%d-%s", clique, index, Hash(string(cliqueUID), fmt.Sprint(attempt)))
}

// PodOfTemplate names a pod as versions of before decision 0025 did: those that they made are
// still there after an upgrade.
func PodOfTemplate(clique string, cliqueUID types.UID, index, attempt int32, templateHash string) string {
	return fmt.Sprintf("%s-%d-%s", clique, index, Hash(string(cliqueUID), fmt.Sprint(attempt), templateHash))
}

// SchedulingGroup names the scheduler's own group object of a PodGang: a name that is
// never used again, because the scheduler refers to groups by name (k/k#139914).
func SchedulingGroup(gang string, gangUID types.UID, attempt int32) string {
	return fmt.Sprintf("%s-%s-%d", gang, Hash(string(gangUID)), attempt)
}

// SharedClaim names the ResourceClaim that all replicas of a set, scaling group or PodClique
// share. owner is the name of that object, template that of what the claim is made from.
func SharedClaim(owner, template string) string {
	return claim(fmt.Sprintf("%s-all-%s", owner, template))
}

// ReplicaClaim names the ResourceClaim of one replica of a set, of one copy of a scaling group,
// or of one pod of a PodClique.
func ReplicaClaim(owner string, index int32, template string) string {
	return claim(fmt.Sprintf("%s-%d-%s", owner, index, template))
}

// claim makes a name by which a pod can refer to a claim, which is a DNS label: templates may
// have dots in their names, and together with the owner's the name may be too long.
func claim(name string) string {
	label := strings.ReplaceAll(name, ".", "-")
	if label == name && len(name) <= validation.DNS1123LabelMaxLength {
		return name
	}
	short := label[:min(len(label), validation.DNS1123LabelMaxLength-hashLength-1)]
	return strings.TrimRight(short, "-") + "-" + Hash(name)
}

// Hash condenses parts to a few characters that are legal anywhere in a DNS label.
func Hash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:hashLength]
}
