package podclique

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
)

// Pods whose clique, or whose attempt, is lost in etcd may be all that is left of the work
// (D25): nobody deletes them, and nobody makes a pod beside them.
func TestPodsOfWhatIsLostAreLeftAlone(t *testing.T) {
	ofLostClique := func(p *corev1.Pod) {
		p.Name += "-lost"
		p.OwnerReferences[0].UID = "lost"
	}
	ofLostAttempt := func(p *corev1.Pod) {
		p.Name, p.Labels[labels.RestartAttempt] = naming.Pod("llm-0-worker", "clique", 0, 1), "1"
	}
	tests := map[string]struct {
		objects []client.Object
		writes  []string
		told    bool
	}{
		"the clique is lost": {
			objects: []client.Object{newSet(nil), newGang(nil), newPod(0, nil), newPod(1, nil), newPod(2, nil)},
		},
		"the set is lost, the clique is not": {
			objects: []client.Object{newClique(nil), newGang(nil), newPod(0, nil)},
		},
		"the attempt is lost": {
			objects: []client.Object{newSet(nil), newClique(nil), newGang(nil), newPod(0, ofLostAttempt)},
		},
		"the clique is lost, and was made again": {
			objects: []client.Object{newSet(nil), newClique(nil), newGang(gangScheduled), newPod(0, ofLostClique), newPod(2, ofLostClique)},
			writes:  []string{"create Pod " + podName(1)},
			told:    true,
		},
		"one of the lost clique has ended": {
			objects: []client.Object{newSet(nil), newClique(nil), newGang(gangScheduled), newPod(0, ofLostClique), newPod(2, func(p *corev1.Pod) { ofLostClique(p); podFailed(p) })},
			writes:  []string{"create Pod " + podName(1), "create Pod " + podName(2)},
			told:    true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := &cluster{t: t, objects: tc.objects}
			_, err := c.reconciler().Reconcile(t.Context(), request)
			expect(t, "writes of pods", tc.writes, c.podWrites())
			if (err != nil) != tc.told {
				t.Errorf("error: %v", err)
			}
			if !tc.told {
				return
			}
			conflict := meta.FindStatusCondition(c.clique().Status.Conditions, grovev1alpha1.ConditionTypeNameConflict)
			if conflict == nil || conflict.Reason != grovev1alpha1.ReasonForeignPod {
				t.Errorf("condition: %v", conflict)
			}
		})
	}
}
