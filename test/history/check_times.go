package history

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// Deadlines: recorded times are whole seconds rounded down, so a deadline is a second
// after what they say, and a controller that is up meets it within lateAfter.
const (
	rounding  = time.Second
	lateAfter = 2 * time.Second
)

// checkStartTime holds I5: startTime is written once, by the write that first says
// Running.
func checkStartTime(w *world, f *Findings) {
	for _, set := range w.of(Set) {
		for i, rev := range set.revs {
			status := &setOf(rev).Status
			running := status.Phase == grovev1alpha1.PodCliqueSetRunning
			if running && status.StartTime == nil {
				f.add("I5", rev, nil, "%s is Running without startTime", set.name)
			}
			if i == 0 {
				continue
			}
			before := set.revs[i-1]
			was := setOf(before).Status.StartTime
			switch {
			case was != nil && !was.Equal(status.StartTime):
				f.add("I5", rev, []*Revision{before}, "startTime of %s changes", set.name)
			case was == nil && status.StartTime != nil && !running && !isFinished(rev) && !w.gapBetween(Set, before.RV, rev.RV):
				f.add("I5", rev, []*Revision{before}, "startTime of %s is written in phase %s", set.name, status.Phase)
			}
		}
	}
}

// checkMaxRuntime holds I6: the deadline never fires early, and at most two seconds late.
func checkMaxRuntime(w *world, f *Findings) {
	for _, set := range w.of(Set) {
		fired := set.first(func(r *Revision) bool {
			c := meta.FindStatusCondition(setOf(r).Status.Conditions, grovev1alpha1.ConditionTypeFailureTarget)
			return c != nil && c.Reason == grovev1alpha1.ReasonMaxRuntimeExceeded && isFailing(r)
		})
		if fired == nil {
			checkNotFired(w, f, set)
			continue
		}
		due, ok := deadline(fired)
		if !ok {
			f.add("I6", fired, nil, "%s exceeds a maxRuntime that it has not, or before it started", set.name)
			continue
		}
		if w.written[fired].Before(due) {
			f.add("I6", fired, set.revs, "maxRuntime of %s ends at %s and fired at %s", set.name, clock(due), clock(w.written[fired]))
		}
		recorded := meta.FindStatusCondition(setOf(fired).Status.Conditions, grovev1alpha1.ConditionTypeFailureTarget).LastTransitionTime
		if !w.AllowLate && recorded.Sub(due) > lateAfter {
			f.add("I6", fired, set.revs, "maxRuntime of %s ended at %s and fired at %s", set.name, clock(due), clock(recorded.Time))
		}
	}
}

// checkNotFired looks for a deadline that has passed and has not fired.
func checkNotFired(w *world, f *Findings, set *story) {
	last := set.revs[len(set.revs)-1]
	due, ok := deadline(last)
	if ok && !w.AllowLate && !isGoing(last) && !isFinished(last) && !isFailing(last) && w.End.Sub(due) > lateAfter+watchLag {
		f.add("I6", last, nil, "maxRuntime of %s ended at %s and has not fired", set.name, clock(due))
	}
}

func deadline(r *Revision) (time.Time, bool) {
	pcs := setOf(r)
	if pcs.Spec.TrainingSpec == nil || pcs.Spec.TrainingSpec.MaxRuntime == nil || pcs.Status.StartTime == nil {
		return time.Time{}, false
	}
	return pcs.Status.StartTime.Add(rounding + pcs.Spec.TrainingSpec.MaxRuntime.Duration), true
}

func clock(t time.Time) string {
	return t.UTC().Format("15:04:05.000")
}
