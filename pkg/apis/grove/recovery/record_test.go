package recovery

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestARecordIsWrittenAsItIsRead(t *testing.T) {
	since := time.Date(2026, 11, 29, 4, 57, 56, 0, time.UTC)
	const uid = types.UID("dc4c7c9e-4bc1-46b5-b9d5-0123456789ab")
	for text, record := range map[string]Record{
		"12x2@2026-11-29T04:57:56Z/dc4c7c9e": Of(12, 2, since, uid),
		"0@2026-11-29T04:57:56Z/dc4c7c9e":    Of(0, 1, since.Add(time.Second-1), uid),
		"7@2026-11-29T04:57:56Z":             Of(7, 1, since.In(time.FixedZone("CET", 3600)), ""),
		"7x3@2026-11-29T04:57:56Z/short":     Of(7, 3, since, "short"),
	} {
		if got := record.String(); got != text {
			t.Errorf("%+v is written as %q, wanted %q", record, got, text)
		}
		if got, err := Parse(text); err != nil || got != record {
			t.Errorf("%q is read as %+v, %v, wanted %+v", text, got, err, record)
		}
	}
}

func TestWhatIsNoRecordIsRefused(t *testing.T) {
	for _, text := range []string{
		"", "12", "@2026-11-29T04:57:56Z", "-1@2026-11-29T04:57:56Z", "012@2026-11-29T04:57:56Z", "99999999999@2026-11-29T04:57:56Z",
		"1x0@2026-11-29T04:57:56Z", "1x1@2026-11-29T04:57:56Z", "1x@2026-11-29T04:57:56Z", "1x-2@2026-11-29T04:57:56Z", "1x2x3@2026-11-29T04:57:56Z",
		"1@", "1@yesterday", "1@2026-11-29T05:57:56+01:00", "1@2026-11-29T04:57:56.5Z", "1@2026-11-29T04:57:56Z/", "1@2026-11-29T04:57:56Z/dc4c7c9e-4", " 1@2026-11-29T04:57:56Z",
	} {
		if got, err := Parse(text); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

func TestARecordIsFoundByItsIndex(t *testing.T) {
	records := []string{"2@2026-11-29T04:57:56Z", "10x2@2026-11-29T04:57:56Z", "11@2026-11-29T04:57:56Z"}
	for index, want := range map[int32]int{0: 0, 2: 0, 3: 1, 10: 1, 11: 2, 12: 3} {
		at, found := Find(records, index)
		if isThere := slices.Contains([]int32{2, 10, 11}, index); at != want || found != isThere {
			t.Errorf("index %d: %d, %v, wanted %d, %v", index, at, found, want, isThere)
		}
	}
	if at, found := Find([]string{"nothing", "@", "1@2026-11-29T04:57:56Z"}, 1); at != 2 || !found {
		t.Errorf("behind what is no record: %d, %v", at, found)
	}
}
