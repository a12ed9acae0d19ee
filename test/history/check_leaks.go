package history

import (
	"k8s.io/apimachinery/pkg/types"
)

// checkLeaks holds I10: some time after a deletion nothing is left of what was deleted,
// not below it either, and nothing waits for ever for a finalizer.
func checkLeaks(w *world, f *Findings) {
	if w.LeakAfter == 0 {
		return
	}
	longAgo := w.End.Add(-w.LeakAfter)
	dead := map[types.UID]*Revision{}
	for _, s := range w.all {
		if end := s.deletion(); end != nil && end.Arrived.Before(longAgo) {
			dead[s.uid] = end
		}
	}
	for _, s := range w.all {
		if s.deletion() != nil {
			continue
		}
		last := s.revs[len(s.revs)-1]
		for _, ref := range last.Object.GetOwnerReferences() {
			if end := dead[ref.UID]; end != nil {
				f.add("I10", last, []*Revision{end}, "%s %s has outlived its owner %s by %s", s.kind, s.name, ref.Name, w.LeakAfter)
				break
			}
		}
		going := s.first(isGoing)
		if going != nil && going.Arrived.Before(longAgo) {
			f.add("I10", last, []*Revision{going}, "%s %s is being deleted since %s; finalizers %v", s.kind, s.name, clock(going.Arrived), last.Object.GetFinalizers())
		}
	}
}
