package chaos

import (
	"fmt"
	"strings"
)

// FaultKind is a way in which something goes wrong.
type FaultKind string

// The faults of reliability facts F1 to F11, F16, F17 and F24.
const (
	// NoFault is the reference.
	NoFault FaultKind = "none"
	// CrashBefore ends the controllers before a write, CrashAfter after it.
	CrashBefore FaultKind = "crash-before"
	CrashAfter  FaultKind = "crash-after"
	// CrashIntoThePast is CrashAfter with caches that are filled as they were a while ago.
	CrashIntoThePast FaultKind = "crash-into-the-past"
	// ReplyLost does a write and tells the controller that it timed out.
	ReplyLost FaultKind = "reply-lost"
	// Freeze keeps caches as they are for a number of steps.
	Freeze FaultKind = "freeze"
	// FreezeAndRelist is Freeze, after which what has happened is seen as a new list.
	FreezeAndRelist FaultKind = "freeze-relist"
	// HideRemoval keeps the next removal from caches for a number of steps.
	HideRemoval FaultKind = "hide-removal"
	// Partition cuts the controllers off from a server for a number of steps.
	Partition FaultKind = "partition"
	// DeleteSet has the user delete the set before a write.
	DeleteSet FaultKind = "delete-set"
	// Errors answers every second write with an error, some after doing it.
	Errors FaultKind = "errors"
	// Interleave lets everything that can happen next happen in an order by lot.
	Interleave FaultKind = "interleave"
	// TwoLeaders runs two instances, in an order by lot.
	TwoLeaders FaultKind = "two-leaders"
)

// Fault is what goes wrong in a run.
type Fault struct {
	Kind FaultKind
	// At is the number of the write, from 1.
	At int
	// Kinds are those whose caches, or whose server, are concerned.
	Kinds []Kind
	// Steps is how long it lasts, in steps of the driver.
	Steps int
	// Long lets it last while the pods go on with their scripts, so that the controllers
	// miss what the reference sees: the end may be another.
	Long bool
	// Seed decides by lot.
	Seed uint64
}

// String names the fault as a test is named.
func (f Fault) String() string {
	name := string(f.Kind)
	if len(f.Kinds) > 0 {
		kinds := make([]string, 0, len(f.Kinds))
		for _, k := range f.Kinds {
			kinds = append(kinds, string(k))
		}
		name += "-" + strings.Join(kinds, "+")
	}
	if f.Steps > 0 {
		name += fmt.Sprintf("-%d", f.Steps)
	}
	if f.Long {
		name += "-long"
	}
	if f.At > 0 {
		name += fmt.Sprintf("/w%03d", f.At)
	}
	if f.Seed > 0 {
		name += fmt.Sprintf("/seed%03d", f.Seed)
	}
	return name
}

// byLot says that the order of things is decided by lot.
func (f Fault) byLot() bool { return f.Kind == Interleave || f.Kind == TwoLeaders }
