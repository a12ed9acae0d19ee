package podgrouper

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
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

// A PodGroup of the pod grouper's has its own name with the scheduler; any other, a copy of
// such a one included, has one that is made from its UID.
func TestNativeNameOf(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations map[string]string
		made        bool
	}{
		"made":                    {map[string]string{GroupedByAnnotation: GroupedByValue, MadeAsAnnotation: "pg"}, true},
		"made by hand":            {nil, false},
		"copied":                  {map[string]string{GroupedByAnnotation: GroupedByValue, MadeAsAnnotation: "pg-before"}, false},
		"marked by half":          {map[string]string{GroupedByAnnotation: GroupedByValue}, false},
		"marked by another":       {map[string]string{GroupedByAnnotation: "me", MadeAsAnnotation: "pg"}, false},
		"marked by the name only": {map[string]string{MadeAsAnnotation: "pg"}, false},
	} {
		group := &schedulerv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "pg", UID: "uid", Annotations: tc.annotations}}
		want := NativeName("pg", "uid")
		if tc.made {
			want = "pg"
		}
		if got := NativeNameOf(group); got != want || IsMade(group) != tc.made {
			t.Errorf("%s: made %v, name %q", name, IsMade(group), got)
		}
	}
}

func TestNameForPod(t *testing.T) {
	named := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", GenerateName: "other-"}}
	unnamed := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-"}}
	if got := NameForPod(named, "a"); !strings.HasPrefix(got, "pg-web-") || got != NameForPod(unnamed, "a") || got == NameForPod(named, "b") {
		t.Errorf("got %q", got)
	}
}
