package validation

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/grove/recovery"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// An index that has recovered may be kept in short, and nothing that decides about its next
// failure gets lost or changes on the way (D8).
func TestRecoveriesThatAreKeptInShort(t *testing.T) {
	type clique = grove.PodClique
	failed := func(failures ...grove.FailedIndex) func(*clique) {
		return func(c *clique) { c.Status.FailedIndexes = failures }
	}
	short := func(records ...string) func(*clique) {
		return func(c *clique) { c.Status.RecoveredIndexes = records }
	}
	record := func(index, count int32, seconds int64) string {
		return recovery.Of(index, count, at(seconds).Time, "dc4c7c9e-4bc1").String()
	}
	broken := func(index, count int32, seconds int64) grove.FailedIndex {
		return grove.FailedIndex{Index: index, Count: count, LastTime: *at(seconds)}
	}
	well := func(index, count int32, seconds int64) grove.FailedIndex {
		return grove.FailedIndex{Index: index, Count: count, LastTime: *at(seconds - 10), RecoveredTime: at(seconds)}
	}
	many := func(count int) (records []string) {
		for i := range count {
			records = append(records, record(int32(i), 1, 100))
		}
		return records
	}
	size := func(n int32) func(*clique) { return func(c *clique) { c.Spec.Replicas = n } }
	started := func(c *clique) { c.Spec.Attempt, c.Status.ObservedAttempt = 1, 1 }
	const most = grovev1alpha1.MaxFailedIndexes

	testUpdate(t, mkPodClique, ValidatePodCliqueStatusUpdate, map[string]updateCase[clique]{
		"one is kept in short":      {before: failed(well(1, 2, 100)), tweak: all(failed(), short(record(1, 2, 100)))},
		"and stays so":              {before: short(record(1, 2, 100)), tweak: short(record(1, 2, 100))},
		"it fails again":            {before: short(record(1, 2, 100)), tweak: all(short(), failed(broken(1, 3, 100)))},
		"it starts anew":            {before: short(record(1, 5, 100)), tweak: all(short(), failed(broken(1, 1, 701)))},
		"it goes with its size":     {before: short(record(3, 2, 100)), tweak: short()},
		"it makes room for another": {before: all(size(most+1), short(many(most)...)), tweak: all(short(many(most)[1:]...), failed(broken(most, 1, 100)))},
		"it is not forgotten": {
			before: short(record(1, 2, 100)), tweak: short(), want: field.ErrorList{required("status.failedIndexes")},
		},
		"it is not forgotten where there is room": {
			before: all(size(most+1), short(many(most-1)...)), tweak: short(many(most - 1)[1:]...), want: field.ErrorList{required("status.failedIndexes")},
		},
		"it does not fail before it was well": {
			before: short(record(1, 2, 100)), tweak: all(short(), failed(broken(1, 3, 99))), want: field.ErrorList{invalid("status.failedIndexes[0].lastTime")},
		},
		"its count does not fall": {
			before: short(record(1, 3, 100)), tweak: all(short(), failed(broken(1, 2, 101))), want: field.ErrorList{invalid("status.failedIndexes[0].count")},
		},
		"its count does not change in short": {
			before: short(record(1, 3, 100)), tweak: short(record(1, 2, 100)), want: field.ErrorList{invalid("status.recoveredIndexes[0]")},
		},
		"nor when it is kept in short": {
			before: failed(well(1, 3, 100)), tweak: all(failed(), short(record(1, 2, 100))), want: field.ErrorList{invalid("status.recoveredIndexes[0]")},
		},
		"its time does not change": {
			before: failed(well(1, 3, 100)), tweak: all(failed(), short(record(1, 3, 101))), want: field.ErrorList{invalid("status.recoveredIndexes[0]")},
		},
		"one that is broken is not kept in short": {
			before: failed(broken(1, 3, 100)), tweak: all(failed(), short(record(1, 3, 100))), want: field.ErrorList{invalid("status.recoveredIndexes[0]")},
		},
		"one that never failed is not": {tweak: short(record(1, 1, 100)), want: field.ErrorList{invalid("status.recoveredIndexes[0]")}},
		"none is there twice": {
			before: failed(well(1, 1, 100)), tweak: short(record(1, 1, 100)), want: field.ErrorList{duplicate("status.recoveredIndexes[0]")},
		},
		"nor in short": {
			before: short(record(1, 1, 100)), tweak: short(record(1, 1, 100), record(1, 1, 100)), want: field.ErrorList{duplicate("status.recoveredIndexes[1]")},
		},
		"in the order of the indexes": {
			before: short(record(1, 1, 100), record(2, 1, 100)), tweak: short(record(2, 1, 100), record(1, 1, 100)), want: field.ErrorList{invalid("status.recoveredIndexes[1]")},
		},
		"what cannot be read": {tweak: short("one"), want: field.ErrorList{invalid("status.recoveredIndexes[0]")}},
		"none of an attempt that begins": {
			before: short(record(1, 1, 100)), tweak: started, want: field.ErrorList{invalid("status.recoveredIndexes")},
		},
		"all go with their attempt": {before: short(record(1, 1, 100)), tweak: all(started, short())},
	})
}
