package validation

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/grove/recovery"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/apis/internal/fields"
)

func validateFailedIndexKeys(indexes []grove.FailedIndex, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[int32]()
	for i, failed := range indexes {
		errs = append(errs, validateUniqueIndex(failed.Index, seen, path.Index(i).Child("index"))...)
		if i > 0 && failed.Index < indexes[i-1].Index {
			errs = append(errs, field.Invalid(path.Index(i).Child("index"), failed.Index, "must be in ascending order"))
		}
		errs = append(errs, fields.NotNegative(failed.Count, path.Index(i).Child("count"))...)
	}
	return errs
}

// recoveredIndex is an entry of status.recoveredIndexes, or why it cannot be read.
type recoveredIndex struct {
	recovery.Record
	err error
}

// readRecoveries reads each entry once: big gangs have hundreds, in each write.
func readRecoveries(status *grove.PodCliqueStatus) []recoveredIndex {
	out := make([]recoveredIndex, len(status.RecoveredIndexes))
	for i, text := range status.RecoveredIndexes {
		out[i].Record, out[i].err = recovery.Parse(text)
	}
	return out
}

// validateRecoveredIndexes checks that each can be read, and that none is on record twice.
func validateRecoveredIndexes(status *grove.PodCliqueStatus, recovered []recoveredIndex, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[int32]()
	for i := range status.FailedIndexes {
		seen.Insert(status.FailedIndexes[i].Index)
	}
	last := int32(-1)
	for i, record := range recovered {
		text := status.RecoveredIndexes[i]
		if record.err != nil {
			errs = append(errs, field.Invalid(path.Index(i), text, record.err.Error()))
			continue
		}
		errs = append(errs, validateUniqueIndex(record.Index, seen, path.Index(i))...)
		if record.Index < last {
			errs = append(errs, field.Invalid(path.Index(i), text, "must be in ascending order of the indexes"))
		}
		last = record.Index
	}
	return errs
}

// failuresOf are the failures of each index, those that are kept in short as well: such an
// index failed for the last time before it was well.
func failuresOf(status *grove.PodCliqueStatus, recovered []recoveredIndex) map[int32]*grove.FailedIndex {
	failures := make(map[int32]*grove.FailedIndex, len(status.FailedIndexes)+len(recovered))
	for i := range status.FailedIndexes {
		failures[status.FailedIndexes[i].Index] = &status.FailedIndexes[i]
	}
	for _, record := range recovered {
		if record.err == nil {
			since := metav1.NewTime(record.Since)
			failures[record.Index] = &grove.FailedIndex{Index: record.Index, Count: record.Count, LastTime: since, RecoveredTime: &since}
		}
	}
	return failures
}

// validateFailedIndexes keeps what has failed within an attempt (D8). The count of an
// index falls only with a failure that starts it anew.
func validateFailedIndexes(clique, old *grove.PodClique, before, after map[int32]*grove.FailedIndex, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range clique.Status.FailedIndexes {
		failed, indexPath := &clique.Status.FailedIndexes[i], path.Index(i).Child
		was := before[failed.Index]
		if was == nil {
			was = &grove.FailedIndex{}
		}
		if isBefore(&failed.LastTime, &was.LastTime) {
			errs = append(errs, field.Invalid(indexPath("lastTime"), timeText(&failed.LastTime), "must not go back, it is "+timeText(&was.LastTime)))
		}
		if countFalls(failed, was) {
			errs = append(errs, field.Invalid(indexPath("count"), failed.Count, fmt.Sprintf("must not fall, it is %d, unless a later failure starts it anew at 1", was.Count)))
		}
		if recoversBeforeFailure(failed) && !recoversBeforeFailure(was) {
			errs = append(errs, field.Invalid(indexPath("recoveredTime"), timeText(failed.RecoveredTime), "must not be before lastTime, "+timeText(&failed.LastTime)))
		}
	}
	isFull := len(old.Status.FailedIndexes)+len(old.Status.RecoveredIndexes) >= grovev1alpha1.MaxFailedIndexes
	for _, index := range slices.Sorted(maps.Keys(before)) {
		was, is := before[index], after[index]
		// A scale-in takes an index with all that is known of it, and one that has recovered
		// makes room for others.
		if is == nil && index < clique.Spec.Replicas && (was.RecoveredTime == nil || !isFull) {
			errs = append(errs, field.Required(path, fmt.Sprintf("index %d has failed in this attempt, which must be kept", index)))
		}
	}
	return errs
}

// validateShortened checks that what is kept in short was told in full before, or as it is.
func validateShortened(status *grove.PodCliqueStatus, recovered []recoveredIndex, before map[int32]*grove.FailedIndex, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, record := range recovered {
		if record.err != nil {
			continue
		}
		was := before[record.Index]
		if was == nil || was.RecoveredTime == nil || was.Count != record.Count || !was.RecoveredTime.Time.Equal(record.Since) {
			errs = append(errs, field.Invalid(path.Index(i), status.RecoveredIndexes[i], "must have been on record with this count and recoveredTime"))
		}
	}
	return errs
}

func countFalls(failed, was *grove.FailedIndex) bool {
	return failed.Count < was.Count && (failed.Count != 1 || !isBefore(&was.LastTime, &failed.LastTime))
}

func recoversBeforeFailure(failed *grove.FailedIndex) bool {
	return failed.RecoveredTime != nil && isBefore(failed.RecoveredTime, &failed.LastTime)
}
