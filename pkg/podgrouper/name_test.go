package podgrouper

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

func TestNameForPod(t *testing.T) {
	named := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", GenerateName: "other-"}}
	unnamed := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-"}}
	if got := NameForPod(named, "a"); !strings.HasPrefix(got, "pg-web-") || got != NameForPod(unnamed, "a") || got == NameForPod(named, "b") {
		t.Errorf("got %q", got)
	}
}
