package history

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// What is certainly after something else does not depend on the order of arrival.
func TestOrder(t *testing.T) {
	t.Parallel()
	rev := func(seq int, kind Kind, rv uint64) *Revision {
		return &Revision{Seq: seq, Kind: kind, RV: rv, Arrived: start.Add(time.Duration(seq) * time.Second)}
	}
	set, pod, later, clique := rev(0, Set, 10), rev(1, Pod, 500), rev(2, Clique, 12), rev(3, Clique, 11)
	o := newOrder(&Log{
		Revisions: []*Revision{set, pod, later, clique},
		// The list began when the set and the pod had come, and found the clique's first state.
		Fences: []Fence{{Server: Copse, Seq: 2, RV: 11}},
	})
	for _, tc := range []struct {
		name string
		a, b *Revision
		want bool
	}{
		{"within a server by resourceVersion", later, clique, true},
		{"within a server against arrival", clique, later, false},
		{"behind a fence", later, pod, true},
		{"arrived later, but found by the fence", clique, pod, false},
		{"no fence on that server", pod, set, false},
		{"found by a list", &Revision{Seq: 4, Kind: Clique, RV: 20, Listed: true}, pod, false},
	} {
		if got := o.certainlyAfter(tc.a, tc.b); got != tc.want {
			t.Errorf("%s: %t", tc.name, got)
		}
	}
	// The clique of RV 11 came last, but was written before that of RV 12.
	if got := o.written[clique]; !got.Equal(later.Arrived) {
		t.Errorf("written at %s", got)
	}
}

// A violation names its invariant and shows the revisions that prove it, the one where
// it shows marked.
func TestAViolationIsReadable(t *testing.T) {
	t.Parallel()
	b := newBuilder()
	b.inference()
	b.going(Pod, "w1")
	b.clique("job-0-worker", func(c *grovev1alpha1.PodClique) { c.Status.ReadyReplicas = 1 })
	b.podPhase("w1", corev1.PodFailed)
	text := Check(&b.log).Violations[0].String()
	lines := strings.Split(text, "\n")
	if lines[0] != "I18: pod w1 is deleted without a reason" || len(lines) != 6 {
		t.Errorf("the violation is told as\n%s", text)
	}
	if !strings.HasPrefix(lines[3], "  > ") && !strings.HasPrefix(lines[3], " > ") || !strings.Contains(lines[3], "Pod w1: uid=w1-4 index=1 attempt=0 Running terminating") {
		t.Errorf("the place is told as %q", lines[3])
	}
}
