package podgrouper

import (
	"strings"
	"testing"
)

func TestNativeName(t *testing.T) {
	short := NativeName("mine", "uid-1")
	if !strings.HasPrefix(short, "pg-mine-") || short == NativeName("mine", "uid-2") {
		t.Errorf("got %q", short)
	}
	if long := NativeName(strings.Repeat("long.", 40), "uid-1"); len(long) != 63 {
		t.Errorf("%q has %d characters", long, len(long))
	}
}
