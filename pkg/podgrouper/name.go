package podgrouper

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/naming"
)

// maxNameLength keeps the name of a group usable as the value of a label.
const maxNameLength = 63

// groupName is made from the UID of the owner, so that an owner by the same name later has
// groups of other names: schedulers know groups by name (k/k#139914).
func (d *decision) groupName() string {
	in, m := d.settings.Input, d.membership
	base, uid := m.Base, m.UID
	switch {
	case m.PerPod && grouped(in.Pod) && groupOf(in.Pod) != "":
		// Chosen while the pod was created, before it had a UID.
		return groupOf(in.Pod)
	case m.PerPod && in.Pod.UID == "":
		return ""
	case m.PerPod:
		base, uid = in.Pod.Name, string(in.Pod.UID)
	case base == "" && in.Owner != nil:
		base, uid = in.Owner.Name, string(in.Owner.UID)
	}
	return nameOf(base, m.SubKey, naming.Hash(uid, m.SubKey))
}

// nameOf puts the name of a group together. What no name of an object can have, which a label
// of a pod can, is replaced, and what is too long is cut; the hash tells the groups apart.
func nameOf(base, subKey, hash string) string {
	name := "pg-" + base
	if subKey != "" {
		name += "-" + subKey
	}
	name = legal(name)
	if most := maxNameLength - len(hash) - 1; len(name) > most {
		name = name[:most]
	}
	return strings.TrimRight(name, "-") + "-" + hash
}

// SubGroupName is the name of a subgroup that is called after parts of a workload: a DNS
// label, whatever they are called. One that has to be changed for that gets a hash, so that
// different parts keep different names.
func SubGroupName(parts ...string) string {
	name := strings.Join(parts, "-")
	if len(validation.IsDNS1123Label(name)) == 0 {
		return name
	}
	hash := naming.Hash(parts...)
	name = legal(name)
	name = strings.Trim(name[:min(len(name), maxNameLength-len(hash)-1)], "-")
	if name == "" {
		return hash
	}
	return name + "-" + hash
}

// legal has nothing but what a DNS label can have.
func legal(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, name)
}

// NativeName is the name of the group that Kubernetes' own scheduler has for a PodGroup that
// somebody made by hand. It is made from the UID, so that a PodGroup by the same name later
// has another.
func NativeName(name string, uid types.UID) string {
	return nameOf(name, "", naming.Hash(string(uid)))
}

// NativeNameOf is the name of the group that Kubernetes' own scheduler has for a PodGroup,
// whatever its pods say. The pod grouper makes names that are never used again; people may
// not.
func NativeNameOf(group *schedulerv1alpha1.PodGroup) string {
	if IsMade(group) {
		return group.Name
	}
	return NativeName(group.Name, group.UID)
}

// IsMade says that a PodGroup was made by the pod grouper, and is no copy of one.
func IsMade(group *schedulerv1alpha1.PodGroup) bool {
	return group.Annotations[GroupedByAnnotation] == GroupedByValue && group.Annotations[MadeAsAnnotation] == group.Name
}

// NameForPod is the name of a group for one pod while the pod is being created, when it has no
// UID, and with generateName no name: random stands for the UID.
func NameForPod(pod *corev1.Pod, random string) string {
	return nameOf(strings.TrimRight(cmp.Or(pod.Name, pod.GenerateName), "-"), "", naming.Hash(random))
}
