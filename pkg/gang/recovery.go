package gang

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove/recovery"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// maxRecoveriesInFull is how many indexes that are well again are told of in words.
const maxRecoveriesInFull = 8

// shortenRecoveries keeps in short what is on record of indexes that are well again, but for
// the last few of them. It belongs to the write of another failure, so that it costs none.
func shortenRecoveries(status *grovev1alpha1.PodCliqueStatus) {
	var recovered []int
	for i := range status.FailedIndexes {
		if status.FailedIndexes[i].RecoveredTime != nil {
			recovered = append(recovered, i)
		}
	}
	if len(recovered) <= maxRecoveriesInFull {
		return
	}
	slices.SortStableFunc(recovered, func(a, b int) int {
		return status.FailedIndexes[b].RecoveredTime.Compare(status.FailedIndexes[a].RecoveredTime.Time)
	})
	short := map[int32]bool{}
	for _, i := range recovered[maxRecoveriesInFull:] {
		failed := &status.FailedIndexes[i]
		record := recovery.Of(failed.Index, failed.Count, failed.RecoveredTime.Time, failed.PodUID)
		at, _ := recovery.Find(status.RecoveredIndexes, failed.Index)
		status.RecoveredIndexes = slices.Insert(status.RecoveredIndexes, at, record.String())
		short[failed.Index] = true
	}
	status.FailedIndexes = slices.DeleteFunc(status.FailedIndexes, func(failed grovev1alpha1.FailedIndex) bool { return short[failed.Index] })
}

// takeRecovery takes an index out of those that are kept in short, and returns what is known
// of it. When it last failed is not: it was well after that.
func takeRecovery(status *grovev1alpha1.PodCliqueStatus, index int32) (grovev1alpha1.FailedIndex, bool) {
	at, found := recovery.Find(status.RecoveredIndexes, index)
	if !found {
		return grovev1alpha1.FailedIndex{}, false
	}
	record, err := recovery.Parse(status.RecoveredIndexes[at])
	if err != nil {
		// The API server lets no such text in.
		return grovev1alpha1.FailedIndex{}, false
	}
	status.RecoveredIndexes = slices.Delete(status.RecoveredIndexes, at, at+1)
	since := metav1.NewTime(record.Since)
	return grovev1alpha1.FailedIndex{
		Index: index, Count: record.Count, LastTime: since, RecoveredTime: ptr.To(since), PodUID: types.UID(record.Pod),
	}, true
}

// forgetRecovered makes room for another failure: of the indexes that are well again, the one
// that has been so for longest is forgotten. Those that are kept in short have been for longer
// than the others. It says whether there was one.
func forgetRecovered(status *grovev1alpha1.PodCliqueStatus) bool {
	if len(status.RecoveredIndexes) > 0 {
		longest := slices.MinFunc(status.RecoveredIndexes, func(a, b string) int { return recoveredAt(a).Compare(recoveredAt(b)) })
		status.RecoveredIndexes = slices.DeleteFunc(status.RecoveredIndexes, func(record string) bool { return record == longest })
		return true
	}
	first := -1
	for i := range status.FailedIndexes {
		at := status.FailedIndexes[i].RecoveredTime
		if at != nil && (first < 0 || at.Before(status.FailedIndexes[first].RecoveredTime)) {
			first = i
		}
	}
	if first >= 0 {
		status.FailedIndexes = slices.Delete(status.FailedIndexes, first, first+1)
	}
	return first >= 0
}

// recoveredAt is zero where there is no record, as the API server lets none in.
func recoveredAt(text string) time.Time {
	record, _ := recovery.Parse(text)
	return record.Since
}
