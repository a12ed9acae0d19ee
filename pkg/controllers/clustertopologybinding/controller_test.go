package clustertopologybinding

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/scheduling/kai"
)

func expect(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

var now = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// newBinding is a topology of zones and racks; options may have it refer to others.
func newBinding(changes ...func(*grovev1alpha1.ClusterTopologyBinding)) *grovev1alpha1.ClusterTopologyBinding {
	binding := &grovev1alpha1.ClusterTopologyBinding{ObjectMeta: metav1.ObjectMeta{Name: "gpu", UID: "gpu-uid", Generation: 3}}
	binding.Spec.Levels = []grovev1alpha1.TopologyLevel{{Domain: "zone", Key: "key/zone"}, {Domain: "rack", Key: "key/rack"}}
	for _, change := range changes {
		change(binding)
	}
	return binding
}

func refers(scheduler, name string) func(*grovev1alpha1.ClusterTopologyBinding) {
	return func(b *grovev1alpha1.ClusterTopologyBinding) {
		b.Spec.SchedulerTopologyBindings = append(b.Spec.SchedulerTopologyBindings, grovev1alpha1.SchedulerTopologyBinding{SchedulerName: scheduler, TopologyReference: name})
	}
}

// newTopology is one of KAI's, of the binding unless it is somebody's.
func newTopology(name string, own bool, keys ...string) *kai.Topology {
	topology := desiredTopology(newBinding())
	topology.Name, topology.UID, topology.Generation, topology.Spec.Levels = name, types.UID("uid-of-"+name), 7, nil
	for _, key := range keys {
		topology.Spec.Levels = append(topology.Spec.Levels, kai.TopologyLevel{NodeLabel: key})
	}
	if !own {
		topology.OwnerReferences = nil
	}
	return topology
}

func newClient(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{grovev1alpha1.AddToScheme, kai.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&grovev1alpha1.ClusterTopologyBinding{}).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
}

func TestReconcile(t *testing.T) {
	const create, remove = "create gpu key/zone,key/rack", "delete gpu"
	going := func(b *grovev1alpha1.ClusterTopologyBinding) {
		b.DeletionTimestamp, b.Finalizers = ptr.To(metav1.NewTime(now)), []string{"x/y"}
	}
	refused := apierrors.NewInvalid(kai.TopologyGroupVersion.WithKind("Topology").GroupKind(), "gpu", nil)
	one, two := []string{"kai"}, []string{"kai", "kai-2"}
	tests := map[string]struct {
		objects    []client.Object
		schedulers []string
		createErr  error
		writes     []string
		// want are the condition, and each scheduler with its topology, its generation and whether it agrees.
		want    []string
		wantErr string
	}{
		"it is gone":      {schedulers: one},
		"it goes":         {objects: []client.Object{newBinding(going)}, schedulers: one},
		"there is no KAI": {objects: []client.Object{newBinding()}, want: []string{"False InSync"}},
		"no KAI to refer to": {
			objects: []client.Object{newBinding(refers("kai", "theirs"))}, want: []string{"Unknown TopologyNotFound", "kai theirs 0 no scheduler of this name has topology objects that are known"},
		},
		"KAI gets its topology": {
			objects: []client.Object{newBinding()}, schedulers: two, writes: []string{create}, want: []string{"False InSync", "kai gpu 0", "kai-2 gpu 0"},
		},
		"KAI has it": {
			objects: []client.Object{newBinding(), newTopology("gpu", true, "key/zone", "key/rack")}, schedulers: one, want: []string{"False InSync", "kai gpu 7"},
		},
		"it has changed": {
			objects: []client.Object{newBinding(), newTopology("gpu", true, "key/rack", "key/zone")}, schedulers: one, writes: []string{remove, create}, want: []string{"False InSync", "kai gpu 0"},
		},
		"somebody else's is left alone": {
			objects: []client.Object{newBinding(), newTopology("gpu", false, "key/zone")}, schedulers: one,
			want: []string{"True Drift", `kai gpu 7 Topology "gpu" has the levels key/zone, and the binding key/zone > key/rack`},
		},
		"and may agree": {
			objects: []client.Object{newBinding(), newTopology("gpu", false, "key/zone", "key/rack")}, schedulers: one, want: []string{"False InSync", "kai gpu 7"},
		},
		"one that is referred to is compared": {
			objects: []client.Object{newBinding(refers("kai", "theirs")), newTopology("theirs", false, "key/zone", "key/rack")}, schedulers: one, want: []string{"False InSync", "kai theirs 7"},
		},
		"and differs": {
			objects: []client.Object{newBinding(refers("kai", "theirs")), newTopology("theirs", false, "key/zone", "key/rack", "key/host")}, schedulers: one,
			want: []string{"True Drift", `kai theirs 7 Topology "theirs" has the levels key/zone > key/rack > key/host, and the binding key/zone > key/rack`},
		},
		"and is not there": {
			objects: []client.Object{newBinding(refers("kai", "theirs"))}, schedulers: one, want: []string{"Unknown TopologyNotFound", `kai theirs 0 there is no Topology "theirs"`},
		},
		"one that is not needed any more goes": {
			objects: []client.Object{newBinding(refers("kai", "theirs")), newTopology("gpu", true, "key/zone", "key/rack"), newTopology("theirs", false, "key/zone", "key/rack")}, schedulers: one,
			writes: []string{remove}, want: []string{"False InSync", "kai theirs 7"},
		},
		"one scheduler refers, another does not": {
			objects: []client.Object{newBinding(refers("kai", "theirs"))}, schedulers: two, writes: []string{create},
			want: []string{"Unknown TopologyNotFound", `kai theirs 0 there is no Topology "theirs"`, "kai-2 gpu 0"},
		},
		"a scheduler that is not known": {
			objects: []client.Object{newBinding(refers("other", "theirs"))}, schedulers: one, writes: []string{create},
			want: []string{"Unknown TopologyNotFound", "other theirs 0 no scheduler of this name has topology objects that are known", "kai gpu 0"},
		},
		"KAI refuses it": {
			objects: []client.Object{newBinding()}, schedulers: one, createErr: refused, writes: []string{create},
			want: []string{"True Drift", "kai gpu 0 the topology is refused: " + refused.Error()},
		},
		"it cannot be made": {
			objects: []client.Object{newBinding()}, schedulers: one, createErr: errors.New("boom"), writes: []string{create}, wantErr: "create KAI's Topology gpu: boom",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var writes []string
			c := newClient(t, interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
					topology, _ := obj.(*kai.Topology)
					writes = append(writes, "create "+topology.Name+" "+strings.Join(topology.Keys(), ","))
					expect(t, "owned by the binding", true, metav1.IsControlledBy(topology, newBinding()))
					if tc.createErr != nil {
						return tc.createErr
					}
					return c.Create(ctx, obj, opts...)
				},
				Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
					options := (&client.DeleteOptions{}).ApplyOptions(opts)
					if options.Preconditions == nil || options.Preconditions.UID == nil || *options.Preconditions.UID != "uid-of-gpu" {
						t.Errorf("%s is deleted whatever its UID", obj.GetName())
					}
					writes = append(writes, "delete "+obj.GetName())
					return c.Delete(ctx, obj, opts...)
				},
			}, tc.objects...)
			r := &Reconciler{Client: c, Clock: clocktesting.NewFakeClock(now), KAISchedulers: tc.schedulers}
			request := reconcile.Request{NamespacedName: types.NamespacedName{Name: "gpu"}}
			_, err := r.Reconcile(t.Context(), request)
			gotErr := ""
			if err != nil {
				gotErr = err.Error()
			}
			expect(t, "error", tc.wantErr, gotErr)
			expect(t, "writes", tc.writes, writes)
			binding := &grovev1alpha1.ClusterTopologyBinding{}
			if err := c.Get(t.Context(), request.NamespacedName, binding); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			expect(t, "status", tc.want, told(binding))
			if len(tc.want) == 0 || tc.createErr != nil {
				return
			}
			expect(t, "observed", int64(3), ptr.Deref(binding.Status.ObservedGeneration, 0))
			writes = nil
			if _, err := r.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			again := &grovev1alpha1.ClusterTopologyBinding{}
			if err := c.Get(t.Context(), request.NamespacedName, again); err != nil {
				t.Fatal(err)
			}
			expect(t, "writes when nothing has changed", 0, len(writes))
			expect(t, "version when nothing has changed", binding.ResourceVersion, again.ResourceVersion)
		})
	}
}

// told is what the status of a binding says.
func told(binding *grovev1alpha1.ClusterTopologyBinding) []string {
	condition := meta.FindStatusCondition(binding.Status.Conditions, grovev1alpha1.ConditionTypeSchedulerTopologyDrift)
	if condition == nil {
		return nil
	}
	out := []string{string(condition.Status) + " " + condition.Reason}
	for _, entry := range binding.Status.SchedulerTopologyStatuses {
		text := entry.SchedulerName + " " + entry.TopologyReference + " " + string(rune('0'+entry.SchedulerBackendTopologyObservedGeneration))
		if !entry.InSync {
			text += " " + entry.Message
		}
		out = append(out, text)
	}
	return out
}

// A controller whose clock was ahead has written the condition; it is not turned back.
func TestTheTimeOfTheConditionDoesNotGoBack(t *testing.T) {
	ahead := metav1.NewTime(now.Add(time.Hour))
	binding := newBinding(func(b *grovev1alpha1.ClusterTopologyBinding) {
		b.Status.Conditions = []metav1.Condition{{Type: grovev1alpha1.ConditionTypeSchedulerTopologyDrift, Status: metav1.ConditionTrue, LastTransitionTime: ahead}}
	})
	status := decide(binding, nil, observed{}, now)
	expect(t, "time", ahead, status.Conditions[0].LastTransitionTime)
	expect(t, "status", metav1.ConditionFalse, status.Conditions[0].Status)
}

func TestTheBindingsOfATopology(t *testing.T) {
	other := newBinding(refers("kai", "theirs"))
	other.Name = "other"
	c := newClient(t, interceptor.Funcs{}, newBinding(), other)
	r := &Reconciler{KAISchedulers: []string{"kai"}}
	for name, want := range map[string][]string{"gpu": {"gpu"}, "theirs": {"other"}, "other": {"other"}, "none": nil} {
		var got []string
		for _, request := range r.bindingsOf(c)(t.Context(), newTopology(name, false)) {
			got = append(got, request.Name)
		}
		expect(t, "bindings of "+name, want, got)
	}
}
