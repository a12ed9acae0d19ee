package replica

import (
	"context"
	"errors"
	"fmt"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/internal/index"
	"github.com/copse-dev/copse/pkg/labels"
)

// fieldIndexer adds the controllers' own indexes to a fake client.
type fieldIndexer struct{ builder *fake.ClientBuilder }

func (f fieldIndexer) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	f.builder.WithIndex(obj, field, extract)
	return nil
}

func build(t *testing.T, objects []client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, autoscalingv2.AddToScheme, grovev1alpha1.AddToScheme, schedulerv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	if err := index.Register(t.Context(), fieldIndexer{builder}, false); err != nil {
		t.Fatal(err)
	}
	for _, obj := range objects {
		builder.WithObjects(obj.DeepCopyObject().(client.Object))
	}
	return builder.Build()
}

// held is a set that is deleted, and held by finalizers.
func held(finalizers ...string) setOption {
	return func(pcs *grovev1alpha1.PodCliqueSet) {
		deletedSet(pcs)
		pcs.Finalizers = finalizers
	}
}

// complete is a set with everything of its replica 1.
func complete(t *testing.T, options ...setOption) []client.Object {
	t.Helper()
	have := allOf(t, newSet(), 1)
	objects := []client.Object{newSet(options...)}
	for _, obj := range have.services {
		objects = append(objects, obj)
	}
	for _, obj := range have.groups {
		objects = append(objects, obj)
	}
	for _, obj := range have.cliques {
		objects = append(objects, obj)
	}
	for _, obj := range have.gangs {
		objects = append(objects, obj)
	}
	return objects
}

// grown is the scaling group of complete after somebody has scaled it.
func grown(t *testing.T) client.Object {
	group := allOf(t, newSet(), 1).groups["llm-1-decode"].DeepCopy()
	group.Generation++
	group.Spec.Replicas = 8
	return group
}

func TestReconcile(t *testing.T) {
	service := func(owner types.UID) client.Object {
		out := desiredService(newSet(), 1)
		out.OwnerReferences = []metav1.OwnerReference{{UID: owner, Controller: ptr.To(true)}}
		return out
	}
	// Somebody else has the set own it, so that it goes along.
	foreign := service("set-uid")
	foreign.GetOwnerReferences()[0].Controller = nil
	foreign.SetLabels(nil)
	exists := func(verb string, obj client.Object) error {
		if verb == "create" && kindOf(obj) == "Service" {
			return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "services"}, obj.GetName())
		}
		return nil
	}
	terminating := apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "llm-1", errors.New("namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	fails := func(verb string, err error) func(string, client.Object) error {
		return func(v string, obj client.Object) error {
			if v == verb && (kindOf(obj) == "Service" || obj.GetName() == "llm-1-router") {
				return err
			}
			return nil
		}
	}
	created := []string{"create Service llm-1", "create PodCliqueScalingGroup llm-1-decode", "create PodClique llm-1-router"}
	tests := map[string]struct {
		objects, live []client.Object
		uid           types.UID
		refuse        func(verb string, obj client.Object) error
		// writes are in their order; count is checked instead where the order is open.
		writes  []string
		count   int
		wantErr string
		events  []string
	}{
		"a set that is gone":               {},
		"a namesake of the set":            {objects: []client.Object{newSet()}, uid: "other"},
		"a new replica":                    {objects: []client.Object{newSet()}, writes: created},
		"a complete one":                   {objects: complete(t)},
		"the cache is behind":              {objects: []client.Object{newSet()}, live: []client.Object{newSet(failing)}},
		"the server has none":              {objects: []client.Object{newSet()}, live: []client.Object{service("x")}},
		"the server has a namesake":        {objects: []client.Object{newSet()}, live: []client.Object{newSet(func(pcs *grovev1alpha1.PodCliqueSet) { pcs.UID = "other" })}},
		"a deleted set":                    {objects: complete(t, held(labels.PodCliqueSetFinalizer)), count: 3},
		"a deleted set that orphans":       {objects: complete(t, held(labels.PodCliqueSetFinalizer, metav1.FinalizerOrphanDependents))},
		"a set that wants to orphan later": {objects: complete(t, func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Finalizers = []string{metav1.FinalizerOrphanDependents} })},
		"a scaling group is larger than the cache shows": {
			objects: append(complete(t), &grovev1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: "llm-1-decode-7-worker",
				OwnerReferences: []metav1.OwnerReference{{UID: "set-uid"}},
				Labels:          map[string]string{labels.ReplicaIndex: "1", labels.ScalingGroup: "llm-1-decode", labels.ScalingGroupReplicaIndex: "7"},
			}}),
			live: []client.Object{newSet(), grown(t)},
		},
		"a child that exists, and is ours": {
			objects: []client.Object{newSet()}, live: []client.Object{newSet(), service("set-uid")}, refuse: exists, writes: created,
		},
		"a child that exists, and is another's": {
			objects: []client.Object{newSet()}, live: []client.Object{newSet(), service("other")}, refuse: exists, writes: created,
			wantErr: "Service llm-1 exists and belongs to something else",
			events:  []string{"Warning NameConflict Service llm-1 exists and belongs to something else"},
		},
		"a child that exists, and goes along with the set, but is another's": {
			objects: []client.Object{newSet()}, live: []client.Object{newSet(), foreign}, refuse: exists, writes: created,
			wantErr: "Service llm-1 exists and belongs to something else",
			events:  []string{"Warning NameConflict Service llm-1 exists and belongs to something else"},
		},
		"a child that is refused does not keep the others": {
			objects: []client.Object{newSet()}, refuse: fails("create", errors.New("boom")), writes: created,
			wantErr: "create *v1.Service llm-1: boom\ncreate *v1alpha1.PodClique llm-1-router: boom",
			events:  []string{"Warning CreateFailed Service llm-1: boom", "Warning CreateFailed PodClique llm-1-router: boom"},
		},
		"a namespace that goes": {objects: []client.Object{newSet()}, refuse: fails("create", terminating), writes: created},
		"an update that is refused": {
			objects: complete(t, attemptOf(1, 1)), refuse: fails("update", errors.New("boom")), count: 5, wantErr: "update *v1alpha1.PodClique llm-1-router: boom",
		},
		"a deletion that finds nothing": {
			objects: complete(t, held(labels.PodCliqueSetFinalizer)), count: 3,
			refuse: fails("delete", apierrors.NewNotFound(schema.GroupResource{Resource: "podcliques"}, "x")),
		},
		"a deletion that fails": {
			objects: complete(t, held(labels.PodCliqueSetFinalizer)), count: 3, refuse: fails("delete", errors.New("boom")),
			wantErr: "delete *v1alpha1.PodClique llm-1-router: boom",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var writes []string
			write := func(verb string, obj client.Object) error {
				writes = append(writes, fmt.Sprintf("%s %s %s", verb, kindOf(obj), obj.GetName()))
				if tc.refuse != nil {
					return tc.refuse(verb, obj)
				}
				return nil
			}
			cache := build(t, tc.objects)
			writer := interceptor.NewClient(cache, interceptor.Funcs{
				Create: func(ctx context.Context, w client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
					if err := write("create", obj); err != nil {
						return err
					}
					return w.Create(ctx, obj, opts...)
				},
				Update: func(ctx context.Context, w client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
					if err := write("update", obj); err != nil {
						return err
					}
					return w.Update(ctx, obj, opts...)
				},
				Delete: func(ctx context.Context, w client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
					if err := write("delete", obj); err != nil {
						return err
					}
					return w.Delete(ctx, obj, opts...)
				},
			})
			reader := client.Reader(cache)
			if tc.live != nil {
				reader = build(t, tc.live)
			}
			recorder := events.NewFakeRecorder(10)
			key := Key{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "llm"}, UID: "set-uid", Replica: 1}
			if tc.uid != "" {
				key.UID = tc.uid
			}
			_, err := (&Reconciler{Client: writer, Cache: cache, Live: reader, Recorder: recorder}).Reconcile(t.Context(), key)
			gotErr := ""
			if err != nil {
				gotErr = err.Error()
			}
			expect(t, "error", tc.wantErr, gotErr)
			if tc.count > 0 {
				expect(t, "number of writes", tc.count, len(writes))
			} else {
				expect(t, "writes", tc.writes, writes)
			}
			var told []string
			for range len(recorder.Events) {
				told = append(told, <-recorder.Events)
			}
			expect(t, "events", tc.events, told)
		})
	}
}
