package podgroup

import (
	"context"
	"fmt"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/copse-dev/copse/pkg/controllers/podgroup/pods"
	"github.com/copse-dev/copse/pkg/podgrouper"
)

// strayPods remembers how many pods of a group are in others, which they were put into when
// other things were asked for: Kubernetes' own scheduler lets no pod change its group, so the
// group has to do without them. After a restart it is found out anew.
type strayPods struct {
	mu sync.Mutex
	// into is how many pods of a group would be in which others now.
	into map[types.NamespacedName]map[types.NamespacedName]int32
	// of is how many pods of a group are in others, all in all.
	of map[types.NamespacedName]int32
	// seen are the groups that have been looked at, and awaited those that have not been, with
	// the groups that wait for that.
	seen    sets.Set[types.NamespacedName]
	awaited map[types.NamespacedName]sets.Set[types.NamespacedName]
	// known are the namespaces whose groups have all been looked at once.
	known sets.Set[string]
}

func newStrayPods() *strayPods {
	return &strayPods{
		into: map[types.NamespacedName]map[types.NamespacedName]int32{}, of: map[types.NamespacedName]int32{},
		seen: sets.New[types.NamespacedName](), awaited: map[types.NamespacedName]sets.Set[types.NamespacedName]{},
		known: sets.New[string](),
	}
}

// put remembers in which groups the pods of one would be. It returns the groups that this
// changes something for.
func (p *strayPods) put(group types.NamespacedName, into map[types.NamespacedName]int32) []types.NamespacedName {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.into[group]
	if maps.Equal(before, into) {
		return nil
	}
	changed := sets.New[types.NamespacedName]()
	for target, count := range before {
		if p.of[target] -= count; p.of[target] == 0 {
			delete(p.of, target)
		}
		changed.Insert(target)
	}
	delete(p.into, group)
	for target, count := range into {
		p.of[target] += count
		changed.Insert(target)
	}
	if len(into) > 0 {
		p.into[group] = into
	}
	return changed.UnsortedList()
}

// count is how many pods of a group are in others.
func (p *strayPods) count(group types.NamespacedName) int32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of[group]
}

// look remembers that a group, if it is one, has been looked at. It returns those that have
// waited for that.
func (p *strayPods) look(group types.NamespacedName, is bool) []types.NamespacedName {
	p.mu.Lock()
	defer p.mu.Unlock()
	waiting := p.awaited[group]
	delete(p.awaited, group)
	p.seen.Insert(group)
	if !is {
		p.seen.Delete(group)
	}
	return waiting.UnsortedList()
}

// isKnown says whether all groups of a namespace have been looked at once. Later ones come
// with events of their own.
func (p *strayPods) isKnown(namespace string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known.Has(namespace)
}

// awaits says whether one of the other groups of a namespace has not been looked at yet. The
// group that awaits this is looked at when it has.
func (p *strayPods) awaits(group types.NamespacedName, others sets.Set[types.NamespacedName]) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for other := range others {
		if p.seen.Has(other) {
			continue
		}
		if p.awaited[other] == nil {
			p.awaited[other] = sets.New[types.NamespacedName]()
		}
		p.awaited[other].Insert(group)
		return true
	}
	p.known.Insert(group.Namespace)
	return false
}

// followStrays has the groups looked at that the pods of one would be in now, when that has
// changed.
func (r *Reconciler) followStrays(ctx context.Context, s *state, group *podgrouper.Group) {
	if group.Owner != nil {
		r.owners.groupBy(s.key, group.Owner.UID)
	}
	s.stray = group.Needed() && group.Name != s.key.Name
	var into map[types.NamespacedName]int32
	if s.stray {
		into = r.readStrays(ctx, s)
	}
	r.queue.add(r.stray.put(s.key, into)...)
}

// readStrays counts the pods of a group that would be in others now, by those. What it reads
// of owners is kept for a while.
func (r *Reconciler) readStrays(ctx context.Context, s *state) map[types.NamespacedName]int32 {
	into := map[types.NamespacedName]int32{}
	for _, pod := range s.members {
		if !isThere(pod) || r.backEndOf(pod) != podgrouper.Native || !(s.loose.Has(pod.UID) || pods.IsGrouped(pod)) {
			continue
		}
		chain, err := r.Grouping.Resolver().Find(ctx, pod)
		if err != nil {
			continue
		}
		id, err := r.Grouping.Current().Identify(pod, chain)
		if err == nil && id.Needed() && id.Name != s.key.Name {
			into[types.NamespacedName{Namespace: s.key.Namespace, Name: id.Name}]++
		}
	}
	return into
}

// strays are the pods that belong to a group and are in others.
func (r *Reconciler) strays(s *state) int32 {
	if s.group == nil || !podgrouper.IsMade(s.group) {
		return 0
	}
	return r.stray.count(s.key)
}

// mayHaveStrays says whether a group that needs less than its members tell may have pods in
// groups that have not been looked at yet.
func (r *Reconciler) mayHaveStrays(ctx context.Context, s *state, m minimum) (bool, error) {
	if m.wanted != m.asked || m.count+m.unattached+m.succeeded >= m.wanted || r.stray.isKnown(s.key.Namespace) {
		return false, nil
	}
	list := &corev1.PodList{}
	if err := r.Pods.List(ctx, list, client.InNamespace(s.key.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list the pods of the namespace: %w", err)
	}
	others := sets.New[types.NamespacedName]()
	for i := range list.Items {
		if pod := &list.Items[i]; pods.IsGrouped(pod) && pods.GroupOf(pod) != "" && isThere(pod) && isMember(pod) {
			others.Insert(types.NamespacedName{Namespace: pod.Namespace, Name: pods.GroupOf(pod)})
		}
	}
	return r.stray.awaits(s.key, others.Delete(s.key)), nil
}

// isThere says that a pod lives or has succeeded.
func isThere(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || (pod.DeletionTimestamp == nil && !pods.HasEnded(pod))
}
