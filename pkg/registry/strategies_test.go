// Package registry_test holds every kind to what all strategies have in common.
package registry_test

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/scheduler"
)

type strategy interface {
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
	rest.RESTDeleteStrategy
	rest.ResetFieldsStrategy
}

func TestCreateDropsStatusAndSetsFinalizer(t *testing.T) {
	eachKind(t, func(t *testing.T, ctx context.Context, k kind, obj runtime.Object) {
		accessor := accessor(t, obj)
		accessor.SetResourceVersion("")
		accessor.SetGeneration(9)
		accessor.SetFinalizers([]string{"example.com/mine"})
		sent := obj.DeepCopyObject()
		if err := rest.BeforeCreate(k.main, ctx, obj); err != nil {
			t.Fatal(err)
		}
		if got := accessor.GetGeneration(); got != 1 {
			t.Errorf("generation is %d, want 1", got)
		}
		want := []string{"example.com/mine"}
		if k.finalizer != "" {
			want = append(want, k.finalizer)
		}
		if diff := cmp.Diff(want, accessor.GetFinalizers()); diff != "" {
			t.Errorf("finalizers (-want +got):\n%s", diff)
		}
		// The hashes of a PodCliqueSet are written by the server itself.
		if pcs, ok := obj.(*grove.PodCliqueSet); ok {
			if ptr.Deref(pcs.Status.CurrentGenerationHash, "hash") == "hash" || len(pcs.Status.CliqueHashes) != 1 || pcs.Status.CliqueHashes[0].Hash == "hash" {
				t.Errorf("the client's hashes were kept: %v", pcs.Status)
			}
			pcs.Status.CurrentGenerationHash, pcs.Status.CliqueHashes = nil, nil
		}
		empty := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(runtime.Object)
		if diff := cmp.Diff(k.statusOf(empty), k.statusOf(obj)); diff != "" {
			t.Errorf("status was kept (-want +got):\n%s", diff)
		}
		if k.spec != nil {
			if diff := cmp.Diff(k.spec(sent), k.spec(obj)); diff != "" {
				t.Errorf("spec (-sent +stored):\n%s", diff)
			}
		}
	})
}

func TestCreateSetsFinalizerOnce(t *testing.T) {
	eachKind(t, func(t *testing.T, ctx context.Context, k kind, obj runtime.Object) {
		if k.finalizer == "" {
			t.Skip("has no finalizer")
		}
		accessor(t, obj).SetFinalizers([]string{k.finalizer})
		k.main.PrepareForCreate(ctx, obj)
		if got := accessor(t, obj).GetFinalizers(); !slices.Equal(got, []string{k.finalizer}) {
			t.Errorf("finalizers are %v", got)
		}
	})
}

func TestGenerationMovesWithSpecAlone(t *testing.T) {
	eachKind(t, func(t *testing.T, ctx context.Context, k kind, _ runtime.Object) {
		for name, tc := range map[string]struct {
			change func(runtime.Object)
			want   int64
		}{
			"nothing":    {func(runtime.Object) {}, 3},
			"metadata":   {func(obj runtime.Object) { accessor(t, obj).SetLabels(map[string]string{"a": "b"}) }, 3},
			"finalizers": {func(obj runtime.Object) { accessor(t, obj).SetFinalizers([]string{"example.com/mine"}) }, 3},
			"status":     {k.changeStatus, 3},
			"generation": {func(obj runtime.Object) { accessor(t, obj).SetGeneration(99) }, 3},
			"spec":       {k.changeSpec, 4},
		} {
			if tc.change == nil {
				continue
			}
			obj := k.object.DeepCopyObject()
			tc.change(obj)
			k.main.PrepareForUpdate(ctx, obj, k.object)
			if errs := k.main.ValidateUpdate(ctx, obj, k.object); len(errs) > 0 {
				t.Errorf("change of %s: %v", name, errs)
			}
			if got := accessor(t, obj).GetGeneration(); got != tc.want {
				t.Errorf("change of %s: generation is %d, want %d", name, got, tc.want)
			}
		}
	})
}

func TestMainEndpointKeepsStatus(t *testing.T) {
	eachKind(t, func(t *testing.T, ctx context.Context, k kind, obj runtime.Object) {
		k.changeStatus(obj)
		if k.changeSpec != nil {
			k.changeSpec(obj)
		}
		accessor(t, obj).SetLabels(map[string]string{"a": "b"})
		sent, before := obj.DeepCopyObject(), k.object.DeepCopyObject()
		if err := rest.BeforeUpdate(k.main, ctx, obj, k.object); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(k.statusOf(k.object), k.statusOf(obj)); diff != "" {
			t.Errorf("status (-stored +new):\n%s", diff)
		}
		if k.spec != nil {
			if diff := cmp.Diff(k.spec(sent), k.spec(obj)); diff != "" {
				t.Errorf("spec (-sent +new):\n%s", diff)
			}
		}
		if got := accessor(t, obj).GetLabels()["a"]; got != "b" {
			t.Error("labels were not written")
		}
		if diff := cmp.Diff(before, k.object); diff != "" {
			t.Errorf("the stored object changed (-before +after):\n%s", diff)
		}
	})
}

func TestStatusEndpointKeepsSpecAndMetadata(t *testing.T) {
	eachKind(t, func(t *testing.T, ctx context.Context, k kind, obj runtime.Object) {
		// An object that is being deleted, with something in every field that is kept.
		old := accessor(t, k.object)
		old.SetLabels(map[string]string{"a": "stored"})
		old.SetAnnotations(map[string]string{"a": "stored"})
		old.SetFinalizers([]string{"example.com/stored"})
		old.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "stored", UID: "stored"}})
		old.SetDeletionTimestamp(ptr.To(metav1.Unix(1700000000, 0)))
		before := k.object.DeepCopyObject()

		k.changeStatus(obj)
		if k.changeSpec != nil {
			k.changeSpec(obj)
		}
		written := accessor(t, obj)
		written.SetLabels(map[string]string{"a": "sent"})
		written.SetAnnotations(map[string]string{"a": "sent"})
		written.SetFinalizers(nil)
		written.SetOwnerReferences(nil)
		written.SetGeneration(99)
		managedFields := []metav1.ManagedFieldsEntry{{Manager: "controller", Operation: metav1.ManagedFieldsOperationUpdate}}
		written.SetManagedFields(managedFields)
		sent := obj.DeepCopyObject()

		if err := rest.BeforeUpdate(k.status, ctx, obj, k.object); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(k.statusOf(sent), k.statusOf(obj)); diff != "" {
			t.Errorf("status (-sent +new):\n%s", diff)
		}
		// All else is as it was, but for who wrote what.
		if diff := cmp.Diff(managedFields, written.GetManagedFields()); diff != "" {
			t.Errorf("managedFields (-sent +new):\n%s", diff)
		}
		written.SetManagedFields(nil)
		if diff := cmp.Diff(before, withStatus(obj, k.object)); diff != "" {
			t.Errorf("all but status (-stored +new):\n%s", diff)
		}
		if diff := cmp.Diff(before, k.object); diff != "" {
			t.Errorf("the stored object changed (-before +after):\n%s", diff)
		}
	})
}

// withStatus returns obj with the status of other.
func withStatus(obj, other runtime.Object) runtime.Object {
	switch obj := obj.(type) {
	case *grove.PodCliqueSet:
		obj.Status = other.(*grove.PodCliqueSet).Status
	case *grove.PodClique:
		obj.Status = other.(*grove.PodClique).Status
	case *grove.PodCliqueScalingGroup:
		obj.Status = other.(*grove.PodCliqueScalingGroup).Status
	case *grove.ClusterTopologyBinding:
		obj.Status = other.(*grove.ClusterTopologyBinding).Status
	case *grove.StartGate:
		obj.Status = other.(*grove.StartGate).Status
	case *scheduler.PodGang:
		obj.Status = other.(*scheduler.PodGang).Status
	case *scheduler.PodGroup:
		obj.Status = other.(*scheduler.PodGroup).Status
	}
	return obj
}

// Lost updates are worse than having to send a resourceVersion.
func TestUpdatesAreConditionalAndCreateNothing(t *testing.T) {
	eachKind(t, func(t *testing.T, ctx context.Context, k kind, _ runtime.Object) {
		for endpoint, strategy := range map[string]rest.RESTUpdateStrategy{"main": k.main, "status": k.status} {
			if strategy.AllowUnconditionalUpdate(ctx) {
				t.Errorf("%s endpoint: an update needs no resourceVersion", endpoint)
			}
			if strategy.AllowCreateOnUpdate(ctx) {
				t.Errorf("%s endpoint: an update creates", endpoint)
			}
		}
	})
}

func TestEndpointsAreScopedToNamespaces(t *testing.T) {
	eachKind(t, func(t *testing.T, _ context.Context, k kind, _ runtime.Object) {
		if got, want := k.main.NamespaceScoped(), !k.clusterWide; got != want {
			t.Errorf("main endpoint: namespaced is %t, want %t", got, want)
		}
		if got, want := k.status.NamespaceScoped(), !k.clusterWide; got != want {
			t.Errorf("status endpoint: namespaced is %t, want %t", got, want)
		}
	})
}

// What an endpoint does not write belongs to no manager that writes there.
func TestResetFields(t *testing.T) {
	eachKind(t, func(t *testing.T, _ context.Context, k kind, _ runtime.Object) {
		statusResets := []string{".metadata"}
		if k.spec != nil {
			statusResets = append(statusResets, ".spec")
		}
		for endpoint, tc := range map[string]struct {
			strategy rest.ResetFieldsStrategy
			want     []string
		}{
			"main":   {k.main, []string{".status"}},
			"status": {k.status, statusResets},
		} {
			got := map[string][]string{}
			for version, set := range tc.strategy.GetResetFields() {
				for path := range set.All() {
					got[string(version)] = append(got[string(version)], path.String())
				}
			}
			for _, paths := range got {
				slices.Sort(paths)
			}
			if diff := cmp.Diff(map[string][]string{k.apiVersion: tc.want}, got); diff != "" {
				t.Errorf("%s endpoint (-want +got):\n%s", endpoint, diff)
			}
		}
	})
}

// The rules are tested in the validation packages; here it is that they are asked.
func TestEndpointsValidate(t *testing.T) {
	eachKind(t, func(t *testing.T, ctx context.Context, k kind, obj runtime.Object) {
		if errs := k.main.Validate(ctx, obj); len(errs) > 0 {
			t.Errorf("a valid object is refused: %v", errs)
		}
		nameless := obj.DeepCopyObject()
		accessor(t, nameless).SetName("")
		if errs := k.main.Validate(ctx, nameless); len(errs) == 0 {
			t.Error("an object without a name is created")
		}
		if k.breakSpec != nil {
			broken := obj.DeepCopyObject()
			k.breakSpec(broken)
			if errs := k.main.Validate(ctx, broken); len(errs) == 0 {
				t.Error("an invalid spec is created")
			}
			if errs := k.main.ValidateUpdate(ctx, broken, obj); len(errs) == 0 {
				t.Error("a change to an invalid spec is taken")
			}
		}
		unversioned := obj.DeepCopyObject()
		accessor(t, unversioned).SetResourceVersion("")
		if errs := k.main.ValidateUpdate(ctx, unversioned, obj); len(errs) == 0 {
			t.Error("an update without a resourceVersion is taken")
		}
		if errs := k.status.ValidateUpdate(ctx, unversioned, obj); len(errs) == 0 {
			t.Error("a status without a resourceVersion is taken")
		}
		if k.breakStatus != nil {
			broken := obj.DeepCopyObject()
			k.breakStatus(broken)
			if errs := k.status.ValidateUpdate(ctx, broken, obj); len(errs) == 0 {
				t.Error("a status move that is not allowed is taken")
			}
			if errs := k.main.ValidateUpdate(ctx, broken, obj); len(errs) > 0 {
				t.Errorf("the main endpoint judges the status, which it does not write: %v", errs)
			}
		}
	})
}
