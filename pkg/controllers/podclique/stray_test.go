package podclique

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

func without(key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { delete(p.Labels, key) }
}

// with changes a label.
func with(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels[key] = value }
}

// A copy of a pod goes, whichever of both has the lower UID and however it ended; the pod
// itself stays, and counts alone.
func TestACopyOfAPodGoesAndThePodStays(t *testing.T) {
	for _, uid := range []types.UID{"a", "z"} {
		for _, phase := range []corev1.PodPhase{corev1.PodRunning, corev1.PodFailed, corev1.PodSucceeded} {
			t.Run(string(uid)+" "+string(phase), func(t *testing.T) {
				c := &cluster{t: t, objects: []client.Object{newSet(nil), newClique(allMade), newGang(gangScheduled), newPod(0, nil), newPod(1, nil), newPod(2, nil),
					newPod(0, func(p *corev1.Pod) { p.Name, p.UID, p.Status.Phase = "debug", uid, phase })}}
				r := c.reconciler()
				if _, err := r.Reconcile(t.Context(), request); err != nil {
					t.Fatal(err)
				}
				expect(t, "writes of pods", []string{"delete Pod debug"}, c.podWrites())
				status := c.clique().Status
				expect(t, "pods", int32(3), status.Replicas)
				expect(t, "finished", "", status.CompletedIndexes)
				expect(t, "failures", 0, len(status.FailedIndexes))
				told := strings.Join(drain(c), "\n")
				if !strings.Contains(told, "Warning StrayPodDeleted debug is a copy of another pod, or its labels were changed: it is deleted") {
					t.Errorf("events: %s", told)
				}
			})
		}
	}
}

// drain reads the events that were told.
func drain(c *cluster) []string {
	var out []string
	for len(c.recorder.Events) > 0 {
		out = append(out, <-c.recorder.Events)
	}
	return out
}

// relabelled are pods of which somebody has changed what says who they are, and that the cache
// shows all the same.
func relabelled() map[string]func(*corev1.Pod) {
	return map[string]func(*corev1.Pod){
		"no index":            without(labels.PodIndex),
		"an index like no":    with(labels.PodIndex, "x"),
		"another index":       with(labels.PodIndex, "2"),
		"no attempt":          without(labels.RestartAttempt),
		"an attempt like no":  with(labels.RestartAttempt, "x"),
		"a later attempt":     with(labels.RestartAttempt, "7"),
		"no clique":           without(labels.PodClique),
		"the name of another": with(labels.PodClique, "llm-0-other"),
	}
}

// One pod of which somebody has changed a label holds up nothing: neither the clique's own
// end, nor that of its set, nor the other pods.
func TestARelabelledPodGoes(t *testing.T) {
	inference := func(c *grovev1alpha1.PodClique) {
		allMade(c)
		c.Spec.WorkloadType = grovev1alpha1.WorkloadTypeInference
	}
	of := func(change func(*corev1.Pod), objects ...client.Object) []client.Object {
		return append(objects, newGang(gangScheduled), newPod(0, change), newPod(1, nil), newPod(2, nil))
	}
	for name, change := range relabelled() {
		t.Run(name, func(t *testing.T) {
			all := []string{"delete Pod " + podName(0), "delete Pod " + podName(1), "delete Pod " + podName(2)}
			for what, tc := range map[string]struct {
				objects []client.Object
				want    []string
			}{
				"the clique is deleted": {of(change, newSet(nil), newClique(leaving)), all},
				"the set is, as well":   {of(change, newSet(deletedSet), newClique(leaving)), all},
				"the set fails":         {of(change, newSet(failing), newClique(allMade)), all},
				// A new one is tried, and waits for the name.
				"it is replaced": {of(change, newSet(nil), newClique(inference)), []string{"create Pod " + podName(0), "delete Pod " + podName(0)}},
			} {
				c := &cluster{t: t, objects: tc.objects}
				r := c.reconciler()
				// The first pass may record that an index is lost.
				for pass := 0; pass < 2 && len(c.podWrites()) == 0; pass++ {
					if _, err := r.Reconcile(t.Context(), request); err != nil {
						t.Errorf("%s: %v", what, err)
					}
				}
				expect(t, what, tc.want, c.podWrites())
			}
		})
	}
}

// What the user has orphaned stays, whatever labels it lacks.
func TestARelabelledPodThatWasOrphanedStays(t *testing.T) {
	for name, change := range relabelled() {
		c := &cluster{t: t, objects: []client.Object{newSet(nil), newClique(leaving), newPod(0, change)}, live: []client.Object{newSet(nil), newPod(0, func(p *corev1.Pod) {
			change(p)
			p.OwnerReferences = nil
		})}}
		if _, err := c.reconciler().Reconcile(t.Context(), request); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		expect(t, name, []string(nil), c.podWrites())
	}
}

// A pod that has lost the label by which the cache knows pods is deleted where a live read
// finds it, and the clique is tried again: nothing else tells when it is gone.
func TestAPodThatNoCacheShowsGoes(t *testing.T) {
	unseen := newPod(0, without(labels.ManagedBy))
	going := newPod(0, func(p *corev1.Pod) {
		without(labels.ManagedBy)(p)
		p.DeletionTimestamp, p.Finalizers = ptr.To(metav1.NewTime(now)), []string{"x/y"}
	})
	old := newSet(replicaInAttempt(1))
	inference := func(c *grovev1alpha1.PodClique) {
		allMade(c)
		c.Spec.WorkloadType = grovev1alpha1.WorkloadTypeInference
	}
	const changed = "the labels by which the pod is known were changed, by somebody, or by a policy or webhook as it was made: it is deleted"
	create, remove := "create Pod "+podName(0), "delete Pod "+podName(0)
	tests := map[string]struct {
		objects, live []client.Object
		want          []string
		wantErr       string
	}{
		"of a deleted clique": {
			[]client.Object{newSet(deletedSet), newClique(leaving)}, []client.Object{newSet(deletedSet), unseen}, []string{remove},
			"1 pods of the deleted clique llm-0-worker are not in the cache yet",
		},
		"of a deleted clique, once": {
			[]client.Object{newSet(deletedSet), newClique(leaving)}, []client.Object{newSet(deletedSet), going}, nil,
			"1 pods of the deleted clique llm-0-worker are not in the cache yet",
		},
		"in the way of the one that replaces it": {
			[]client.Object{newSet(nil), newClique(inference), newGang(gangScheduled), newPod(1, nil), newPod(2, nil)}, []client.Object{newSet(nil), unseen}, []string{create, remove}, changed,
		},
		"in the way of the one that replaces it, once": {
			[]client.Object{newSet(nil), newClique(inference), newGang(gangScheduled), newPod(1, nil), newPod(2, nil)}, []client.Object{newSet(nil), going}, []string{create}, changed,
		},
		"of the attempt before": {
			[]client.Object{old, newClique(inAttempt(1)), gangInAttempt(1)}, []client.Object{old, unseen}, []string{remove}, changed,
		},
		"of nobody knows which attempt": {
			[]client.Object{old, newClique(inAttempt(1)), gangInAttempt(1)}, []client.Object{old, newPod(0, without(labels.RestartAttempt))}, []string{remove}, changed,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := &cluster{t: t, objects: tc.objects, live: tc.live, refuse: func(verb string, obj client.Object) error {
				if verb == "create" {
					return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "pods"}, obj.GetName())
				}
				return nil
			}}
			_, err := c.reconciler().Reconcile(t.Context(), request)
			if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("error: %v", err)
			}
			expect(t, "writes of pods", tc.want, c.podWrites())
		})
	}
}

// A policy of the cluster that changes the labels of new pods would have pods run that nobody
// counts.
func TestAPodWhoseLabelsAreChangedAsItIsMadeGoesAndThatIsTold(t *testing.T) {
	c := &cluster{t: t, objects: []client.Object{newSet(nil), newClique(nil), newGang(gangScheduled), newPod(1, nil), newPod(2, nil)}}
	c.refuse = func(verb string, obj client.Object) error {
		if verb == "create" {
			obj.GetLabels()[labels.ManagedBy] = "helm"
		}
		return nil
	}
	if _, err := c.reconciler().Reconcile(t.Context(), request); err == nil || !strings.Contains(err.Error(), "by a policy or webhook as it was made") {
		t.Errorf("error: %v", err)
	}
	expect(t, "writes of pods", []string{"create Pod " + podName(0), "delete Pod " + podName(0)}, c.podWrites())
}
