package podgroup

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/internal/pace"
	"github.com/copse-dev/copse/pkg/controllers/podgroup/pods"
	"github.com/copse-dev/copse/pkg/metrics"
	"github.com/copse-dev/copse/pkg/naming"
	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/config"
	"github.com/copse-dev/copse/pkg/podgrouper/owners"
)

// start is when a test begins.
var start = time.Unix(1000, 0)

// world is a cluster with one workload, the Gang bert.
type world struct {
	*Reconciler
	t        *testing.T
	clock    *clocktesting.FakeClock
	recorder *events.FakeRecorder
	grouper  *podgrouper.Grouper
	resolver *owners.Resolver
	// refusal answers creations.
	refusal error
	// writes are the requests that change something.
	writes []string
}

func (w *world) Current() *podgrouper.Grouper { return w.grouper }
func (w *world) Resolver() *owners.Resolver   { return w.resolver }

// indexed takes indexes as a cache does.
type indexed struct{ *fake.ClientBuilder }

func (b indexed) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	b.WithIndex(obj, field, extract)
	return nil
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, schedulerv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{t: t, clock: clocktesting.NewFakeClock(start), recorder: events.NewFakeRecorder(100)}
	wrote := func(verb string, obj any) {
		name := ""
		if object, ok := obj.(interface{ GetName() string }); ok {
			name = object.GetName()
		}
		if applied, ok := obj.(interface{ GetName() *string }); ok {
			name = ptr.Deref(applied.GetName(), "")
		}
		w.writes = append(w.writes, verb+" "+name)
	}
	b := indexed{fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&schedulerv1alpha1.PodGroup{}).
		WithTypeConverters(managedfields.NewDeducedTypeConverter()).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
				if w.refusal != nil {
					return w.refusal
				}
				wrote("create", obj)
				return c.Create(ctx, obj, opts...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				wrote("patch", obj)
				return c.Patch(ctx, obj, patch, opts...)
			},
			Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
				wrote("apply", obj)
				return c.Apply(ctx, obj, opts...)
			},
			SubResourceUpdate: func(ctx context.Context, c client.Client, _ string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
				wrote("status", obj)
				return c.Status().Update(ctx, obj, opts...)
			},
		})}
	if err := pods.Index(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	c := b.Build()
	mapper := newMapper()
	own, err := metrics.New(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	configured, errs := config.Parse(map[string]string{"rules": "[{group: example.com, kind: Gang, minMemberPath: spec.minAvailable}]"})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	w.grouper = configured.Grouper(podgrouper.Options{Schedulers: map[string]podgrouper.BackEnd{"default-scheduler": podgrouper.Native, "kai-scheduler": podgrouper.KAI}})
	w.resolver = owners.New(c, mapper, owners.Options{Clock: w.clock})
	w.Reconciler = &Reconciler{
		Client: c, Writer: c, Pods: c, Live: c, Grouping: w, Recorder: w.recorder, Clock: w.clock, Pace: pace.New(), Metrics: own, NativeGangs: true,
		loose: newLoosePods(), stray: newStrayPods(), queue: newGroupQueue(), notes: newNoted(),
		kai: &kai{client: c, live: c, mapper: mapper, clock: w.clock, found: func() {}},
	}
	w.reader = newOwnerReader(c, c, w.clock)
	w.owners = newOwnerWatches(&informers{}, mapper, &reviews{}, w.clock)
	w.owners.changed = w.ownerChanged
	return w
}

func newMapper() meta.RESTMapper {
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gang"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{kind.GroupVersion()})
	mapper.Add(kind, meta.RESTScopeNamespace)
	return mapper
}

// informers remember which kinds are watched.
type informers struct {
	crcache.Informers
	kinds []schema.GroupVersionKind
}

func (i *informers) GetInformer(_ context.Context, obj client.Object, _ ...crcache.InformerGetOption) (crcache.Informer, error) {
	i.kinds = append(i.kinds, obj.GetObjectKind().GroupVersionKind())
	return &controllertest.FakeInformer{}, nil
}

// setMinimum changes the workload.
func (w *world) setMinimum(minAvailable any) {
	w.t.Helper()
	live := gang(nil)
	if err := w.Live.Get(w.t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		w.t.Fatal(err)
	}
	live.Object["spec"] = map[string]any{"minAvailable": minAvailable}
	if err := w.Client.Update(w.t.Context(), live); err != nil {
		w.t.Fatal(err)
	}
}

// gang is the workload.
func gang(minAvailable any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Gang",
		"metadata": map[string]any{"namespace": "ns", "name": "bert", "uid": "bert-uid"},
		"spec":     map[string]any{"minAvailable": minAvailable},
	}}
}

// group is the name of its group.
func group() types.NamespacedName {
	return types.NamespacedName{Namespace: "ns", Name: "pg-bert-" + naming.Hash("bert-uid", "")}
}

// pod of the workload, in its group.
func pod(name string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID(name + "-uid"), CreationTimestamp: metav1.NewTime(start),
			Annotations:     map[string]string{podgrouper.PodGroupAnnotation: group().Name, podgrouper.GroupedByAnnotation: podgrouper.GroupedByValue},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Gang", Name: "bert", UID: "bert-uid", Controller: ptr.To(true)}},
		},
		Spec: corev1.PodSpec{SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: ptr.To(group().Name)}},
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

func ungrouped(p *corev1.Pod) { p.Annotations, p.Spec.SchedulingGroup = nil, nil }

func enabled() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{podgrouper.NamespaceLabel: podgrouper.NamespaceEnabled}}}
}

// pass looks at a group once, and returns what was written.
func (w *world) pass(name string) []string {
	w.t.Helper()
	writes, err := w.tryPass(name)
	if err != nil {
		w.t.Fatal(err)
	}
	return writes
}

func (w *world) tryPass(name string) ([]string, error) {
	w.writes = nil
	_, err := w.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}})
	slices.Sort(w.writes)
	return w.writes, err
}

// enter looks at a pod once.
func (w *world) enter(name string) []string {
	w.t.Helper()
	w.writes = nil
	key := PodKey{NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}, UID: types.UID(name + "-uid")}
	if _, err := (&entry{w.Reconciler}).Reconcile(w.t.Context(), key); err != nil {
		w.t.Fatal(err)
	}
	return w.writes
}

func (w *world) events() []string {
	var out []string
	for {
		select {
		case event := <-w.recorder.Events:
			out = append(out, event)
		default:
			return out
		}
	}
}
