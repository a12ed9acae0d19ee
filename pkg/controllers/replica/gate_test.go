package replica

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unversionedvalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/internal/index"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
)

// barred holds the cliques of the set at a barrier for ten seconds at most.
func barred(pcs *grovev1alpha1.PodCliqueSet) {
	pcs.Spec.GroupSchedulingConfig = &grovev1alpha1.GroupSchedulingConfig{TimeoutAfterSeconds: ptr.To[int32](10), TargetCliques: []string{"router"}}
}

func TestAReplicaThatWaitsHasAGate(t *testing.T) {
	expect(t, "with a barrier", []string{"Service llm-1", "StartGate llm-1", "ConfigMap llm-1-group-scheduling", "PodCliqueScalingGroup llm-1-decode", "PodClique llm-1-router"},
		writesOf(planReplica(newSet(barred), 1, nothing())).Create)
	have := allOf(t, newSet(barred), 1)
	expect(t, "complete", writes{}, writesOf(planReplica(newSet(barred), 1, have)))
	have.cliques = nil
	have.groups, have.gangs = nil, nil
	expect(t, "with its replica it goes, before the Service", []string{"ConfigMap llm-1-group-scheduling", "StartGate llm-1"}, writesOf(planReplica(newSet(barred, deletedSet), 1, have)).Remove)
	have.configMaps = nil
	expect(t, "the Service after it", []string{"Service llm-1", "StartGate llm-1"}, writesOf(planReplica(newSet(barred, deletedSet), 1, have)).Remove)
}

// A set may be named with as many characters as leave its pods a host name. What its name is a
// part of may be longer than a label.
func TestLabelsOfALongNameAreValid(t *testing.T) {
	named := func(pcs *grovev1alpha1.PodCliqueSet) {
		pcs.Name = strings.Repeat("l", validation.DNS1123LabelMaxLength-len("-1-d-1-w-2"))
		pcs.Spec.Template.Cliques[0].Name, pcs.Spec.Template.Cliques[1].Name = "r", "w"
		pcs.Spec.Template.PodCliqueScalingGroups[0].Name, pcs.Spec.Template.PodCliqueScalingGroups[0].CliqueNames = "d", []string{"w"}
		pcs.Spec.GroupSchedulingConfig.TargetCliques = []string{"r"}
	}
	have := served(nothing()).add(nicTemplate())
	for range 3 {
		p := planReplica(newSet(barred, sharing, named), 1, have)
		for _, obj := range p.create {
			if err := unversionedvalidation.ValidateLabels(obj.GetLabels(), field.NewPath("labels")).ToAggregate(); err != nil {
				t.Errorf("%s %s: %v", kindOf(obj), obj.GetName(), err)
			}
		}
		have.add(p.create...)
	}
	if len(have.configMaps)*len(have.gangs)*len(have.claims) == 0 {
		t.Error("not all has been looked at")
	}
}

// atGate is a cluster with a set whose router waits at the barrier.
type atGate struct {
	client.WithWatch
	clock    *clocktesting.FakeClock
	recorder *events.FakeRecorder
	r        *Reconciler
	// delays are those of passes that have failed.
	delays []time.Duration
}

func (c *atGate) AddAfter(_ Key, wait time.Duration) { c.delays = append(c.delays, wait) }

func newAtGate(t *testing.T, foreign ...client.Object) *atGate {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, autoscalingv2.AddToScheme, grovev1alpha1.AddToScheme, schedulerv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(newSet(barred)).WithObjects(foreign...).
		WithStatusSubresource(&grovev1alpha1.StartGate{}, &grovev1alpha1.PodClique{})
	if err := index.Register(t.Context(), fieldIndexer{builder}, false); err != nil {
		t.Fatal(err)
	}
	c := &atGate{WithWatch: builder.Build(), clock: clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), recorder: events.NewFakeRecorder(20)}
	c.r = &Reconciler{Client: c, Cache: c, Live: c, Recorder: c.recorder, Clock: c.clock, queue: c}
	return c
}

// newAtOpenGate has the pods of replica 1 come to their gate, which opens.
func newAtOpenGate(t *testing.T) *atGate {
	t.Helper()
	c := newAtGate(t)
	c.pass(t)
	c.start(t, 1)
	c.pass(t)
	if gate, text := c.gate(t); !gate.Status.Cliques[0].Open || text == "" {
		t.Fatalf("the gate is not open: %+v, %q", gate.Status, text)
	}
	return c
}

// pass reconciles replica 1 a few times, and returns when it wants to look again.
func (c *atGate) pass(t *testing.T) time.Duration {
	t.Helper()
	key := Key{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "llm"}, UID: "set-uid", Replica: 1}
	var wait time.Duration
	for range 4 {
		// A name that is taken is an error, with the back-off of errors.
		result, _ := c.r.Reconcile(t.Context(), key)
		wait = result.RequeueAfter
	}
	return wait
}

// awaitTwo has the barrier wait for two pods of the router.
func (c *atGate) awaitTwo(t *testing.T) *grovev1alpha1.PodClique {
	t.Helper()
	clique := &grovev1alpha1.PodClique{}
	if err := c.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "llm-1-router"}, clique); err != nil {
		t.Fatal(err)
	}
	clique.Spec.Replicas, clique.Spec.MinAvailable = 2, ptr.To[int32](2)
	if err := c.Update(t.Context(), clique); err != nil {
		t.Fatal(err)
	}
	return clique
}

func (c *atGate) start(t *testing.T, pods int32) {
	t.Helper()
	clique := &grovev1alpha1.PodClique{}
	if err := c.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "llm-1-router"}, clique); err != nil {
		t.Fatal(err)
	}
	clique.Status.StartedReplicas = pods
	if err := c.Status().Update(t.Context(), clique); err != nil {
		t.Fatal(err)
	}
}

func (c *atGate) gate(t *testing.T) (*grovev1alpha1.StartGate, string) {
	t.Helper()
	gate, file := &grovev1alpha1.StartGate{}, &corev1.ConfigMap{}
	if err := c.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "llm-1"}, gate); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "llm-1-group-scheduling"}, file); err != nil {
		t.Fatal(err)
	}
	return gate, file.Data["started"]
}

func (c *atGate) told() []string {
	var out []string
	for {
		select {
		case text := <-c.recorder.Events:
			out = append(out, text)
		default:
			return out
		}
	}
}

func TestTheGateOpensInBothPlaces(t *testing.T) {
	c := newAtGate(t)
	c.pass(t)
	if gate, text := c.gate(t); len(gate.Status.Cliques) != 1 || gate.Status.Cliques[0].Open || text != "" {
		t.Errorf("at first: %+v, %q", gate.Status.Cliques, text)
	}
	c.start(t, 1)
	c.pass(t)
	if gate, text := c.gate(t); !gate.Status.Cliques[0].Open || text != "llm-1-router 0\n" {
		t.Errorf("when all have started: %+v, %q", gate.Status.Cliques, text)
	}
}

// The caches of the two servers are not equally far: after a crash that of gates may show
// the past while that of ConfigMaps does not.
func TestTheFileDoesNotForgetWhatTheCachedGateDoesNotShow(t *testing.T) {
	c := newAtGate(t)
	c.pass(t)
	var cliques grovev1alpha1.PodCliqueList
	var gates grovev1alpha1.StartGateList
	for _, list := range []client.ObjectList{&cliques, &gates} {
		if err := c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	c.start(t, 1)
	c.pass(t)
	c.r.Client = interceptor.NewClient(c.WithWatch, interceptor.Funcs{
		List: func(ctx context.Context, w client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			switch list := list.(type) {
			case *grovev1alpha1.PodCliqueList:
				cliques.DeepCopyInto(list)
				return nil
			case *grovev1alpha1.StartGateList:
				gates.DeepCopyInto(list)
				return nil
			}
			return w.List(ctx, list, options...)
		},
	})
	c.pass(t)
	if gate, text := c.gate(t); !gate.Status.Cliques[0].Open || text != "llm-1-router 0\n" {
		t.Errorf("by a cache of the past: %+v, %q", gate.Status.Cliques, text)
	}
	c.r.Client = c
	gate, _ := c.gate(t)
	gate.Status.Cliques[0] = grovev1alpha1.StartGateClique{Name: "llm-1-router", Attempt: 1}
	if err := c.Status().Update(t.Context(), gate); err != nil {
		t.Fatal(err)
	}
	c.pass(t)
	if _, text := c.gate(t); text != "" {
		t.Errorf("in the next attempt: %q", text)
	}
}

func TestTheGateExpiresAtItsDeadline(t *testing.T) {
	c := newAtGate(t)
	c.pass(t)
	clique := c.awaitTwo(t)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: naming.Pod(clique.Name, clique.UID, 0, 0), OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(clique, grovev1alpha1.SchemeGroupVersion.WithKind("PodClique"))},
			Labels: map[string]string{
				labels.PartOf: "llm", labels.ManagedBy: labels.ManagedByValue, labels.ReplicaIndex: "1",
				labels.PodClique: clique.Name, labels.PodIndex: "0", labels.RestartAttempt: "0",
			},
		},
	}
	if err := c.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	c.start(t, 1)
	if wait := c.pass(t); wait <= 10*time.Second || wait > 11*time.Second {
		t.Errorf("it looks again after %s", wait)
	}
	c.clock.SetTime(c.clock.Now().Add(12 * time.Second))
	c.pass(t)
	if gate, text := c.gate(t); !gate.Status.Cliques[0].Expired || text != "" {
		t.Errorf("after its time: %+v, %q", gate.Status.Cliques, text)
	}
	expect(t, "events", []string{"Warning StartBarrierExpired gang llm-1: not all pods have started 10s after the first has, llm-1-router: 0 of 2 pods have started, missing: " + pod.Name + ", which has no node; the one of index 1, which does not exist"}, c.told())
}

func TestAForeignFileOfTheGateIsToldOnce(t *testing.T) {
	mine := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "llm-1-group-scheduling"}, Data: map[string]string{"started": "mine"}}
	c := newAtGate(t, mine)
	c.pass(t)
	c.start(t, 1)
	c.pass(t)
	gate, text := c.gate(t)
	if !gate.Status.Cliques[0].Open || text != "mine" || !meta.IsStatusConditionTrue(gate.Status.Conditions, grovev1alpha1.ConditionTypeNameConflict) {
		t.Errorf("gate %+v, file %q", gate.Status, text)
	}
	if told := c.told(); len(told) != 1 {
		t.Errorf("events %q", told)
	}
	if err := c.Delete(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	c.pass(t)
	if gate, text := c.gate(t); text != "llm-1-router 0\n" || len(gate.Status.Conditions) != 0 {
		t.Errorf("when it has gone: %+v, %q", gate.Status.Conditions, text)
	}
}

// An error has a back-off of its own, which can be much longer than what is left.
func TestAForeignFileDoesNotPutOffTheDeadline(t *testing.T) {
	c := newAtGate(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "llm-1-group-scheduling"}})
	c.pass(t)
	c.awaitTwo(t)
	c.start(t, 1)
	c.pass(t)
	if len(c.delays) == 0 || c.delays[len(c.delays)-1] <= 10*time.Second || c.delays[len(c.delays)-1] > 11*time.Second {
		t.Errorf("it looks again after %s", c.delays)
	}
}

// A replica that comes back has PodCliques of the same names.
func TestTheGateOfAReplicaIsShutBeforeItGoes(t *testing.T) {
	c := newAtOpenGate(t)
	set := &grovev1alpha1.PodCliqueSet{}
	if err := c.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "llm"}, set); err != nil {
		t.Fatal(err)
	}
	set.Spec.Replicas, set.Generation = 1, 7
	if err := c.Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	key := Key{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "llm"}, UID: "set-uid", Replica: 1}
	// A set of the past does not shut it.
	c.r.Live = newAtGate(t)
	if _, err := c.r.Reconcile(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if gate, text := c.gate(t); !gate.Status.Cliques[0].Open || text == "" {
		t.Errorf("the gate of a replica that is there says %+v, %q", gate.Status.Cliques, text)
	}
	c.r.Live = c
	// No PodClique is deleted while the gate is open.
	failing := &refusesStatus{WithWatch: c.WithWatch, err: errors.New("boom")}
	c.r.Client = failing
	if _, err := c.r.Reconcile(t.Context(), key); err == nil {
		t.Error("a gate that cannot be shut is left alone")
	}
	clique := &grovev1alpha1.PodClique{}
	if err := c.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "llm-1-router"}, clique); err != nil || clique.DeletionTimestamp != nil {
		t.Errorf("the PodClique goes before its gate is shut: %v", err)
	}
	c.r.Client = c
	if _, err := c.r.Reconcile(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if gate, text := c.gate(t); len(gate.Status.Cliques) > 0 || text != "" {
		t.Errorf("the gate says %+v, %q", gate.Status.Cliques, text)
	}
}

// A PodClique may come and go while no pass can write the gate: the one that is made under its
// name does not start by what was opened for it.
func TestAPodCliqueThatIsMadeFindsItsGateShut(t *testing.T) {
	c := newAtOpenGate(t)
	name := types.NamespacedName{Namespace: "ns", Name: "llm-1-router"}
	clique := &grovev1alpha1.PodClique{}
	if err := c.Get(t.Context(), name, clique); err != nil {
		t.Fatal(err)
	}
	clique.Finalizers = nil
	if err := c.Update(t.Context(), clique); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), clique); err != nil {
		t.Fatal(err)
	}
	key := Key{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "llm"}, UID: "set-uid", Replica: 1}
	c.r.Client = &refusesStatus{WithWatch: c.WithWatch, err: errors.New("boom")}
	if _, err := c.r.Reconcile(t.Context(), key); err == nil {
		t.Error("a gate that cannot be shut is left alone")
	}
	if err := c.Get(t.Context(), name, &grovev1alpha1.PodClique{}); !apierrors.IsNotFound(err) {
		t.Errorf("the PodClique is made while the gate is open for another: %v", err)
	}
	c.r.Client = c
	c.pass(t)
	if err := c.Get(t.Context(), name, clique); err != nil {
		t.Fatal(err)
	}
	if gate, text := c.gate(t); len(gate.Status.Cliques) != 1 || gate.Status.Cliques[0].Open || text != "" {
		t.Errorf("the gate says %+v, %q", gate.Status.Cliques, text)
	}
}

// refusesStatus is a client whose writes of status fail.
type refusesStatus struct {
	client.WithWatch
	err error
}

func (c *refusesStatus) Status() client.SubResourceWriter {
	return refusingWriter{c.WithWatch.Status(), c.err}
}

type refusingWriter struct {
	client.SubResourceWriter
	err error
}

func (w refusingWriter) Update(context.Context, client.Object, ...client.SubResourceUpdateOption) error {
	return w.err
}

// People may change the labels without which the cache shows neither a Service nor a ConfigMap.
// They are not made again in vain.
func TestWhatTheCacheDoesNotShowIsShownAgain(t *testing.T) {
	c := newAtGate(t)
	c.pass(t)
	service, file := &corev1.Service{}, &corev1.ConfigMap{}
	for name, obj := range map[string]client.Object{"llm-1": service, "llm-1-group-scheduling": file} {
		if err := c.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: name}, obj); err != nil {
			t.Fatal(err)
		}
		want := maps.Clone(obj.GetLabels())
		want["team"] = "red"
		obj.SetLabels(map[string]string{"team": "red"})
		if name == "llm-1" {
			service.Spec.Selector = map[string]string{"app": "other"}
		}
		if err := c.Update(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		c.pass(t)
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			t.Fatal(err)
		}
		expect(t, "labels of "+name, want, obj.GetLabels())
	}
	expect(t, "selector", desiredService(newSet(barred), 1).Spec.Selector, service.Spec.Selector)
	c.start(t, 1)
	c.pass(t)
	if _, text := c.gate(t); text != "llm-1-router 0\n" {
		t.Errorf("the file says %q", text)
	}
	expect(t, "events", []string(nil), c.told())
}
