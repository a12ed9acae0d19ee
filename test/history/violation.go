package history

import (
	"fmt"
	"slices"
	"strings"
)

// Violation is a place where the history breaks an invariant.
type Violation struct {
	// Invariant is its number: I1 to I19.
	Invariant string
	// Revision is where it shows.
	Revision *Revision
	// Message says what is wrong.
	Message string
	// Related are the revisions that prove it.
	Related []*Revision
}

// String tells the violation with the part of the history that shows it.
func (v Violation) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s", v.Invariant, v.Message)
	if v.Revision == nil {
		return text.String()
	}
	related := append(slices.Clone(v.Related), v.Revision)
	slices.SortFunc(related, func(a, b *Revision) int { return a.Seq - b.Seq })
	const most = 40
	related = slices.Compact(related)
	for i, rev := range related {
		if len(related) > most && i == most/2 {
			fmt.Fprintf(&text, "\n    … %d more", len(related)-most)
		}
		if len(related) > most && i >= most/2 && i < len(related)-most/2 {
			continue
		}
		mark := "   "
		if rev == v.Revision {
			mark = " > "
		}
		fmt.Fprintf(&text, "\n%s%s", mark, describe(rev))
	}
	return text.String()
}

// Findings are what a check comes to.
type Findings struct {
	Violations []Violation
	// Unjudged says what could not be judged, and why.
	Unjudged []string
}

func (f *Findings) add(invariant string, at *Revision, related []*Revision, format string, args ...any) {
	f.Violations = append(f.Violations, Violation{Invariant: invariant, Revision: at, Message: fmt.Sprintf(format, args...), Related: related})
}

func (f *Findings) skip(invariant, format string, args ...any) {
	f.Unjudged = append(f.Unjudged, invariant+": "+fmt.Sprintf(format, args...))
}

// Check looks for whatever breaks an invariant in a history.
func Check(log *Log) Findings {
	return checkAll(log,
		checkRestarts, checkWriteAhead, checkTerminal, checkSuccess, checkStartTime, checkMaxRuntime,
		checkAvailability, checkTermination, checkOnePodPerIndex, checkOldPodsFirst, checkGangs, checkStages, checkGates,
		checkTrainingSpec, checkDisturbance, checkUpdates, checkLeaks)
}

// CheckGates looks only for what breaks I12 at start gates.
func CheckGates(log *Log) Findings {
	return checkAll(log, checkGates)
}

func checkAll(log *Log, checks ...func(*world, *Findings)) Findings {
	w := newWorld(log)
	f := &Findings{}
	for _, check := range checks {
		check(w, f)
	}
	slices.SortStableFunc(f.Violations, func(a, b Violation) int { return a.Revision.Seq - b.Revision.Seq })
	slices.Sort(f.Unjudged)
	f.Unjudged = slices.Compact(f.Unjudged)
	return *f
}
