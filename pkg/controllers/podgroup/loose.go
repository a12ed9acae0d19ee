package podgroup

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// loosePods remembers which group the pods would be in that cannot say so themselves: they
// were made before anybody put them into one, and may not be changed. After a restart it is
// found out anew.
type loosePods struct {
	mu      sync.Mutex
	groupOf map[types.UID]types.NamespacedName
	members map[types.NamespacedName]sets.Set[types.UID]
	// awaited are pods that nothing is known about yet, and the groups that wait for that.
	awaited map[types.UID]sets.Set[types.NamespacedName]
	// known are the namespaces whose pods have all been looked at once.
	known sets.Set[string]
}

func newLoosePods() *loosePods {
	return &loosePods{
		groupOf: map[types.UID]types.NamespacedName{}, members: map[types.NamespacedName]sets.Set[types.UID]{},
		awaited: map[types.UID]sets.Set[types.NamespacedName]{}, known: sets.New[string](),
	}
}

// put remembers that a pod is in a group, or in none when the name is empty. It returns the
// groups that this changes something for, besides that one: those that have waited for it,
// and the one that the pod was in before.
func (l *loosePods) put(pod types.UID, group types.NamespacedName) []types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	others := l.drop(pod).Delete(group)
	l.groupOf[pod] = group
	if group.Name != "" {
		if l.members[group] == nil {
			l.members[group] = sets.New[types.UID]()
		}
		l.members[group].Insert(pod)
	}
	return others.UnsortedList()
}

// forget drops a pod that is gone. It returns the groups that this changes something for.
func (l *loosePods) forget(pod types.UID) []types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.drop(pod).UnsortedList()
}

// drop returns the group that a pod was in, and those that have waited for it.
func (l *loosePods) drop(pod types.UID) sets.Set[types.NamespacedName] {
	others := sets.New(l.awaited[pod].UnsortedList()...)
	delete(l.awaited, pod)
	group := l.groupOf[pod]
	delete(l.groupOf, pod)
	if members := l.members[group]; members != nil {
		if members.Delete(pod); len(members) == 0 {
			delete(l.members, group)
		}
		others.Insert(group)
	}
	return others
}

// in says whether a pod is in a group, and whether anything is known about the pod. A group
// that awaits this is looked at when it is known.
func (l *loosePods) in(pod types.UID, group types.NamespacedName, await bool) (is, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, known := l.groupOf[pod]
	if !known && await {
		if l.awaited[pod] == nil {
			l.awaited[pod] = sets.New[types.NamespacedName]()
		}
		l.awaited[pod].Insert(group)
	}
	return known && at == group, known
}

// mayHave says whether a group may have loose pods: it has some, or not all pods of its
// namespace have been looked at.
func (l *loosePods) mayHave(group types.NamespacedName) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.members[group]) > 0 || !l.known.Has(group.Namespace)
}

// allKnown remembers that all pods of a namespace have been looked at. Later ones come with
// events of their own.
func (l *loosePods) allKnown(namespace string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known.Insert(namespace)
}
