package labels

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	apilabels "k8s.io/apimachinery/pkg/labels"
)

func TestIndexesAreReadAsTheyAreWritten(t *testing.T) {
	for index, value := range map[int32]string{0: "0", 7: "7", 10: "10", math.MaxInt32: "2147483647"} {
		if got := Index(index); got != value {
			t.Errorf("index %d is written as %q, want %q", index, got, value)
		}
		if got, ok := ParseIndex(value); got != index || !ok {
			t.Errorf("%q is read as %d, %v", value, got, ok)
		}
	}
	// One value for each index: else two pods could claim one index in two ways.
	for _, value := range []string{"", "-1", "-0", "+1", "01", "1.0", "1e1", " 1", "1 ", "x", "2147483648", "4294967296", "0x1", "1_0"} {
		if got, ok := ParseIndex(value); ok || got != 0 {
			t.Errorf("%q is read as %d, %v", value, got, ok)
		}
	}
}

func TestLabelsOfManagedObjects(t *testing.T) {
	if diff := cmp.Diff(map[string]string{
		"app.kubernetes.io/name": "llm-1", "app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "llm", "app.kubernetes.io/component": "podgang",
	}, Managed("llm-1", "llm", ComponentPodGang)); diff != "" {
		t.Errorf("managed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{
		"app.kubernetes.io/name": "llm-1", "app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "llm", "app.kubernetes.io/component": "podgang",
		"grove.io/podcliqueset-replica-index": "1",
	}, ForReplica("llm-1", "llm", ComponentPodGang, 1)); diff != "" {
		t.Errorf("of a replica (-want +got):\n%s", diff)
	}
}

func TestEachCallMakesLabelsOfItsOwn(t *testing.T) {
	ForReplica("a", "set", ComponentPodClique, 0)["x"] = "x"
	if got := ForReplica("a", "set", ComponentPodClique, 0); got["x"] != "" {
		t.Error("labels are shared between objects")
	}
}

// The selectors are for autoscalers: they find the pods that carry the labels, and no
// others.
func TestSelectors(t *testing.T) {
	pod := apilabels.Set{PartOf: "llm", ManagedBy: ManagedByValue, PodClique: "llm-0-worker", ScalingGroup: "llm-0-decode", ScalingGroupFirstPod: "true"}
	tests := map[string]struct {
		selector string
		want     string
		other    apilabels.Set
	}{
		"set":           {PodsOfSet("llm"), "app.kubernetes.io/managed-by=grove-operator,app.kubernetes.io/part-of=llm", apilabels.Set{PartOf: "llm"}},
		"clique":        {PodsOfClique("llm-0-worker"), "grove.io/podclique=llm-0-worker", apilabels.Set{PodClique: "llm-0-work"}},
		"scaling group": {FirstPodsOfScalingGroup("llm-0-decode"), "grove.io/podcliquescalinggroup=llm-0-decode,grove.io/podcliquescalinggroup-first-pod=true", apilabels.Set{ScalingGroup: "llm-0-decode"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.selector != tc.want {
				t.Errorf("got %q, want %q", tc.selector, tc.want)
			}
			selector, err := apilabels.Parse(tc.selector)
			if err != nil {
				t.Fatal(err)
			}
			if !selector.Matches(pod) || selector.Matches(tc.other) {
				t.Errorf("matches the pod: %v, another: %v", selector.Matches(pod), selector.Matches(tc.other))
			}
		})
	}
}
