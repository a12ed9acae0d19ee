package podclique

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/scheduling/kai"
)

func TestReconcile(t *testing.T) {
	create := func(indexes ...int32) []string {
		var out []string
		for _, index := range indexes {
			out = append(out, "create Pod "+podName(index))
		}
		slices.Sort(out)
		return out
	}
	remove := func(indexes ...int32) []string {
		var out []string
		for _, index := range indexes {
			out = append(out, "delete Pod "+podName(index))
		}
		slices.Sort(out)
		return out
	}
	const status, release = "status PodClique llm-0-worker", "patch PodClique llm-0-worker"
	tests := map[string]struct {
		cluster *cluster
		// wantStatus says that the status is written first, wantRelease that the finalizer
		// is taken off at last.
		wantStatus, wantRelease bool
		wantPods                []string
		wantErr                 string
	}{
		"members are made when their gang exists": {
			cluster: &cluster{objects: []client.Object{newSet(nil), newClique(nil), newGang(nil)}}, wantStatus: true, wantPods: create(0, 1),
		},
		"all are made when it is scheduled": {
			cluster: &cluster{objects: []client.Object{newSet(nil), newClique(nil), newGang(gangScheduled)}}, wantStatus: true, wantPods: create(0, 1, 2),
		},
		"none without the gang": {
			cluster: &cluster{objects: []client.Object{newSet(nil), newClique(nil)}}, wantStatus: true,
		},
		"none while the gang goes": {
			cluster: &cluster{objects: []client.Object{newSet(nil), newClique(nil), newGang(func(g *schedulerv1alpha1.PodGang) {
				g.DeletionTimestamp, g.Finalizers = ptr.To(metav1.NewTime(now)), []string{"x/y"}
			})}}, wantStatus: true,
		},
		"none while the gang names pods of another attempt": {
			cluster: &cluster{objects: []client.Object{newSet(nil), newClique(nil), newGang(func(g *schedulerv1alpha1.PodGang) {
				g.Spec.PodGroups[0].PodReferences[0].Name = "llm-0-worker-0-other"
			})}}, wantStatus: true,
		},
		"none while the scheduler has not been told of the gang as it is": {
			cluster: &cluster{objects: []client.Object{newSet(nil), newClique(nil), newGang(func(g *schedulerv1alpha1.PodGang) {
				g.Generation, g.Status.ObservedGeneration = 2, ptr.To[int64](1)
			})}}, wantStatus: true,
		},
		"none while the gang does not know the clique": {
			cluster: &cluster{objects: []client.Object{newSet(nil), newClique(nil), newGang(func(g *schedulerv1alpha1.PodGang) { g.Spec.PodGroups = nil })}}, wantStatus: true,
		},
		"a clique that is gone": {cluster: &cluster{objects: []client.Object{newSet(nil)}}},
		"a clique without its set": {
			cluster: &cluster{objects: []client.Object{newClique(nil), newGang(nil)}},
		},
		"a clique whose set was made anew": {
			cluster: &cluster{objects: []client.Object{newSet(func(pcs *grovev1alpha1.PodCliqueSet) { pcs.UID = "other" }), newClique(nil), newGang(nil)}},
		},
		"a failure is recorded, and nothing done": {
			cluster:    &cluster{objects: []client.Object{newSet(nil), newClique(allMade), newPod(0, podFailed), newPod(1, nil), newPod(2, nil)}},
			wantStatus: true,
		},
		"active pods of a set that fails go": {
			cluster:    &cluster{objects: []client.Object{newSet(failing), newClique(allMade), newPod(0, nil), newPod(1, nil), newPod(2, nil)}},
			wantStatus: true, wantPods: remove(0, 1, 2),
		},
		"not when the server says that it does not fail": {
			cluster: &cluster{
				objects: []client.Object{newSet(failing), newClique(allMade), newPod(0, nil), newPod(1, nil), newPod(2, nil)},
				live:    []client.Object{newSet(nil)},
			},
			wantStatus: true,
		},
		"nothing is made when the server says that the set fails": {
			cluster: &cluster{objects: []client.Object{newSet(nil), newClique(nil), newGang(nil)}, live: []client.Object{newSet(failing)}}, wantStatus: true,
		},
		"nor when the set is gone": {
			cluster: &cluster{objects: []client.Object{newSet(nil), newClique(nil), newGang(nil)}, live: []client.Object{newClique(nil)}}, wantStatus: true,
		},
		"nothing is done when the record is refused": {
			cluster: &cluster{
				objects: []client.Object{newSet(nil), newClique(nil), newGang(nil)},
				refuse: func(verb string, _ client.Object) error {
					if verb == "status" {
						return errors.New("boom")
					}
					return nil
				},
			},
			wantStatus: true, wantErr: "write the status: boom",
		},
		"healthy pods above the size go": {
			cluster:    &cluster{objects: []client.Object{newSet(nil), newClique(ofTwo), newGang(nil), newPod(0, nil), newPod(1, nil), newPod(2, nil)}},
			wantStatus: true, wantPods: remove(2),
		},
		"not when the server says that the clique has another size": {
			cluster: &cluster{
				objects: []client.Object{newSet(nil), newClique(ofTwo), newGang(nil), newPod(0, nil), newPod(1, nil), newPod(2, nil)},
				live:    []client.Object{newSet(nil), newClique(func(c *grovev1alpha1.PodClique) { ofTwo(c); c.Generation++ }), newPod(0, nil), newPod(1, nil), newPod(2, nil)},
			},
			wantStatus: true,
		},
		"nor when that cannot be read": {
			cluster: &cluster{
				objects: []client.Object{newSet(nil), newClique(ofTwo), newGang(nil), newPod(0, nil), newPod(1, nil), newPod(2, nil)},
				refuseRead: func(obj runtime.Object) error {
					if _, ok := obj.(*grovev1alpha1.PodClique); ok {
						return errors.New("boom")
					}
					return nil
				},
			},
			wantStatus: true, wantErr: "read PodClique llm-0-worker: boom",
		},
		"pods of a deleted clique go, and it stays as long as they do": {
			cluster:    &cluster{objects: []client.Object{newSet(nil), newClique(leaving), newPod(0, nil), newPod(1, nil), newPod(2, nil)}},
			wantStatus: true, wantPods: remove(0, 1, 2),
		},
		"also without its set": {
			cluster:    &cluster{objects: []client.Object{newClique(leaving), newPod(0, nil), newPod(1, nil), newPod(2, nil)}},
			wantStatus: true, wantPods: remove(0, 1, 2),
		},
		"when they are gone it goes": {
			cluster: &cluster{objects: []client.Object{newSet(deletedSet), newClique(leaving)}}, wantStatus: true, wantRelease: true,
		},
		"not when the server still has one": {
			cluster:    &cluster{objects: []client.Object{newSet(deletedSet), newClique(leaving)}, live: []client.Object{newSet(deletedSet), newPod(0, nil)}},
			wantStatus: true, wantPods: remove(0), wantErr: "1 pods of the deleted clique llm-0-worker are not in the cache yet",
		},
		"a clique that is orphaned goes at once, its pods stay": {
			cluster: &cluster{objects: []client.Object{newSet(nil), newClique(func(c *grovev1alpha1.PodClique) {
				leaving(c)
				c.Finalizers = append(c.Finalizers, metav1.FinalizerOrphanDependents)
			}), newPod(0, nil)}},
			wantRelease: true,
		},
		"pods that were orphaned meanwhile stay": {
			cluster: &cluster{
				objects: []client.Object{newSet(nil), newClique(leaving), newPod(0, nil), newPod(1, nil), newPod(2, nil)},
				live:    []client.Object{newSet(nil), newPod(1, nil), newPod(2, func(p *corev1.Pod) { p.OwnerReferences = nil })},
			},
			wantStatus: true, wantPods: remove(1),
		},
		"a deletion that finds nothing, or another pod, is done": {
			cluster: &cluster{
				objects: []client.Object{newSet(failing), newClique(allMade), newPod(0, nil), newPod(1, nil), newPod(2, nil)},
				refuse: func(verb string, obj client.Object) error {
					switch {
					case verb == "delete" && obj.GetName() == podName(0):
						return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, obj.GetName())
					case verb == "delete" && obj.GetName() == podName(1):
						return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, obj.GetName(), errors.New("another UID"))
					}
					return nil
				},
			},
			wantStatus: true, wantPods: remove(0, 1, 2),
		},
		"one that fails is tried again": {
			cluster: &cluster{
				objects: []client.Object{newSet(failing), newClique(allMade), newPod(0, nil)},
				refuse: func(verb string, _ client.Object) error {
					if verb == "delete" {
						return errors.New("boom")
					}
					return nil
				},
			},
			wantStatus: true, wantPods: remove(0), wantErr: "delete pod " + podName(0) + ": boom",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := tc.cluster
			c.t = t
			_, err := c.reconciler().Reconcile(t.Context(), request)
			got := ""
			if err != nil {
				got = err.Error()
			}
			expect(t, "error", tc.wantErr, got)
			expect(t, "writes of pods", tc.wantPods, c.podWrites())
			expect(t, "the status is written first", tc.wantStatus, slices.Index(c.writes, status) == 0)
			expect(t, "the finalizer is taken off", tc.wantRelease, slices.Contains(c.writes, release))
		})
	}
}

// The whole life of a failure: the pass that sees it records it, the pass after it acts.
func TestAFailureIsActedOnAfterItIsReadBack(t *testing.T) {
	c := &cluster{t: t, objects: []client.Object{
		newSet(nil), newGang(gangScheduled), newPod(0, podFailed), newPod(1, nil), newPod(2, nil),
		newClique(func(clique *grovev1alpha1.PodClique) {
			allMade(clique)
			clique.Spec.WorkloadType = grovev1alpha1.WorkloadTypeInference
		}),
	}}
	r := c.reconciler()
	for _, want := range [][]string{
		{"status PodClique llm-0-worker"},
		{"delete Pod " + podName(0)},
	} {
		c.writes = nil
		result, err := r.Reconcile(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "writes", want, c.writes)
		expect(t, "next look", reconcile.Result{}, result)
	}
	// Now the pod is gone: what is left is a back-off, to its exact end, and the counts, which wait for a second.
	c.writes = nil
	result, err := r.Reconcile(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "writes", []string(nil), c.podWrites())
	if result.RequeueAfter <= 0 || result.RequeueAfter > 10*time.Second {
		t.Errorf("looks again after %v", result.RequeueAfter)
	}
}

func TestALostPodIsLookedForOnTheServer(t *testing.T) {
	tests := map[string]struct {
		live []client.Object
		want []grovev1alpha1.FailedIndex
	}{
		"the cache is behind": {[]client.Object{newSet(nil), newPod(0, nil), newPod(1, nil), newPod(2, nil)}, nil},
		"it is gone": {
			[]client.Object{newSet(nil), newPod(0, nil), newPod(2, nil)},
			[]grovev1alpha1.FailedIndex{{Index: 1, Count: 1, LastTime: metav1.NewTime(now), Message: "the pod of index 1 of llm-0-worker is gone"}},
		},
		"a pod of that name is another's": {
			[]client.Object{newSet(nil), newPod(0, nil), newPod(1, func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" }), newPod(2, nil)},
			[]grovev1alpha1.FailedIndex{{Index: 1, Count: 1, LastTime: metav1.NewTime(now), Message: "the pod of index 1 of llm-0-worker is gone"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := &cluster{t: t, objects: []client.Object{newSet(nil), newClique(allMade), newGang(gangScheduled), newPod(0, nil), newPod(2, nil)}, live: tc.live}
			if _, err := c.reconciler().Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			got := c.clique().Status.FailedIndexes
			for i := range got {
				got[i].LastTime = metav1.NewTime(got[i].LastTime.UTC())
			}
			expect(t, "failures", tc.want, got)
			expect(t, "writes of pods", []string(nil), c.podWrites())
		})
	}
}

func TestAPodThatExistsAlready(t *testing.T) {
	exists := func(verb string, obj client.Object) error {
		if verb == "create" && obj.GetName() == podName(1) {
			return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "pods"}, obj.GetName())
		}
		return nil
	}
	tests := map[string]struct {
		live []client.Object
		want metav1.ConditionStatus
	}{
		"is the clique's own":      {[]client.Object{newSet(nil), newPod(1, nil)}, ""},
		"is on its way out":        {[]client.Object{newSet(nil), newPod(1, func(p *corev1.Pod) { p.DeletionTimestamp, p.Finalizers = ptr.To(metav1.NewTime(now)), []string{"x/y"} })}, ""},
		"is gone by the next look": {[]client.Object{newSet(nil)}, ""},
		"is another's":             {[]client.Object{newSet(nil), newPod(1, func(p *corev1.Pod) { p.OwnerReferences = nil })}, metav1.ConditionTrue},
		"is a namesake clique's":   {[]client.Object{newSet(nil), newPod(1, func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" })}, metav1.ConditionTrue},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := &cluster{t: t, objects: []client.Object{newSet(nil), newClique(nil), newGang(nil)}, live: tc.live, refuse: exists}
			_, err := c.reconciler().Reconcile(t.Context(), request)
			conflict := meta.FindStatusCondition(c.clique().Status.Conditions, grovev1alpha1.ConditionTypeNameConflict)
			if tc.want == "" {
				if err != nil || conflict != nil {
					t.Errorf("got %v, %v", conflict, err)
				}
				return
			}
			if err == nil || conflict == nil {
				t.Fatalf("got %v, %v", conflict, err)
			}
			expect(t, "reason", grovev1alpha1.ReasonForeignPod, conflict.Reason)
			expect(t, "message", podName(1)+": a pod of another owner has the name", conflict.Message)
			// The others are made all the same.
			expect(t, "writes of pods", 2, len(c.podWrites()))
			expect(t, "events", 1, len(c.recorder.Events))
		})
	}
}

func TestRefusedPodsAreTold(t *testing.T) {
	quota := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, podName(0), errors.New("exceeded quota"))
	terminating := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, podName(0), errors.New("namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	tests := map[string]struct {
		err        error
		wantReason string
	}{
		"a quota":               {quota, "Forbidden"},
		"no answer":             {errors.New("connection refused"), "CreateFailed"},
		"a namespace that goes": {terminating, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := &cluster{t: t, objects: []client.Object{newSet(nil), newClique(nil), newGang(nil)}, refuse: func(verb string, obj client.Object) error {
				if verb == "create" && obj.GetName() == podName(0) {
					return tc.err
				}
				return nil
			}}
			_, err := c.reconciler().Reconcile(t.Context(), request)
			told := meta.FindStatusCondition(c.clique().Status.Conditions, grovev1alpha1.ConditionTypePodCreationFailed)
			if tc.wantReason == "" {
				if err != nil || told != nil {
					t.Errorf("got %v, %v", told, err)
				}
				return
			}
			if err == nil || told == nil {
				t.Fatalf("got %v, %v", told, err)
			}
			expect(t, "reason", tc.wantReason, told.Reason)
			expect(t, "message", tc.err.Error(), told.Message)
			// One refusal does not keep the other pods.
			made := &corev1.Pod{}
			if err := c.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: podName(1)}, made); err != nil {
				t.Error(err)
			}
			expect(t, "events", 1, len(c.recorder.Events))
		})
	}
}

func TestMembersAloneJoinTheGroup(t *testing.T) {
	c := &cluster{t: t, objects: []client.Object{newSet(nil), newClique(nil), newGang(gangScheduled)}}
	if _, err := c.reconciler().Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	for index, want := range []bool{true, true, false} {
		pod := &corev1.Pod{}
		if err := c.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: podName(int32(index))}, pod); err != nil {
			t.Fatal(err)
		}
		expect(t, fmt.Sprintf("pod %d is in the group", index), want, pod.Spec.SchedulingGroup != nil)
	}
}

func TestASchedulerMayTakeSurplusPodsIntoTheGroup(t *testing.T) {
	c := &cluster{t: t, objects: []client.Object{newSet(nil), newClique(nil), newGang(gangScheduled)}}
	r := c.reconciler()
	r.Backends.Others = kai.New(c.client, true)
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	for index := range int32(3) {
		pod := &corev1.Pod{}
		if err := c.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: podName(index)}, pod); err != nil {
			t.Fatal(err)
		}
		if pod.Annotations["pod-group-name"] == "" {
			t.Errorf("pod %d is in no group of KAI", index)
		}
	}
}

// Counts are written at most once a second, transitions at once; the wait is to the exact end of the second.
func TestCountsArePaced(t *testing.T) {
	c := &cluster{t: t, objects: []client.Object{newSet(nil), newClique(allMade), newGang(gangScheduled), newPod(0, nil), newPod(1, nil), newPod(2, nil)}}
	r := c.reconciler()
	r.Pace.Wrote("clique", now.Add(-300*time.Millisecond))
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	expect(t, "a transition is written", []string{"status PodClique llm-0-worker"}, c.writes)

	pod := newPod(2, nil)
	if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
		t.Fatal(err)
	}
	pod.Status.Phase = corev1.PodPending
	if err := c.client.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	c.writes = nil
	result, err := r.Reconcile(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "a count waits", []string(nil), c.writes)
	// A second, and a millisecond for each pod that is counted.
	expect(t, "for", reconcile.Result{RequeueAfter: time.Second + 3*time.Millisecond}, result)
	r.Clock.(*clocktesting.FakeClock).Step(time.Second + 3*time.Millisecond)
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	expect(t, "and is written", []string{"status PodClique llm-0-worker"}, c.writes)
}
