package podcliquescalinggroup

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/metrics"
	"github.com/copse-dev/copse/pkg/naming"
)

// newCopy is the clique of a copy: of one pod, Ready, unless it is breached for a while.
func newCopy(index int32, breachedFor time.Duration, change func(*grovev1alpha1.PodClique)) client.Object {
	return newMember(copyName(index), func(c *grovev1alpha1.PodClique) {
		c.Labels[labels.ScalingGroupReplicaIndex] = labels.Index(index)
		c.Spec = grovev1alpha1.PodCliqueSpec{Replicas: 1, MinAvailable: ptr.To[int32](1), WorkloadType: grovev1alpha1.WorkloadTypeInference}
		c.Status.WasAvailable, c.Status.ReadyReplicas = true, 1
		if breachedFor > 0 {
			c.Status.ReadyReplicas = 0
			c.Status.Conditions = []metav1.Condition{{
				Type: grovev1alpha1.ConditionTypeMinAvailableBreached, Status: metav1.ConditionTrue, Reason: "R", Message: "why", LastTransitionTime: metav1.NewTime(now.Add(-breachedFor)),
			}}
		}
		if change != nil {
			change(c)
		}
	})
}

func copyName(index int32) string { return fmt.Sprintf("llm-0-decode-%d-worker", index) }

func podOf(copyIndex int32, ready corev1.ConditionStatus) client.Object {
	name := copyName(copyIndex)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: naming.Pod(name, types.UID("uid-of-"+name), 0, 0), Labels: map[string]string{labels.ManagedBy: labels.ManagedByValue, labels.PodClique: name, labels.PodIndex: "0", labels.RestartAttempt: "0"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "PodClique", Name: name, UID: types.UID("uid-of-" + name), Controller: ptr.To(true)}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}
}

func twoCopies(change func(*grovev1alpha1.PodCliqueScalingGroup)) client.Object {
	return newGroup(func(group *grovev1alpha1.PodCliqueScalingGroup) {
		group.Spec.Replicas = 2
		if change != nil {
			change(group)
		}
	})
}

type outcome struct {
	Attempts []grovev1alpha1.ScalingGroupReplicaAttempt
	Writes   int
	Events   []string
	Err      string
	Requeue  time.Duration
}

// pass is one pass over a cache and the servers behind it.
func pass(t *testing.T, objects, live []client.Object, refuse error) outcome {
	t.Helper()
	var out outcome
	cache := build(t, objects)
	recorder := events.NewFakeRecorder(10)
	counters, err := metrics.New(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	writer := interceptor.NewClient(cache, interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, w client.Client, subresource string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			out.Writes++
			if len(recorder.Events) > 0 {
				t.Error("events come before the write that they report")
			}
			if refuse != nil {
				return refuse
			}
			return w.SubResource(subresource).Update(ctx, obj, opts...)
		},
	})
	reader := cache
	if live != nil {
		reader = build(t, live)
	}
	r := &Reconciler{Client: writer, Cache: cache, Live: reader, Recorder: recorder, Clock: clocktesting.NewFakeClock(now), Metrics: counters}
	result, err := r.Reconcile(t.Context(), request)
	if err != nil {
		out.Err = err.Error()
	}
	out.Requeue = result.RequeueAfter
	for range len(recorder.Events) {
		out.Events = append(out.Events, <-recorder.Events)
	}
	group := &grovev1alpha1.PodCliqueScalingGroup{}
	if err := cache.Get(t.Context(), request.NamespacedName, group); err != nil {
		t.Fatal(err)
	}
	out.Attempts = group.Status.ReplicaAttempts
	return out
}

// A copy is recycled after a live look at the set, which may have begun another attempt,
// and at the breach.
func TestRecyclingIsConfirmedBeforeItIsRecorded(t *testing.T) {
	const due = 61 * time.Second
	cached := func(pcs *grovev1alpha1.PodCliqueSet) []client.Object {
		return []client.Object{pcs, twoCopies(nil), newCopy(0, 0, nil), newCopy(1, due, nil)}
	}
	live := func(pcs *grovev1alpha1.PodCliqueSet, more ...client.Object) []client.Object {
		return append([]client.Object{pcs, newCopy(0, 0, nil)}, more...)
	}
	attempt := func(n int32) func(*grovev1alpha1.PodCliqueSet) {
		return func(pcs *grovev1alpha1.PodCliqueSet) {
			pcs.Status.ReplicaStatuses = []grovev1alpha1.PodCliqueSetReplicaStatus{{Index: 0, Attempt: n}}
		}
	}
	const cause = "llm-0-decode-1-worker: why, for 1m1s"
	recycled := outcome{
		Attempts: []grovev1alpha1.ScalingGroupReplicaAttempt{{Index: 1, Attempt: 1, Message: cause}}, Writes: 1,
		Events: []string{"Warning ReplicaTerminated copy 1 of scaling group llm-0-decode is made anew (attempt 1): " + cause},
	}
	tests := map[string]struct {
		objects, live []client.Object
		refuse        error
		want          outcome
	}{
		"the breach lasts": {objects: cached(newSet(nil)), live: live(newSet(nil), newCopy(1, due, nil), podOf(1, corev1.ConditionFalse)), want: recycled},
		"its pod is gone":  {objects: cached(newSet(nil)), live: live(newSet(nil), newCopy(1, due, nil)), want: recycled},
		"its pod is Ready, though no cache shows it": {objects: cached(newSet(nil)), live: live(newSet(nil), newCopy(1, due, nil), podOf(1, corev1.ConditionTrue))},
		"its clique says that it is over":            {objects: cached(newSet(nil)), live: live(newSet(nil), newCopy(1, 0, nil))},
		"its clique is gone":                         {objects: cached(newSet(nil)), live: live(newSet(nil))},
		"the set is gone":                            {objects: cached(newSet(nil)), live: []client.Object{newCopy(1, due, nil)}},
		"the set was made anew":                      {objects: cached(newSet(nil)), live: live(newSet(func(pcs *grovev1alpha1.PodCliqueSet) { pcs.UID = "other" }), newCopy(1, due, nil))},
		"the set has begun another attempt":          {objects: cached(newSet(nil)), live: live(newSet(attempt(1)), newCopy(1, due, nil))},
		"the set is deleted": {objects: cached(newSet(nil)), live: live(newSet(func(pcs *grovev1alpha1.PodCliqueSet) {
			pcs.DeletionTimestamp, pcs.Finalizers = ptr.To(metav1.NewTime(now)), []string{"x/y"}
		}), newCopy(1, due, nil))},
		"another replica of the set has": {
			objects: cached(newSet(nil)), live: live(newSet(func(pcs *grovev1alpha1.PodCliqueSet) {
				pcs.Status.ReplicaStatuses = []grovev1alpha1.PodCliqueSetReplicaStatus{{Index: 1, Attempt: 3}}
			}), newCopy(1, due, nil)), want: recycled,
		},
		"no event tells of a recycling that was refused": {
			objects: cached(newSet(nil)), live: live(newSet(nil), newCopy(1, due, nil)), refuse: errors.New("boom"), want: outcome{Writes: 1, Err: "write the status: boom"},
		},
		"the deadline is awaited to the second": {
			objects: []client.Object{newSet(nil), twoCopies(nil), newCopy(0, 0, nil), newCopy(1, 21*time.Second, nil)}, want: outcome{Writes: 1, Requeue: 40 * time.Second},
		},
		"without a delay nothing is recycled": {
			objects: cached(newSet(func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Spec.Template.TerminationDelay = nil })), want: outcome{Writes: 1},
		},
		"with a delay of the group's own": {
			objects: cached(newSet(func(pcs *grovev1alpha1.PodCliqueSet) {
				pcs.Spec.Template.PodCliqueScalingGroups[0].TerminationDelay = &metav1.Duration{Duration: 2 * time.Minute}
			})), want: outcome{Writes: 1, Requeue: time.Minute},
		},
		"the attempt of the set's replica is that of the group": {
			objects: []client.Object{newSet(attempt(2)), twoCopies(nil), newCopy(0, 0, inAttempt(2)), newCopy(1, due, inAttempt(2))},
			want: outcome{
				Attempts: []grovev1alpha1.ScalingGroupReplicaAttempt{{Index: 1, Attempt: 1, SetAttempt: 2, Message: cause}}, Writes: 1, Events: recycled.Events,
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { expect(t, "outcome", tc.want, pass(t, tc.objects, tc.live, tc.refuse)) })
	}
	t.Run("nothing has changed, and the deadline is awaited", func(t *testing.T) {
		objects := []client.Object{newSet(nil), twoCopies(nil), newCopy(0, 0, nil), newCopy(1, 21*time.Second, nil)}
		cache := build(t, objects)
		r := &Reconciler{Client: cache, Live: cache, Clock: clocktesting.NewFakeClock(now)}
		for _, want := range []time.Duration{40 * time.Second, 40 * time.Second} {
			result, err := r.Reconcile(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			expect(t, "result", reconcile.Result{RequeueAfter: want}, result)
		}
	})
}

func inAttempt(n int32) func(*grovev1alpha1.PodClique) {
	return func(c *grovev1alpha1.PodClique) { c.Spec.Attempt, c.Status.ObservedAttempt = n, n }
}

func TestWhichUpdatesOfASetMatterToItsGroups(t *testing.T) {
	tests := map[string]struct {
		after func(*grovev1alpha1.PodCliqueSet)
		want  bool
	}{
		"counters":   {func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Status.AvailablePods, pcs.ResourceVersion = 7, "8" }, false},
		"the delay":  {func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Generation = 1 }, true},
		"a deletion": {func(pcs *grovev1alpha1.PodCliqueSet) { pcs.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }, true},
		"an attempt": {func(pcs *grovev1alpha1.PodCliqueSet) {
			pcs.Status.ReplicaStatuses = []grovev1alpha1.PodCliqueSetReplicaStatus{{Index: 2, Attempt: 1}}
		}, true},
		"a failure": {func(pcs *grovev1alpha1.PodCliqueSet) {
			pcs.Status.Conditions = []metav1.Condition{{Type: grovev1alpha1.ConditionTypeFailureTarget, Status: metav1.ConditionTrue}}
		}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			expect(t, "matters", tc.want, setChanged().Update(event.TypedUpdateEvent[*grovev1alpha1.PodCliqueSet]{ObjectOld: newSet(nil), ObjectNew: newSet(tc.after)}))
		})
	}
}

func TestTheGroupsOfASet(t *testing.T) {
	other := newGroup(func(group *grovev1alpha1.PodCliqueScalingGroup) {
		group.Name, group.UID = "other-0-decode", "other"
		group.OwnerReferences[0].UID = "other-set"
	})
	second := newGroup(func(group *grovev1alpha1.PodCliqueScalingGroup) { group.Name, group.UID = "llm-1-decode", "second" })
	r := &Reconciler{Cache: build(t, []client.Object{newGroup(nil), second, other})}
	expect(t, "requests", []reconcile.Request{
		request, {NamespacedName: types.NamespacedName{Namespace: "ns", Name: "llm-1-decode"}},
	}, r.groupsOfSet(t.Context(), newSet(nil)))
}
