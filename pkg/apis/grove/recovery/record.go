package recovery

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// uidLength is how much of a pod's UID is kept: eight hexadecimal digits tell the pods of
// one index apart.
const uidLength = 8

// Record is what is remembered of an index that has recovered.
type Record struct {
	// Index of the pods, from 0.
	Index int32
	// Count of failures in a row, from 1.
	Count int32
	// Since is when the index was well again, in whole seconds.
	Since time.Time
	// Pod begins the UID of the pod that failed last; empty when that pod was lost.
	Pod string
}

// Of returns the record of an index that has failed count times, last with a pod of the
// given UID.
func Of(index, count int32, since time.Time, uid types.UID) Record {
	return Record{Index: index, Count: count, Since: since.UTC().Truncate(time.Second), Pod: string(uid[:min(len(uid), uidLength)])}
}

// String writes the record: the count only if it is above 1, the pod only if it is known.
func (r Record) String() string {
	text := strconv.Itoa(int(r.Index))
	if r.Count != 1 {
		text += "x" + strconv.Itoa(int(r.Count))
	}
	text += "@" + r.Since.UTC().Format(time.RFC3339)
	if r.Pod != "" {
		text += "/" + r.Pod
	}
	return text
}

// Parse reads a record. It fails on anything that String would not write.
func Parse(text string) (Record, error) {
	record := Record{Count: 1}
	what, when, _ := strings.Cut(text, "@")
	index, count, isRepeated := strings.Cut(what, "x")
	at, pod, _ := strings.Cut(when, "/")
	record.Pod = pod
	err := parseInt(index, &record.Index)
	if err == nil && isRepeated {
		err = parseInt(count, &record.Count)
	}
	if err == nil {
		record.Since, err = time.Parse(time.RFC3339, at)
	}
	switch {
	case err != nil:
		return Record{}, fmt.Errorf("%q is not like 12x2@2026-11-29T04:57:56Z/dc4c7c9e: %w", text, err)
	case record.Index < 0 || record.Count < 1 || len(pod) > uidLength || record.String() != text:
		return Record{}, fmt.Errorf("%q is not like 12x2@2026-11-29T04:57:56Z/dc4c7c9e", text)
	}
	return record, nil
}

func parseInt(text string, value *int32) error {
	n, err := strconv.ParseInt(text, 10, 32)
	*value = int32(n)
	return err
}

// Find is where the record of an index is in a list that is in the order of the indexes, or
// would be.
func Find(records []string, index int32) (int, bool) {
	return slices.BinarySearchFunc(records, index, func(text string, index int32) int { return int(indexOf(text)) - int(index) })
}

// indexOf reads no more than the index. Where there is none it is before all others.
func indexOf(text string) int32 {
	end := strings.IndexAny(text, "x@")
	n := int32(-1)
	if end > 0 && parseInt(text[:end], &n) != nil {
		return -1
	}
	return n
}
