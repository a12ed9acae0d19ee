package podcliquescalinggroup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/internal/index"
	"github.com/copse-dev/copse/pkg/labels"
)

func expect(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

var request = reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "llm-0-decode"}}

var now = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// newSet is an inference set of one replica, with a delay of a minute.
func newSet(change func(*grovev1alpha1.PodCliqueSet)) *grovev1alpha1.PodCliqueSet {
	pcs := &grovev1alpha1.PodCliqueSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "llm", UID: "set"},
		Spec: grovev1alpha1.PodCliqueSetSpec{
			Replicas: 1, WorkloadType: grovev1alpha1.WorkloadTypeInference,
			Template: grovev1alpha1.PodCliqueSetTemplateSpec{
				TerminationDelay:       &metav1.Duration{Duration: time.Minute},
				Cliques:                []grovev1alpha1.PodCliqueTemplateSpec{{Name: "worker"}},
				PodCliqueScalingGroups: []grovev1alpha1.PodCliqueScalingGroupConfig{{Name: "decode", CliqueNames: []string{"worker"}}},
			},
		},
	}
	if change != nil {
		change(pcs)
	}
	return pcs
}

func newGroup(change func(*grovev1alpha1.PodCliqueScalingGroup)) client.Object {
	group := &grovev1alpha1.PodCliqueScalingGroup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "llm-0-decode", UID: "group", Finalizers: []string{labels.PodCliqueScalingGroupFinalizer},
			Labels:          map[string]string{labels.ReplicaIndex: "0"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "grove.io/v1alpha1", Kind: "PodCliqueSet", Name: "llm", UID: "set", Controller: ptr.To(true)}},
		},
		Spec: grovev1alpha1.PodCliqueScalingGroupSpec{
			Replicas: 1, MinAvailable: ptr.To[int32](1), CliqueNames: []string{"worker"}, WorkloadType: grovev1alpha1.WorkloadTypeInference,
		},
	}
	if change != nil {
		change(group)
	}
	return group
}

func leaving(group *grovev1alpha1.PodCliqueScalingGroup) {
	group.DeletionTimestamp = ptr.To(metav1.Now())
}

func newMember(name string, change func(*grovev1alpha1.PodClique)) client.Object {
	clique := &grovev1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID("uid-of-" + name),
		Labels:          map[string]string{labels.ScalingGroup: "llm-0-decode", labels.ScalingGroupReplicaIndex: "0"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "grove.io/v1alpha1", Kind: "PodCliqueScalingGroup", Name: "llm-0-decode", UID: "group", Controller: ptr.To(true)}},
	}}
	if change != nil {
		change(clique)
	}
	return clique
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
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, autoscalingv2.AddToScheme, grovev1alpha1.AddToScheme, schedulerv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&grovev1alpha1.PodCliqueScalingGroup{})
	if err := index.Register(t.Context(), fieldIndexer{builder}, false); err != nil {
		t.Fatal(err)
	}
	for _, obj := range objects {
		builder.WithObjects(obj.DeepCopyObject().(client.Object))
	}
	return builder.Build()
}

func TestReconcile(t *testing.T) {
	const status, release = "status llm-0-decode", "patch llm-0-decode"
	orphans := func(group *grovev1alpha1.PodCliqueScalingGroup) {
		leaving(group)
		group.Finalizers = append(group.Finalizers, metav1.FinalizerOrphanDependents)
	}
	going := func(c *grovev1alpha1.PodClique) {
		c.DeletionTimestamp, c.Finalizers = ptr.To(metav1.Now()), []string{labels.PodCliqueFinalizer}
	}
	another := func(c *grovev1alpha1.PodClique) { c.OwnerReferences[0].UID = "other" }
	deletionFails := func(err error) func(verb, name string) error {
		return func(verb, name string) error {
			if verb == "delete" && name == "a" {
				return err
			}
			return nil
		}
	}
	tests := map[string]struct {
		objects, live []client.Object
		refuse        func(verb, name string) error
		want          []string
		wantErr       string
	}{
		"gone":            {},
		"new":             {objects: []client.Object{newSet(nil), newGroup(nil)}, want: []string{status}},
		"with its member": {objects: []client.Object{newSet(nil), newGroup(nil), newMember("a", nil)}, want: []string{status}},
		"without its set": {objects: []client.Object{newGroup(nil), newMember("a", nil)}},
		"of a set that was made anew": {
			objects: []client.Object{newSet(func(pcs *grovev1alpha1.PodCliqueSet) { pcs.UID = "other" }), newGroup(nil), newMember("a", nil)},
		},
		"deleted: its members go": {
			objects: []client.Object{newGroup(leaving), newMember("a", nil), newMember("b", nil), newMember("of-another", another)}, want: []string{"delete a", "delete b"},
		},
		"each once": {
			objects: []client.Object{newGroup(leaving), newMember("a", going), newMember("b", nil)}, want: []string{"delete b"},
		},
		"it stays as long as they do": {objects: []client.Object{newGroup(leaving), newMember("a", going)}},
		"then it goes":                {objects: []client.Object{newGroup(leaving)}, want: []string{release}},
		"not when the server still has one": {
			objects: []client.Object{newGroup(leaving)}, live: []client.Object{newMember("a", nil)}, wantErr: "member a of the deleted group is not in the cache yet",
		},
		"a member of a namesake does not hold it": {
			objects: []client.Object{newGroup(leaving)}, live: []client.Object{newMember("a", another)}, want: []string{release},
		},
		"orphaned members stay": {objects: []client.Object{newGroup(orphans), newMember("a", nil)}, want: []string{release}},
		"it is not ours to hold any more": {
			objects: []client.Object{newGroup(func(group *grovev1alpha1.PodCliqueScalingGroup) {
				leaving(group)
				group.Finalizers = []string{"example.com/held"}
			}), newMember("a", nil)},
		},
		"a deletion that fails does not keep the others": {
			objects: []client.Object{newGroup(leaving), newMember("a", nil), newMember("b", nil)}, refuse: deletionFails(errors.New("boom")),
			want: []string{"delete a", "delete b"}, wantErr: "delete member a: boom",
		},
		"one that finds nothing is done": {
			objects: []client.Object{newGroup(leaving), newMember("a", nil)}, want: []string{"delete a"},
			refuse: deletionFails(apierrors.NewNotFound(schema.GroupResource{Resource: "podcliques"}, "a")),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var writes []string
			write := func(verb string, obj client.Object) error {
				writes = append(writes, fmt.Sprintf("%s %s", verb, obj.GetName()))
				if tc.refuse != nil {
					return tc.refuse(verb, obj.GetName())
				}
				return nil
			}
			cache := build(t, tc.objects)
			writer := interceptor.NewClient(cache, interceptor.Funcs{
				Delete: func(ctx context.Context, w client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
					options := (&client.DeleteOptions{}).ApplyOptions(opts)
					if options.Preconditions == nil || options.Preconditions.UID == nil || *options.Preconditions.UID != obj.GetUID() {
						t.Errorf("%s is deleted whatever its UID", obj.GetName())
					}
					if err := write("delete", obj); err != nil {
						return err
					}
					return w.Delete(ctx, obj, opts...)
				},
				Patch: func(ctx context.Context, w client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
					if err := write("patch", obj); err != nil {
						return err
					}
					return w.Patch(ctx, obj, patch, opts...)
				},
				SubResourceUpdate: func(ctx context.Context, w client.Client, subresource string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
					if err := write(subresource, obj); err != nil {
						return err
					}
					return w.SubResource(subresource).Update(ctx, obj, opts...)
				},
			})
			reader := client.Reader(cache)
			if tc.live != nil {
				reader = build(t, tc.live)
			}
			r := &Reconciler{Client: writer, Live: reader, Clock: clocktesting.NewFakeClock(now)}
			_, err := r.Reconcile(t.Context(), request)
			got := ""
			if err != nil {
				got = err.Error()
			}
			expect(t, "error", tc.wantErr, got)
			slices.Sort(writes)
			expect(t, "writes", tc.want, writes)
			if slices.Contains(tc.want, status) {
				writes = nil
				if _, err := r.Reconcile(t.Context(), request); err != nil {
					t.Fatal(err)
				}
				expect(t, "writes when nothing has changed", []string(nil), writes)
			}
		})
	}
}

func TestTheGroupOfAClique(t *testing.T) {
	member := newMember("a", nil).(*grovev1alpha1.PodClique)
	expect(t, "of a member", []reconcile.Request{request}, groupOfClique(t.Context(), member))
	member.OwnerReferences[0].Kind = "PodCliqueSet"
	expect(t, "of a standalone clique", []reconcile.Request(nil), groupOfClique(t.Context(), member))
	member.OwnerReferences = nil
	expect(t, "of a clique that nothing owns", []reconcile.Request(nil), groupOfClique(t.Context(), member))
}
