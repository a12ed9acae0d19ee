package podclique

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/podspec"
)

// inAttempt puts a clique into an attempt of which no pod was made yet.
func inAttempt(n int32) func(*grovev1alpha1.PodClique) {
	return func(c *grovev1alpha1.PodClique) {
		c.Spec.Attempt, c.Status.ObservedAttempt, c.Status.CreatedAttempt = n, n, ptr.To[int32](0)
	}
}

// replicaInAttempt puts replica 0 of a set into an attempt.
func replicaInAttempt(n int32) func(*grovev1alpha1.PodCliqueSet) {
	return func(pcs *grovev1alpha1.PodCliqueSet) {
		pcs.Status.ReplicaStatuses = []grovev1alpha1.PodCliqueSetReplicaStatus{{Index: 0, Attempt: n}}
	}
}

// gangInAttempt names the pods of an attempt, and was scheduled in it.
func gangInAttempt(n int32) *schedulerv1alpha1.PodGang {
	return newGang(func(g *schedulerv1alpha1.PodGang) {
		g.Labels[labels.RestartAttempt], g.Status.ObservedAttempt = labels.Index(n), n
		for i := range g.Spec.PodGroups[0].PodReferences {
			g.Spec.PodGroups[0].PodReferences[i].Name = nameInAttempt(int32(i), n)
		}
		meta.SetStatusCondition(&g.Status.Conditions, metav1.Condition{Type: schedulerv1alpha1.PodGangConditionScheduled, Status: metav1.ConditionTrue, Reason: "R"})
	})
}

func nameInAttempt(index, n int32) string {
	return podspec.Render(newClique(inAttempt(n)), index, podspec.Context{}).Name
}

// sibling is another clique of the replica.
func sibling(name string, change func(*grovev1alpha1.PodClique)) *grovev1alpha1.PodClique {
	return newClique(func(c *grovev1alpha1.PodClique) {
		c.Name, c.UID = name, types.UID(name)
		inAttempt(1)(c)
		if change != nil {
			change(c)
		}
	})
}

// podIn is a pod of a clique in an attempt.
func podIn(clique *grovev1alpha1.PodClique, n int32, change func(*corev1.Pod)) *corev1.Pod {
	clique = clique.DeepCopy()
	clique.Spec.Attempt = n
	pod := podspec.Render(clique, 0, podspec.Context{Set: "llm"})
	pod.UID, pod.Status.Phase = types.UID(fmt.Sprintf("%s-%d", clique.Name, n)), corev1.PodRunning
	if change != nil {
		change(pod)
	}
	return pod
}

// ofCopy makes a clique a member of a copy of scaling group llm-0-g.
func ofCopy(index string, then ...func(*grovev1alpha1.PodClique)) func(*grovev1alpha1.PodClique) {
	return func(c *grovev1alpha1.PodClique) {
		c.Labels[labels.ScalingGroup], c.Labels[labels.ScalingGroupReplicaIndex] = "llm-0-g", index
		for _, change := range then {
			change(c)
		}
	}
}

func hasOld(c *grovev1alpha1.PodClique) { c.Status.OldReplicas = 1 }

// recycledCopy is a scaling group of which a copy was recycled in an attempt of the replica.
func recycledCopy(index, attempt, setAttempt int32) *grovev1alpha1.PodCliqueScalingGroup {
	return &grovev1alpha1.PodCliqueScalingGroup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "llm-0-g", UID: "group", Labels: map[string]string{labels.ReplicaIndex: "0"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "grove.io/v1alpha1", Kind: "PodCliqueSet", Name: "llm", UID: "set", Controller: ptr.To(true)}},
		},
		Status: grovev1alpha1.PodCliqueScalingGroupStatus{ReplicaAttempts: []grovev1alpha1.ScalingGroupReplicaAttempt{{Index: index, Attempt: attempt, SetAttempt: setAttempt}}},
	}
}

// No pod of a new attempt is made while a sibling has older ones, nor while a live list
// shows one that no cache does (D19, D11).
func TestAnAttemptBeginsWhenTheOneBeforeIsGone(t *testing.T) {
	create := func(indexes ...int32) []string {
		var out []string
		for _, index := range indexes {
			out = append(out, "create Pod "+nameInAttempt(index, 1))
		}
		slices.Sort(out)
		return out
	}
	all := create(0, 1, 2)
	set := newSet(replicaInAttempt(1))
	cached := func(more ...client.Object) []client.Object {
		return append([]client.Object{set, newClique(inAttempt(1)), gangInAttempt(1)}, more...)
	}
	worker := newClique(nil)
	tests := map[string]struct {
		objects, live []client.Object
		want          []string
		lists         []string
	}{
		"nothing is left of it": {objects: cached(sibling("llm-0-other", nil)), want: all, lists: []string{"PodList"}},
		"a sibling has an old pod": {
			objects: cached(sibling("llm-0-other", hasOld)),
		},
		"a sibling does not know of the attempt": {
			objects: cached(sibling("llm-0-other", inAttempt(0))),
		},
		"a sibling knows of it, and has not looked yet": {
			objects: cached(sibling("llm-0-other", func(c *grovev1alpha1.PodClique) { c.Status.ObservedAttempt = 0 })),
		},
		"a member of a scaling group has one": {objects: cached(sibling("llm-0-g-0-other", ofCopy("0", hasOld)))},
		"a clique of another replica has one": {
			objects: cached(sibling("llm-1-other", func(c *grovev1alpha1.PodClique) {
				hasOld(c)
				c.Labels[labels.ReplicaIndex] = "1"
			})),
			want: all, lists: []string{"PodList"},
		},
		"a clique of another set has one": {
			objects: cached(sibling("llm-0-other", func(c *grovev1alpha1.PodClique) {
				hasOld(c)
				c.OwnerReferences[0].UID = "another set"
			})),
			want: all, lists: []string{"PodList"},
		},
		"a copy that is recycled alone has one": {
			objects: cached(recycledCopy(2, 1, 1), sibling("llm-0-g-2-other", ofCopy("2", inAttempt(2), hasOld))), want: all, lists: []string{"PodList"},
		},
		"a copy that was recycled before has one": {
			objects: cached(recycledCopy(2, 1, 0), sibling("llm-0-g-2-other", ofCopy("2", inAttempt(2), hasOld))),
		},

		"the server has an old pod of the clique": {
			objects: cached(), live: []client.Object{set, podIn(worker, 0, nil)}, lists: []string{"PodList"},
		},
		"the server has one of a sibling": {
			objects: cached(sibling("llm-0-other", nil)), live: []client.Object{set, podIn(sibling("llm-0-other", nil), 0, nil)}, lists: []string{"PodList"},
		},
		"though it terminates": {
			objects: cached(sibling("llm-0-other", nil)), live: []client.Object{set, podIn(sibling("llm-0-other", nil), 0, func(p *corev1.Pod) {
				p.DeletionTimestamp, p.Finalizers = ptr.To(metav1.NewTime(now)), []string{"x/y"}
			})}, lists: []string{"PodList"},
		},
		"or has ended": {
			objects: cached(sibling("llm-0-other", nil)), live: []client.Object{set, podIn(sibling("llm-0-other", nil), 0, podFailed)}, lists: []string{"PodList"},
		},
		"the server has one of this attempt": {
			objects: cached(sibling("llm-0-other", nil)), live: []client.Object{set, podIn(sibling("llm-0-other", nil), 1, nil)}, want: all, lists: []string{"PodList"},
		},
		"the server has one that somebody else owns": {
			objects: cached(), live: []client.Object{set, podIn(worker, 0, func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" })}, want: all, lists: []string{"PodList"},
		},
		"the server has one that nobody owns": {
			objects: cached(), live: []client.Object{set, podIn(worker, 0, func(p *corev1.Pod) { p.OwnerReferences = nil })}, want: all, lists: []string{"PodList"},
		},
		"the server has one of a copy that is recycled alone": {
			objects: cached(recycledCopy(2, 1, 1), sibling("llm-0-g-2-other", ofCopy("2", inAttempt(2)))),
			live:    []client.Object{set, podIn(sibling("llm-0-g-2-other", ofCopy("2")), 1, nil)}, want: all, lists: []string{"PodList"},
		},
		"the server says that the replica is in a later attempt": {
			objects: cached(), live: []client.Object{newSet(replicaInAttempt(2))},
		},

		// The list is made for the first pod of an attempt, not for each.
		"a pod of the attempt is there": {
			objects: cached(podIn(worker, 1, nil)), want: create(1, 2),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := &cluster{t: t, objects: tc.objects, live: tc.live}
			if _, err := c.reconciler().Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			expect(t, "writes of pods", tc.want, c.podWrites())
			expect(t, "live lists", tc.lists, c.lists)
		})
	}
	t.Run("the first attempt follows none", func(t *testing.T) {
		c := &cluster{t: t, objects: []client.Object{newSet(nil), newClique(nil), newGang(gangScheduled), sibling("llm-0-other", func(c *grovev1alpha1.PodClique) {
			inAttempt(0)(c)
			hasOld(c)
		})}}
		if _, err := c.reconciler().Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		expect(t, "pods made", 3, len(c.podWrites()))
		expect(t, "live lists", []string(nil), c.lists)
	})
	t.Run("a list that fails is no answer", func(t *testing.T) {
		c := &cluster{t: t, objects: cached(), refuseRead: func(obj runtime.Object) error {
			if _, ok := obj.(*corev1.PodList); ok {
				return errors.New("boom")
			}
			return nil
		}}
		_, err := c.reconciler().Reconcile(t.Context(), request)
		if err == nil || err.Error() != "list pods live: boom" {
			t.Errorf("error %v", err)
		}
		expect(t, "writes of pods", []string(nil), c.podWrites())
	})
}

// A pod of an attempt that is over would only have to go again: none is made before the
// clique has been raised to the attempt that is on record for it.
func TestNoPodIsMadeOfAnAttemptThatIsOver(t *testing.T) {
	member := func(n int32) *grovev1alpha1.PodClique { return newClique(ofCopy("1", inAttempt(n))) }
	tests := map[string]struct {
		clique *grovev1alpha1.PodClique
		set    *grovev1alpha1.PodCliqueSet
		// group is that of the server; the cache knows of no recycling.
		group *grovev1alpha1.PodCliqueScalingGroup
		want  int
	}{
		"the replica has begun another one":         {clique: newClique(nil), set: newSet(replicaInAttempt(1))},
		"the clique follows":                        {clique: newClique(inAttempt(1)), set: newSet(replicaInAttempt(1)), want: 3},
		"its copy was recycled, as the server says": {clique: member(0), set: newSet(nil), group: recycledCopy(1, 1, 0)},
		"another copy was":                          {clique: member(0), set: newSet(nil), group: recycledCopy(2, 1, 0), want: 3},
		"the member follows":                        {clique: member(1), set: newSet(nil), group: recycledCopy(1, 1, 0), want: 3},
		"both have begun one, and it knows of one":  {clique: member(1), set: newSet(replicaInAttempt(1)), group: recycledCopy(1, 1, 0)},
		"it knows of both":                          {clique: member(2), set: newSet(replicaInAttempt(1)), group: recycledCopy(1, 1, 0), want: 3},
		"its scaling group is gone":                 {clique: member(0), set: newSet(nil)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			live := []client.Object{tc.set}
			if tc.group != nil {
				live = append(live, tc.group)
			}
			c := &cluster{t: t, objects: []client.Object{tc.set, tc.clique, gangInAttempt(tc.clique.Spec.Attempt), recycledCopy(0, 0, 0)}, live: live}
			if _, err := c.reconciler().Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			expect(t, "pods made", tc.want, len(c.podWrites()))
		})
	}
	t.Run("a group that cannot be read says nothing", func(t *testing.T) {
		c := &cluster{t: t, objects: []client.Object{newSet(nil), member(0), gangInAttempt(0)}, refuseRead: func(obj runtime.Object) error {
			if _, ok := obj.(*grovev1alpha1.PodCliqueScalingGroup); ok {
				return errors.New("boom")
			}
			return nil
		}}
		_, err := c.reconciler().Reconcile(t.Context(), request)
		if err == nil || err.Error() != "read scaling group llm-0-g: boom" {
			t.Errorf("error %v", err)
		}
		expect(t, "pods made", 0, len(c.podWrites()))
	})
}

// A restart as the clique lives it: it records the attempt, deletes the old pods, waits for
// the last of them, and makes the new ones.
func TestARestartFromBeginningToEnd(t *testing.T) {
	c := &cluster{t: t, objects: []client.Object{
		newSet(replicaInAttempt(1)), gangInAttempt(1), newPod(0, podFailed), newPod(1, nil),
		newPod(2, func(p *corev1.Pod) { p.Finalizers = []string{"x/y"} }),
		newClique(func(c *grovev1alpha1.PodClique) {
			allMade(c)
			c.Spec.Attempt = 1
		}),
	}}
	r := c.reconciler()
	pass := func(what string, wantPods []string, wantOld int32) {
		t.Helper()
		c.writes = nil
		if _, err := r.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		slices.Sort(wantPods)
		expect(t, what, wantPods, c.podWrites())
		expect(t, what+": old pods", wantOld, c.clique().Status.OldReplicas)
		expect(t, what+": attempt", int32(1), c.clique().Status.ObservedAttempt)
	}
	pass("the attempt is recorded", nil, 3)
	pass("the old pods go", []string{"delete Pod " + podName(0), "delete Pod " + podName(1), "delete Pod " + podName(2)}, 3)
	// That there are fewer is a count, and may wait; that there is none is not.
	pass("one of them is still there", nil, 3)

	last := newPod(2, nil)
	if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(last), last); err != nil {
		t.Fatal(err)
	}
	last.Finalizers = nil
	if err := c.client.Update(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	pass("the new ones are made", []string{"create Pod " + nameInAttempt(0, 1), "create Pod " + nameInAttempt(1, 1), "create Pod " + nameInAttempt(2, 1)}, 0)
	pass("once", nil, 0)
	expect(t, "created attempt", ptr.To[int32](1), c.clique().Status.CreatedAttempt)
}
