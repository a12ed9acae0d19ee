package history

import (
	"cmp"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Server is one of the two API servers. Each has resourceVersions of its own.
type Server string

// The two servers.
const (
	Copse   Server = "copse"
	Cluster Server = "cluster"
)

func (s Server) other() Server {
	if s == Copse {
		return Cluster
	}
	return Copse
}

// Kind of an object. The two kinds named PodGroup differ.
type Kind string

// The kinds that are recorded.
const (
	Set         Kind = "PodCliqueSet"
	Clique      Kind = "PodClique"
	Group       Kind = "PodCliqueScalingGroup"
	Gate        Kind = "StartGate"
	Gang        Kind = "PodGang"
	CopseGroup  Kind = "PodGroup.scheduler.grove.io"
	Pod         Kind = "Pod"
	Service     Kind = "Service"
	File        Kind = "ConfigMap"
	NativeGroup Kind = "PodGroup.scheduling.k8s.io"
)

func (k Kind) server() Server {
	switch k {
	case Pod, Service, File, NativeGroup:
		return Cluster
	}
	return Copse
}

// Revision is one state of one object, or its end.
type Revision struct {
	// Seq is the place in the order of arrival.
	Seq int
	// Arrived is when it came, by the clock of the test.
	Arrived time.Time
	Kind    Kind
	// RV is the resourceVersion. That of a deletion is the deletion's own.
	RV uint64
	// Deleted says that the object is gone; Object is its last state.
	Deleted bool
	// Listed says that it was found by a list after a gap: that the object is so, or gone,
	// is sure, but it became so in some earlier revision.
	Listed bool
	Object client.Object
}

// Gap is a part of the history of a kind that is not known.
type Gap struct {
	Kind Kind
	// After and To are resourceVersions: what is between them may be missing.
	After, To uint64
}

// Fence says that what has a higher RV on Server was written after all revisions with a
// lower Seq.
type Fence struct {
	Server Server
	Seq    int
	RV     uint64
}

// Exemption is a pod that somebody else than a controller deletes.
type Exemption struct {
	// Pod is its name. At is when the deletion was announced.
	Pod string
	At  time.Time
}

// Settings are what a check depends on besides the history.
type Settings struct {
	// AllowLate switches off that deadlines are kept: the controllers were down for a while.
	AllowLate bool
	// LeakAfter is how long something may outlive its owner. 0 does not look for leaks.
	LeakAfter time.Duration
}

// Log is a recorded history.
type Log struct {
	Settings
	// Revisions in the order of arrival.
	Revisions []*Revision
	Gaps      []Gap
	Fences    []Fence
	Deletions []Exemption
	// End is when the recording ended.
	End time.Time
}

// Append adds a revision whose place among those of both servers is known exactly: it comes
// after all that were added before.
func (l *Log) Append(rev Revision) {
	rev.Seq = len(l.Revisions)
	l.Revisions = append(l.Revisions, &rev)
	l.End = rev.Arrived
	// What the other server writes from now on comes after.
	other, latest := rev.Kind.server().other(), uint64(0)
	for _, before := range slices.Backward(l.Revisions) {
		if before.Kind.server() == other {
			latest = before.RV
			break
		}
	}
	l.Fences = append(l.Fences, Fence{Server: other, Seq: rev.Seq + 1, RV: latest})
}

// compareRevisions orders revisions of one server exactly. Those that a list found at
// one moment keep their order of arrival.
func compareRevisions(a, b *Revision) int {
	return cmp.Or(cmp.Compare(a.RV, b.RV), cmp.Compare(a.Seq, b.Seq))
}

// gapBetween says that revisions of a kind may be missing between two of its resourceVersions.
func (l *Log) gapBetween(kind Kind, after, to uint64) bool {
	return slices.ContainsFunc(l.Gaps, func(g Gap) bool { return g.Kind == kind && g.After < to && after < g.To })
}

// hasGap says that revisions of a kind are missing anywhere.
func (l *Log) hasGap(kind Kind) bool {
	return l.gapBetween(kind, 0, math.MaxUint64)
}

// userDeleted says that a pod's deletion was announced.
func (l *Log) userDeleted(name string) bool {
	return slices.ContainsFunc(l.Deletions, func(d Exemption) bool { return d.Pod == name })
}

// story is all that is known of one object, oldest first.
type story struct {
	kind Kind
	uid  types.UID
	name string
	revs []*Revision
}

// deletion is the revision with which an object went, nil while it is there.
func (s *story) deletion() *Revision {
	if last := s.revs[len(s.revs)-1]; last.Deleted {
		return last
	}
	return nil
}

// before is the last revision that is older than one of the same server.
func (s *story) before(r *Revision) *Revision {
	var last *Revision
	for _, rev := range s.revs {
		if compareRevisions(rev, r) >= 0 {
			break
		}
		last = rev
	}
	return last
}

// next is the revision after one of its own, or that one if it is the last.
func (s *story) next(r *Revision) *Revision {
	if i := slices.Index(s.revs, r); i+1 < len(s.revs) {
		return s.revs[i+1]
	}
	return r
}

// first is the first revision for which a test holds, nil when there is none.
func (s *story) first(holds func(*Revision) bool) *Revision {
	if i := slices.IndexFunc(s.revs, holds); i >= 0 {
		return s.revs[i]
	}
	return nil
}

// near are the revisions that were the latest at some time in a window that ends with r,
// a revision of the same server: what a controller that wrote r may have looked at.
func (s *story) near(r *Revision, window time.Duration) []*Revision {
	var out []*Revision
	for i, rev := range s.revs {
		if compareRevisions(rev, r) >= 0 {
			break
		}
		if i+1 < len(s.revs) && compareRevisions(s.revs[i+1], r) < 0 && s.revs[i+1].Arrived.Before(r.Arrived.Add(-window)) {
			continue
		}
		out = append(out, rev)
	}
	return out
}
