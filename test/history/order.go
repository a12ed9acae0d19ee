package history

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// order answers what was written before what.
type order struct {
	// fences by server and Seq, each with the lowest RV of all behind it.
	fences map[Server][]Fence
	// written are the latest times at which revisions can have been written.
	written map[*Revision]time.Time
}

func newOrder(log *Log) order {
	o := order{fences: map[Server][]Fence{}, written: map[*Revision]time.Time{}}
	for _, fence := range log.Fences {
		o.fences[fence.Server] = append(o.fences[fence.Server], fence)
	}
	for _, fences := range o.fences {
		slices.SortFunc(fences, func(a, b Fence) int { return cmp.Compare(a.Seq, b.Seq) })
		for i := len(fences) - 2; i >= 0; i-- {
			fences[i].RV = min(fences[i].RV, fences[i+1].RV)
		}
	}
	for _, server := range []Server{Copse, Cluster} {
		var revs []*Revision
		for _, rev := range log.Revisions {
			if rev.Kind.server() == server {
				revs = append(revs, rev)
			}
		}
		slices.SortFunc(revs, compareRevisions)
		var earliest time.Time
		for _, rev := range slices.Backward(revs) {
			if earliest.IsZero() || rev.Arrived.Before(earliest) {
				earliest = rev.Arrived
			}
			o.written[rev] = earliest
		}
	}
	return o
}

// certainlyAfter says that a was written after b, whatever the latencies were.
func (o order) certainlyAfter(a, b *Revision) bool {
	if a.Listed {
		// It became so at some time before it was found.
		return false
	}
	if a.Kind.server() == b.Kind.server() {
		return compareRevisions(a, b) > 0
	}
	return a.RV > o.fence(b)
}

// fence is the lowest RV of the other server that is known to come after a revision.
func (o order) fence(r *Revision) uint64 {
	fences := o.fences[r.Kind.server().other()]
	i, _ := slices.BinarySearchFunc(fences, r.Seq+1, func(f Fence, seq int) int { return cmp.Compare(f.Seq, seq) })
	if i == len(fences) {
		return math.MaxUint64
	}
	return fences[i].RV
}

// possibly says that an object may have been in a state when a revision was written: some
// revision of it that is not certainly after shows the state.
func (o order) possibly(s *story, at *Revision, holds func(*Revision) bool) bool {
	return s != nil && slices.ContainsFunc(s.revs, func(r *Revision) bool { return !o.certainlyAfter(r, at) && holds(r) })
}

// allAlong says that an object was in a state all the time between two revisions: it was
// before the first, and no revision that may have come before the second shows another.
func (o order) allAlong(s *story, from, to *Revision, holds func(*Revision) bool) bool {
	for _, r := range slices.Backward(s.revs) {
		switch {
		case o.certainlyAfter(r, to):
		case !holds(r):
			return false
		case o.certainlyAfter(from, r):
			return true
		}
	}
	return false
}
