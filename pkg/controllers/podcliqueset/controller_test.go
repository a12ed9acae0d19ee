package podcliqueset

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/internal/index"
	"github.com/copse-dev/copse/pkg/controllers/internal/pace"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/metrics"
)

func expect(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

var now = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

var request = reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "llm"}}

// newSet is a training set of one clique of 2 pods.
func newSet(change func(*grovev1alpha1.PodCliqueSet)) *grovev1alpha1.PodCliqueSet {
	pcs := &grovev1alpha1.PodCliqueSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "llm", UID: "set", Finalizers: []string{labels.PodCliqueSetFinalizer}},
		Spec: grovev1alpha1.PodCliqueSetSpec{
			Replicas: 1, WorkloadType: grovev1alpha1.WorkloadTypeTraining,
			Template: grovev1alpha1.PodCliqueSetTemplateSpec{Cliques: []grovev1alpha1.PodCliqueTemplateSpec{
				{Name: "worker", Spec: grovev1alpha1.PodCliqueSpec{Replicas: 2, MinAvailable: ptr.To[int32](2)}},
			}},
		},
	}
	if change != nil {
		change(pcs)
	}
	return pcs
}

func failing(pcs *grovev1alpha1.PodCliqueSet) {
	pcs.Status.Phase = grovev1alpha1.PodCliqueSetRunning
	pcs.Status.Conditions = []metav1.Condition{{Type: grovev1alpha1.ConditionTypeFailureTarget, Status: metav1.ConditionTrue, Reason: "R", Message: "why"}}
}

func leaving(pcs *grovev1alpha1.PodCliqueSet) { pcs.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }

func ownedBySet(obj client.Object) client.Object {
	obj.SetNamespace("ns")
	obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "grove.io/v1alpha1", Kind: "PodCliqueSet", Name: "llm", UID: "set", Controller: ptr.To(true)}})
	obj.SetLabels(map[string]string{labels.PartOf: "llm", labels.ManagedBy: labels.ManagedByValue, labels.ReplicaIndex: "0"})
	return obj
}

func newClique(change func(*grovev1alpha1.PodClique)) client.Object {
	clique := &grovev1alpha1.PodClique{
		ObjectMeta: metav1.ObjectMeta{Name: "llm-0-worker", UID: "clique"},
		Spec:       grovev1alpha1.PodCliqueSpec{Replicas: 2, MinAvailable: ptr.To[int32](2), WorkloadType: grovev1alpha1.WorkloadTypeTraining},
	}
	if change != nil {
		change(clique)
	}
	return ownedBySet(clique)
}

// knows is a clique that has recorded that its set fails.
func knows(c *grovev1alpha1.PodClique) {
	c.Status.Conditions = []metav1.Condition{{Type: grovev1alpha1.ConditionTypeFailureTarget, Status: metav1.ConditionTrue, Reason: "R"}}
}

// breached is a clique that is below its minimum by failures that are on record.
func breached(c *grovev1alpha1.PodClique) {
	c.Status.FailedIndexes = []grovev1alpha1.FailedIndex{{Index: 0, Count: 1, Message: "pod failed"}}
	c.Status.Conditions = []metav1.Condition{{
		Type: grovev1alpha1.ConditionTypeMinAvailableBreached, Status: metav1.ConditionTrue, Reason: grovev1alpha1.ReasonPodsFailed,
		Message: "pod failed", LastTransitionTime: metav1.NewTime(now),
	}}
}

func unmanaged(p *corev1.Pod) { delete(p.Labels, labels.ManagedBy) }

func newPod(name string, phase corev1.PodPhase, change func(*corev1.Pod)) client.Object {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID(name), Labels: map[string]string{labels.PartOf: "llm", labels.ManagedBy: labels.ManagedByValue},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "grove.io/v1alpha1", Kind: "PodClique", Name: "llm-0-worker", UID: "clique", Controller: ptr.To(true)}},
		},
		Status: corev1.PodStatus{Phase: phase},
	}
	if change != nil {
		change(pod)
	}
	return pod
}

func newMetrics(t *testing.T) *metrics.Metrics {
	t.Helper()
	m, err := metrics.New(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// fieldIndexer adds the controllers' own indexes to a fake client.
type fieldIndexer struct{ builder *fake.ClientBuilder }

func (f fieldIndexer) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	f.builder.WithIndex(obj, field, extract)
	return nil
}

func build(t *testing.T, objects []client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, autoscalingv2.AddToScheme, resourcev1.AddToScheme, grovev1alpha1.AddToScheme, schedulerv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&grovev1alpha1.PodCliqueSet{})
	if err := index.Register(t.Context(), fieldIndexer{builder}, false); err != nil {
		t.Fatal(err)
	}
	if err := index.RegisterClaims(t.Context(), fieldIndexer{builder}); err != nil {
		t.Fatal(err)
	}
	for _, obj := range objects {
		builder.WithObjects(obj.DeepCopyObject().(client.Object))
	}
	return builder.Build()
}

// run is one pass over a cache and the servers behind it, which are the same unless live
// is given.
type run struct {
	objects, live []client.Object
	refuse        error
}

type outcome struct {
	Phase    grovev1alpha1.PodCliqueSetPhase
	Restarts int32
	Writes   []string
	Events   []string
	Err      string
	Requeue  time.Duration
}

func (r run) do(t *testing.T, change func(*Reconciler)) outcome {
	t.Helper()
	var out outcome
	cache := build(t, r.objects)
	recorder := events.NewFakeRecorder(10)
	write := func(verb string, obj client.Object) error {
		out.Writes = append(out.Writes, fmt.Sprintf("%s %s, %d events", verb, obj.GetName(), len(recorder.Events)))
		return r.refuse
	}
	writer := interceptor.NewClient(cache, interceptor.Funcs{
		Patch: func(ctx context.Context, w client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := write("patch", obj); err != nil {
				return err
			}
			return w.Patch(ctx, obj, patch, opts...)
		},
		Delete: func(ctx context.Context, w client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			if same := (&client.DeleteOptions{}).ApplyOptions(opts).Preconditions; same == nil || same.UID == nil || same.ResourceVersion == nil {
				t.Errorf("%s is deleted though it is not as it was seen", obj.GetName())
			}
			if err := write("delete", obj); err != nil {
				return err
			}
			return w.Delete(ctx, obj, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, w client.Client, subresource string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			if err := write(subresource, obj); err != nil {
				return err
			}
			return w.SubResource(subresource).Update(ctx, obj, opts...)
		},
	})
	reader := client.Reader(cache)
	if r.live != nil {
		reader = build(t, r.live)
	}
	reconciler := &Reconciler{Client: writer, Live: reader, Recorder: recorder, Clock: clocktesting.NewFakeClock(now), Pace: pace.New(), Metrics: newMetrics(t)}
	if change != nil {
		change(reconciler)
	}
	result, err := reconciler.Reconcile(t.Context(), request)
	if err != nil {
		out.Err = err.Error()
	}
	out.Requeue = result.RequeueAfter
	for range len(recorder.Events) {
		out.Events = append(out.Events, <-recorder.Events)
	}
	pcs := &grovev1alpha1.PodCliqueSet{}
	if err := cache.Get(t.Context(), request.NamespacedName, pcs); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	out.Phase, out.Restarts = pcs.Status.Phase, pcs.Status.RestartCount
	return out
}

func TestReconcile(t *testing.T) {
	failedClique := newClique(breached)
	const wrote, pending = "status llm, 0 events", grovev1alpha1.PodCliqueSetPending
	failed := outcome{Phase: grovev1alpha1.PodCliqueSetFailed, Writes: []string{wrote}, Events: []string{"Warning WorkloadFailed why"}}
	unowned := func(p *corev1.Pod) { p.OwnerReferences = nil }
	tests := map[string]struct {
		run  run
		want outcome
	}{
		"a set that is gone": {run{}, outcome{}},
		"a new set":          {run{objects: []client.Object{newSet(nil)}}, outcome{Phase: pending, Writes: []string{wrote}}},
		"events follow the write that they report": {
			run{objects: []client.Object{newSet(nil), failedClique}},
			outcome{Phase: pending, Writes: []string{wrote}, Events: []string{
				"Warning MaxRestartsExceeded no restart is allowed; replica 0: llm-0-worker: pod failed: all active pods are terminated",
			}},
		},
		"none is told of a write that was refused": {
			run{objects: []client.Object{newSet(nil), failedClique}, refuse: errors.New("boom")}, outcome{Writes: []string{wrote}, Err: "write the status: boom"},
		},
		"failing, while a pod is active": {
			run{objects: []client.Object{newSet(failing), newClique(knows), newPod("p", corev1.PodRunning, nil)}}, outcome{Phase: pending, Writes: []string{wrote}},
		},
		"while one terminates": {
			run{objects: []client.Object{newSet(failing), newClique(knows), newPod("p", corev1.PodRunning, func(p *corev1.Pod) {
				p.DeletionTimestamp, p.Finalizers = ptr.To(metav1.NewTime(now)), []string{"x/y"}
			})}}, outcome{Phase: pending, Writes: []string{wrote}},
		},
		"while the server has one that the cache does not show": {
			run{
				objects: []client.Object{newSet(failing), newClique(knows), newPod("p", corev1.PodFailed, nil)},
				live:    []client.Object{newClique(knows), newPod("p", corev1.PodFailed, nil), newPod("q", corev1.PodPending, nil)},
			},
			outcome{Phase: pending, Writes: []string{wrote}},
		},
		"while the server has a clique that the cache does not show": {
			run{
				objects: []client.Object{newSet(failing)},
				live:    []client.Object{newClique(knows), newPod("q", corev1.PodPending, nil)},
			},
			outcome{Phase: pending, Writes: []string{wrote}},
		},
		"when all have ended, it has failed": {
			run{objects: []client.Object{newSet(failing), newClique(knows), newPod("p", corev1.PodFailed, nil), newPod("q", corev1.PodSucceeded, nil)}}, failed,
		},
		"when all are gone, too": {run{objects: []client.Object{newSet(failing), newClique(knows)}}, failed},
		"a clique that does not know yet may be about to make one": {
			run{objects: []client.Object{newSet(failing), newClique(nil), newPod("p", corev1.PodFailed, nil)}}, outcome{Phase: pending, Writes: []string{wrote}},
		},
		"nor is the cache believed about that": {
			run{
				objects: []client.Object{newSet(failing), newClique(knows)},
				live:    []client.Object{newClique(nil)},
			},
			outcome{Phase: pending, Writes: []string{wrote}},
		},
		"one that has lost the label of the cache is deleted, and awaited": {
			run{objects: []client.Object{newSet(failing), newClique(knows)}, live: []client.Object{newClique(knows), newPod("p", corev1.PodRunning, unmanaged)}},
			outcome{Phase: grovev1alpha1.PodCliqueSetRunning, Writes: []string{"delete p, 0 events"}, Err: "pod p has lost its label app.kubernetes.io/managed-by"},
		},
		"one that is being deleted already is awaited": {
			run{objects: []client.Object{newSet(failing), newClique(knows)}, live: []client.Object{newClique(knows), newPod("p", corev1.PodRunning, func(p *corev1.Pod) {
				unmanaged(p)
				p.DeletionTimestamp, p.Finalizers = ptr.To(metav1.NewTime(now)), []string{"x/y"}
			})}},
			outcome{Phase: grovev1alpha1.PodCliqueSetRunning, Err: "pod p has lost its label app.kubernetes.io/managed-by"},
		},
		"one that has ended stays": {
			run{objects: []client.Object{newSet(failing), newClique(knows)}, live: []client.Object{newClique(knows), newPod("p", corev1.PodFailed, unmanaged)}}, failed,
		},
		"pods of others do not matter": {
			run{objects: []client.Object{newSet(failing), newClique(knows), newPod("p", corev1.PodRunning, unowned)}}, failed,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { expect(t, "outcome", tc.want, tc.run.do(t, nil)) })
	}
}

// settled is the status after a pass: the next one finds nothing to write.
func settled(t *testing.T, cache client.Client) grovev1alpha1.PodCliqueSetStatus {
	t.Helper()
	reconciler := &Reconciler{Client: cache, Live: cache, Recorder: events.NewFakeRecorder(10), Clock: clocktesting.NewFakeClock(now), Pace: pace.New(), Metrics: newMetrics(t)}
	if _, err := reconciler.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	pcs := &grovev1alpha1.PodCliqueSet{}
	if err := cache.Get(t.Context(), request.NamespacedName, pcs); err != nil {
		t.Fatal(err)
	}
	return pcs.Status
}

func TestCountsOfASetArePaced(t *testing.T) {
	r := run{objects: []client.Object{newSet(nil), newClique(func(c *grovev1alpha1.PodClique) { c.Status.ReadyReplicas = 1 })}}
	before := settled(t, build(t, r.objects))
	r.objects[0] = newSet(func(pcs *grovev1alpha1.PodCliqueSet) {
		pcs.Status = before
		pcs.Status.AvailablePods = 0
	})
	lately := func(r *Reconciler) { r.Pace.Wrote("set", now.Add(-400*time.Millisecond)) }
	expect(t, "a count waits for the rest of the second", outcome{Phase: grovev1alpha1.PodCliqueSetPending, Requeue: 602 * time.Millisecond}, r.do(t, lately))
	expect(t, "and is written after it", outcome{Phase: grovev1alpha1.PodCliqueSetPending, Writes: []string{"status llm, 0 events"}}, r.do(t, nil))
	r.objects[1] = newClique(func(c *grovev1alpha1.PodClique) { c.Status.ReadyReplicas, c.Status.RunningReplicas = 1, 1 })
	expect(t, "a transition does not wait", outcome{Phase: grovev1alpha1.PodCliqueSetRunning, Writes: []string{"status llm, 0 events"}}, r.do(t, lately))
}

func TestADeletedSetGoesWhenNothingIsBelowIt(t *testing.T) {
	orphaned := func(pcs *grovev1alpha1.PodCliqueSet) {
		leaving(pcs)
		pcs.Finalizers = append(pcs.Finalizers, metav1.FinalizerOrphanDependents)
	}
	held := outcome{}
	released := outcome{Writes: []string{"patch llm, 0 events"}}
	tests := map[string]struct {
		run  run
		want outcome
	}{
		"nothing is left": {run{objects: []client.Object{newSet(leaving)}}, released},
		"a clique":        {run{objects: []client.Object{newSet(leaving), newClique(nil)}}, held},
		"a scaling group": {run{objects: []client.Object{newSet(leaving), ownedBySet(&grovev1alpha1.PodCliqueScalingGroup{ObjectMeta: metav1.ObjectMeta{Name: "g"}})}}, held},
		"a gang":          {run{objects: []client.Object{newSet(leaving), ownedBySet(&schedulerv1alpha1.PodGang{ObjectMeta: metav1.ObjectMeta{Name: "llm-0"}})}}, held},
		"a Service":       {run{objects: []client.Object{newSet(leaving), ownedBySet(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "llm-0"}})}}, held},
		"a clique that the cache does not show": {
			run{objects: []client.Object{newSet(leaving)}, live: []client.Object{newClique(nil)}},
			outcome{Err: "clique llm-0-worker of the deleted set is not in the cache yet"},
		},
		"a clique of a namesake": {
			run{objects: []client.Object{newSet(leaving)}, live: []client.Object{func() client.Object {
				clique := newClique(nil)
				clique.GetOwnerReferences()[0].UID = "other"
				return clique
			}()}}, released,
		},
		"cliques that are orphaned": {run{objects: []client.Object{newSet(orphaned), newClique(nil)}}, released},
		"it is not ours to hold any more": {
			run{objects: []client.Object{newSet(func(pcs *grovev1alpha1.PodCliqueSet) {
				leaving(pcs)
				pcs.Finalizers = []string{"example.com/held"}
			})}}, held,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { expect(t, "outcome", tc.want, tc.run.do(t, nil)) })
	}
}

func TestWhichPodsOfASetMatter(t *testing.T) {
	pod := func(phase corev1.PodPhase, terminating bool) *corev1.Pod {
		p := &corev1.Pod{Status: corev1.PodStatus{Phase: phase}}
		if terminating {
			p.DeletionTimestamp = ptr.To(metav1.NewTime(now))
		}
		return p
	}
	tests := map[string]struct {
		before, after *corev1.Pod
		want          bool
	}{
		"it runs":               {pod(corev1.PodPending, false), pod(corev1.PodRunning, false), false},
		"it ends by itself":     {pod(corev1.PodRunning, false), pod(corev1.PodFailed, false), true},
		"it is told to stop":    {pod(corev1.PodRunning, false), pod(corev1.PodRunning, true), false},
		"it has stopped":        {pod(corev1.PodRunning, true), pod(corev1.PodFailed, true), true},
		"it had ended before":   {pod(corev1.PodFailed, true), pod(corev1.PodFailed, true), false},
		"it stops with success": {pod(corev1.PodRunning, true), pod(corev1.PodSucceeded, true), true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			expect(t, "matters", tc.want, ended().Update(event.TypedUpdateEvent[*corev1.Pod]{ObjectOld: tc.before, ObjectNew: tc.after}))
		})
	}
	expect(t, "one that is made", false, ended().Create(event.TypedCreateEvent[*corev1.Pod]{Object: pod(corev1.PodRunning, false)}))
	expect(t, "one that is gone", true, ended().Delete(event.TypedDeleteEvent[*corev1.Pod]{Object: pod(corev1.PodRunning, false)}))
	expect(t, "a Service that is made", false, deleted[*corev1.Service]().Create(event.TypedCreateEvent[*corev1.Service]{}))
	expect(t, "a Service that changes", false, deleted[*corev1.Service]().Update(event.TypedUpdateEvent[*corev1.Service]{}))
	expect(t, "a Service that is gone", true, deleted[*corev1.Service]().Delete(event.TypedDeleteEvent[*corev1.Service]{}))
}

func TestTheSetOfAChild(t *testing.T) {
	want := []reconcile.Request{request}
	clique := newClique(nil).(*grovev1alpha1.PodClique)
	expect(t, "of a clique", want, setOf(t.Context(), clique))
	clique.OwnerReferences[0].APIVersion = "example.com/v1"
	expect(t, "of a clique of another kind of set", []reconcile.Request(nil), setOf(t.Context(), clique))
	pod := newPod("p", corev1.PodRunning, nil).(*corev1.Pod)
	expect(t, "of a pod", want, setOfPod(t.Context(), pod))
	delete(pod.Labels, labels.PartOf)
	expect(t, "of a pod without the label", []reconcile.Request(nil), setOfPod(t.Context(), pod))
}
