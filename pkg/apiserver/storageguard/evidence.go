package storageguard

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/scheduler"
	"github.com/copse-dev/copse/pkg/labels"
)

// isOurs says whether this server serves a group.
func isOurs(group string) bool {
	return group == grove.GroupName || group == scheduler.GroupName
}

// definitionsOf keeps the names of CustomResourceDefinitions of our groups. Such a name is
// the plural, a dot, and the group.
func definitionsOf(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool {
		_, group, _ := strings.Cut(name, ".")
		return !isOurs(group)
	})
}

// dependent is a pod that has owners of our groups.
type dependent struct {
	pod    metav1.ObjectMeta
	owners []owner
}

// owner is what a pod says of one of them.
type owner struct {
	kind string
	name string
	uid  types.UID
}

// dependentOf returns what ties a pod to our groups, and whether anything does.
func dependentOf(pod *metav1.ObjectMeta) (dependent, bool) {
	var owners []owner
	for _, ref := range pod.OwnerReferences {
		// A version that does not parse names no group, and the garbage collector asks nobody.
		if version, err := schema.ParseGroupVersion(ref.APIVersion); err == nil && isOurs(version.Group) {
			owners = append(owners, owner{kind: ref.Kind, name: ref.Name, uid: ref.UID})
		}
	}
	return dependent{
		pod: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
			Labels: map[string]string{labels.RestartAttempt: pod.Labels[labels.RestartAttempt]},
		},
		owners: owners,
	}, len(owners) > 0
}

// Attempts are the objects that etcd has, by UID: the attempt of a PodClique, 0 for others.
type Attempts map[types.UID]int32

// findings are the pods that contradict what etcd has. Finalizers keep an owner while it
// has pods, so a pod without one was made by an etcd that had it.
func findings(pods []dependent, have Attempts) []Finding {
	var found []Finding
	for _, d := range pods {
		for _, o := range d.owners {
			problem := ""
			attempt, exists := have[o.uid]
			made, _ := labels.ParseIndex(d.pod.Labels[labels.RestartAttempt])
			switch {
			case !exists && d.pod.DeletionTimestamp == nil:
				problem = fmt.Sprintf("whose owner, %s %s with UID %s, does not exist", o.kind, o.name, o.uid)
			case !exists:
				// It goes whatever this server answers. Such a pod may hang about for long on a
				// node that is gone, and must not keep the server shut.
			case o.kind == "PodClique" && made > attempt:
				problem = fmt.Sprintf("of attempt %d of PodClique %s, which is in attempt %d", made, o.name, attempt)
			}
			if problem != "" {
				found = append(found, Finding{Pod: d.pod.Namespace + "/" + d.pod.Name, Created: d.pod.CreationTimestamp.Time, Problem: problem})
			}
		}
	}
	return found
}
