package lots

import (
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

func TestASeedDrawsTheSameSet(t *testing.T) {
	bounds := Bounds{Pods: 20, TooBig: 4, Timeouts: [2]int32{1, 60}}
	for seed := range uint64(200) {
		if one, other := Draw(seed, bounds), Draw(seed, bounds); !apiequality.Semantic.DeepEqual(one, other) {
			t.Fatalf("seed %d draws %+v and %+v", seed, one, other)
		}
	}
}

// A mistake that is never made is one that nobody looks for.
func TestEachMistakeIsDrawn(t *testing.T) {
	bounds := Bounds{Pods: 20, TooBig: 4, Timeouts: [2]int32{1, 60}}
	drawn := map[string]int{}
	for seed := range uint64(5000) {
		lot := Draw(seed, bounds)
		drawn[lot.Mistake]++
		if n := CountPods(lot.Set); n > bounds.Pods {
			t.Errorf("seed %d draws %d pods", seed, n)
		}
		if (lot.Mistake == "") != (lot.Field == "") {
			t.Errorf("seed %d: mistake %q at %q", seed, lot.Mistake, lot.Field)
		}
	}
	for _, m := range mistakes() {
		if drawn[m.name] == 0 {
			t.Errorf("never drawn: %s", m.name)
		}
	}
	t.Log(drawn)
}
