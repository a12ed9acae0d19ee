package gang

import "iter"

// podsByIndex are the pods of a clique by their index: nil where there is none, and no longer
// than the clique is. Each event of one pod is a pass over all of them, and a clique has
// thousands: they stay where they are, and in order.
type podsByIndex []*Pod

// at is the pod of an index, or nil.
func (p podsByIndex) at(index int32) *Pod {
	if int(index) >= len(p) {
		return nil
	}
	return p[index]
}

// all are the pods that there are, in the order of their indexes.
func (p podsByIndex) all() iter.Seq[*Pod] {
	return func(yield func(*Pod) bool) {
		for _, pod := range p {
			if pod != nil && !yield(pod) {
				return
			}
		}
	}
}
