// Package indexset reads, joins and writes sets of pod indexes in the form in which an
// indexed Job writes them: "0-3,7". It is no general interval library: sets are small
// enough to be kept as sorted ranges.
package indexset

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// interval is a range of indexes, both ends included.
type interval struct{ first, last int32 }

// Set is a set of indexes. The zero value is empty.
type Set struct {
	// intervals are sorted and neither overlap nor touch.
	intervals []interval
}

// Of returns the set of the given indexes, in any order.
func Of(indexes ...int32) Set {
	sorted := append([]int32(nil), indexes...)
	sort.Slice(sorted, func(i, j int) bool { return sorted[i] < sorted[j] })
	var s Set
	for _, index := range sorted {
		s.extend(interval{index, index})
	}
	return s
}

// Below returns the set of all indexes below bound.
func Below(bound int32) Set {
	var s Set
	s.extend(interval{0, bound - 1})
	return s
}

// Parse reads a set. It fails on anything that String would not write.
func Parse(text string) (Set, error) {
	var s Set
	if text == "" {
		return s, nil
	}
	for _, part := range strings.Split(text, ",") {
		firstText, lastText, isRange := strings.Cut(part, "-")
		first, err := parseIndex(firstText)
		if err != nil {
			return Set{}, err
		}
		last := first
		if isRange {
			if last, err = parseIndex(lastText); err != nil {
				return Set{}, err
			}
		}
		s.intervals = append(s.intervals, interval{first, last})
	}
	if canonical := Union(s, Set{}); canonical.String() != text {
		return Set{}, fmt.Errorf("%q is not in the form of %q: ascending, joined, without repetition", text, "0-3,7")
	}
	return s, nil
}

func parseIndex(text string) (int32, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is not an index", text)
	}
	return int32(n), nil
}

// Union returns the indexes that are in a or in b.
func Union(a, b Set) Set {
	all := append(append([]interval(nil), a.intervals...), b.intervals...)
	sort.Slice(all, func(i, j int) bool { return all[i].first < all[j].first })
	var s Set
	for _, iv := range all {
		s.extend(iv)
	}
	return s
}

// extend adds an interval that starts no earlier than the last one.
func (s *Set) extend(iv interval) {
	if iv.last < iv.first {
		return
	}
	if n := len(s.intervals); n > 0 && int64(iv.first) <= int64(s.intervals[n-1].last)+1 {
		s.intervals[n-1].last = max(s.intervals[n-1].last, iv.last)
		return
	}
	s.intervals = append(s.intervals, iv)
}

// Has says whether index is in the set.
func (s Set) Has(index int32) bool {
	i := sort.Search(len(s.intervals), func(i int) bool { return s.intervals[i].last >= index })
	return i < len(s.intervals) && s.intervals[i].first <= index
}

// Contains says whether every index of other is in the set.
func (s Set) Contains(other Set) bool {
	return Union(s, other).String() == s.String()
}

// Len returns how many indexes are in the set.
func (s Set) Len() int {
	n := 0
	for _, iv := range s.intervals {
		n += int(iv.last-iv.first) + 1
	}
	return n
}

// CountBelow returns how many indexes of the set are less than bound.
func (s Set) CountBelow(bound int32) int {
	n := 0
	for _, iv := range s.intervals {
		if iv.first >= bound {
			break
		}
		n += int(min(iv.last, bound-1)-iv.first) + 1
	}
	return n
}

// String writes the set, as "0-3,7".
func (s Set) String() string {
	parts := make([]string, 0, len(s.intervals))
	for _, iv := range s.intervals {
		if iv.first == iv.last {
			parts = append(parts, strconv.Itoa(int(iv.first)))
			continue
		}
		parts = append(parts, fmt.Sprintf("%d-%d", iv.first, iv.last))
	}
	return strings.Join(parts, ",")
}
