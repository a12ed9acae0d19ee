package registry_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/scale/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	groveinstall "github.com/copse-dev/copse/pkg/apis/grove/install"
	schedulerinstall "github.com/copse-dev/copse/pkg/apis/scheduler/install"
	groveregistry "github.com/copse-dev/copse/pkg/registry/grove"
	"github.com/copse-dev/copse/pkg/registry/grove/podcliqueset"
	schedulerregistry "github.com/copse-dev/copse/pkg/registry/scheduler"
)

// oneObject is a storage that holds one object, or none, for endpoints that get or
// update it.
type oneObject struct {
	storage.Interface
	object runtime.Object
}

func (*oneObject) Versioner() storage.Versioner { return storage.APIObjectVersioner{} }

func (s *oneObject) Get(_ context.Context, key string, _ storage.GetOptions, out runtime.Object) error {
	if s.object == nil {
		return storage.NewKeyNotFoundError(key, 0)
	}
	return set(out, s.object)
}

func (s *oneObject) GuaranteedUpdate(_ context.Context, _ string, out runtime.Object, _ bool, _ *storage.Preconditions, update storage.UpdateFunc, _ runtime.Object) error {
	// The stores ask to have an object that is not there shown to them as an empty one.
	current := out.DeepCopyObject()
	if s.object != nil {
		current = s.object.DeepCopyObject()
	}
	updated, _, err := update(current, storage.ResponseMeta{})
	if err != nil {
		return err
	}
	s.object = updated
	return set(out, updated)
}

func set(out, in runtime.Object) error {
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(in.DeepCopyObject()).Elem())
	return nil
}

// GetRESTOptions gives every kind the same storage.
func (s *oneObject) GetRESTOptions(schema.GroupResource, runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{
		StorageConfig: &storagebackend.ConfigForResource{},
		Decorator: func(*storagebackend.ConfigForResource, string, func(runtime.Object) (string, error), func() runtime.Object, func() runtime.Object, storage.AttrFunc, storage.IndexerFuncs, *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
			return s, func() {}, nil
		},
		ResourcePrefix: "prefix",
	}, nil
}

// refused counts refused moves of a status by resource.
type refused map[string]int

func (r refused) StatusRefused(resource, _ string) { r[resource]++ }

func endpoints(t *testing.T, object runtime.Object) map[string]rest.Storage {
	t.Helper()
	return endpointsWith(t, object, refused{})
}

func endpointsWith(t *testing.T, object runtime.Object, refusals refused) map[string]rest.Storage {
	t.Helper()
	typer := runtime.NewScheme()
	groveinstall.Install(typer)
	schedulerinstall.Install(typer)
	store := &oneObject{object: object}
	all, err := groveregistry.NewStorage(typer, podcliqueset.Defaults{}, refusals, store)
	if err != nil {
		t.Fatal(err)
	}
	more, err := schedulerregistry.NewStorage(typer, refusals, store)
	if err != nil {
		t.Fatal(err)
	}
	for resource, endpoint := range more {
		all[resource] = endpoint
	}
	return all
}

func TestResourcesAndTheirNames(t *testing.T) {
	type names struct {
		Kind       string
		Singular   string
		ShortNames []string
		Categories []string
	}
	want := map[string]names{
		"podcliquesets":           {"PodCliqueSet", "podcliqueset", []string{"pcs"}, []string{"all", "grove"}},
		"podcliques":              {"PodClique", "podclique", []string{"pclq"}, []string{"grove"}},
		"podcliquescalinggroups":  {"PodCliqueScalingGroup", "podcliquescalinggroup", []string{"pcsg"}, []string{"grove"}},
		"clustertopologybindings": {"ClusterTopologyBinding", "clustertopologybinding", []string{"ct"}, []string{"grove"}},
		"startgates":              {"StartGate", "startgate", []string{"sgate"}, []string{"grove"}},
		"podgangs":                {"PodGang", "podgang", []string{"pg"}, []string{"grove"}},
		// A short name would be KAI's or another scheduler's, too (D24).
		"podgroups": {"PodGroup", "podgroup", nil, []string{"grove"}},

		"podcliquesets/status":           {Kind: "PodCliqueSet"},
		"podcliques/status":              {Kind: "PodClique"},
		"podcliquescalinggroups/status":  {Kind: "PodCliqueScalingGroup"},
		"clustertopologybindings/status": {Kind: "ClusterTopologyBinding"},
		"startgates/status":              {Kind: "StartGate"},
		"podgangs/status":                {Kind: "PodGang"},
		"podgroups/status":               {Kind: "PodGroup"},
		"podcliquesets/scale":            {Kind: "Scale"},
		"podcliques/scale":               {Kind: "Scale"},
		"podcliquescalinggroups/scale":   {Kind: "Scale"},
	}
	got := map[string]names{}
	for resource, endpoint := range endpoints(t, nil) {
		names := names{Kind: reflect.TypeOf(endpoint.New()).Elem().Name()}
		if provider, ok := endpoint.(rest.SingularNameProvider); ok {
			names.Singular = provider.GetSingularName()
		}
		if provider, ok := endpoint.(rest.ShortNamesProvider); ok {
			names.ShortNames = provider.ShortNames()
		}
		if provider, ok := endpoint.(rest.CategoriesProvider); ok {
			names.Categories = provider.Categories()
		}
		got[resource] = names
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
}

// A subresource that could create or delete would go round the rules of its kind.
func TestSubresourcesOnlyGetAndUpdate(t *testing.T) {
	for resource, endpoint := range endpoints(t, nil) {
		_, creates := endpoint.(rest.Creater) //nolint:misspell // the library calls it so
		_, deletes := endpoint.(rest.GracefulDeleter)
		_, lists := endpoint.(rest.Lister)
		_, updates := endpoint.(rest.Patcher)
		main := !slices.Contains([]byte(resource), '/')
		if creates != main || deletes != main || lists != main || !updates {
			t.Errorf("%s: creates %t, deletes %t, lists %t, updates %t", resource, creates, deletes, lists, updates)
		}
	}
}

// Refused moves of a status are told of, for every kind, and accepted ones are not.
func TestStatusEndpointsTellOfRefusals(t *testing.T) {
	eachKind(t, func(t *testing.T, ctx context.Context, k kind, _ runtime.Object) {
		if k.breakStatus == nil {
			t.Skip("nothing in this status can be wrong by itself")
		}
		refusals := refused{}
		all := endpointsWith(t, k.object, refusals)
		for resource, endpoint := range all {
			// The endpoint of the kind is the one whose objects are of its type.
			if !strings.HasSuffix(resource, "/status") || reflect.TypeOf(endpoint.New()) != reflect.TypeOf(k.object) {
				continue
			}
			write := func(move func(runtime.Object)) error {
				sent := k.object.DeepCopyObject()
				move(sent)
				_, _, err := endpoint.(rest.Patcher).Update(ctx, accessor(t, sent).GetName(), rest.DefaultUpdatedObjectInfo(sent),
					rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
				return err
			}
			if err := write(k.breakStatus); !apierrors.IsInvalid(err) {
				t.Errorf("a forbidden move is answered with %v", err)
			}
			if err := write(k.changeStatus); err != nil {
				t.Errorf("a move is answered with %v", err)
			}
			if diff := cmp.Diff(refused{strings.TrimSuffix(resource, "/status"): 1}, refusals); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			return
		}
		t.Error("has no status endpoint")
	})
}

func TestScaleEndpoints(t *testing.T) {
	objects := kinds()
	pcs := objects["PodCliqueSet"].object.(*grove.PodCliqueSet)
	clique := objects["PodClique"].object.(*grove.PodClique)
	group := objects["PodCliqueScalingGroup"].object.(*grove.PodCliqueScalingGroup)
	pcs.Spec.Replicas, pcs.Status.Replicas = 4, 3
	clique.Spec.Replicas, clique.Status.Replicas, clique.Spec.MinAvailable = 4, 3, ptr.To[int32](2)
	group.Spec.Replicas, group.Status.Replicas, group.Spec.MinAvailable = 4, 3, ptr.To[int32](2)

	trainingSet, trainingClique, trainingGroup := pcs.DeepCopy(), clique.DeepCopy(), group.DeepCopy()
	trainingSet.Spec.WorkloadType = grove.WorkloadTypeTraining
	trainingSet.Spec.Template.Cliques[0].Spec.PodSpec.RestartPolicy = "Never"
	trainingSet.Spec.Template.TerminationDelay = &metav1.Duration{}
	trainingClique.Spec.WorkloadType = grove.WorkloadTypeTraining
	trainingGroup.Spec.WorkloadType = grove.WorkloadTypeTraining

	for name, tc := range map[string]struct {
		resource string
		object   runtime.Object
		selector string
		replicas func(runtime.Object) int32
		// allowed and refused are sizes.
		allowed, refused []int32
	}{
		"set": {
			"podcliquesets", pcs, "app.kubernetes.io/managed-by=grove-operator,app.kubernetes.io/part-of=llm",
			func(obj runtime.Object) int32 { return obj.(*grove.PodCliqueSet).Spec.Replicas }, []int32{0, 1, 9}, []int32{-1, 20001},
		},
		"clique": {
			"podcliques", clique, "grove.io/podclique=llm-0-worker",
			func(obj runtime.Object) int32 { return obj.(*grove.PodClique).Spec.Replicas }, []int32{0, 2, 9}, []int32{-1, 1, 20001},
		},
		"group": {
			"podcliquescalinggroups", group, "grove.io/podcliquescalinggroup=llm-0-decode,grove.io/podcliquescalinggroup-first-pod=true",
			func(obj runtime.Object) int32 { return obj.(*grove.PodCliqueScalingGroup).Spec.Replicas }, []int32{0, 2, 9}, []int32{-1, 1, 20001},
		},
		"training set": {
			"podcliquesets", trainingSet, "app.kubernetes.io/managed-by=grove-operator,app.kubernetes.io/part-of=llm",
			func(obj runtime.Object) int32 { return obj.(*grove.PodCliqueSet).Spec.Replicas }, []int32{4}, []int32{0, 3, 5},
		},
		"training clique": {
			"podcliques", trainingClique, "grove.io/podclique=llm-0-worker",
			func(obj runtime.Object) int32 { return obj.(*grove.PodClique).Spec.Replicas }, []int32{4}, []int32{0, 3, 5},
		},
		"training group": {
			"podcliquescalinggroups", trainingGroup, "grove.io/podcliquescalinggroup=llm-0-decode,grove.io/podcliquescalinggroup-first-pod=true",
			func(obj runtime.Object) int32 { return obj.(*grove.PodCliqueScalingGroup).Spec.Replicas }, []int32{4}, []int32{0, 3, 5},
		},
	} {
		t.Run(name, func(t *testing.T) {
			accessor(t, tc.object).SetNamespace("ns")
			objectName := accessor(t, tc.object).GetName()
			ctx := genericapirequest.WithNamespace(context.Background(), "ns")
			endpoint := endpoints(t, tc.object)[tc.resource+"/scale"].(rest.Patcher)
			got, err := endpoint.Get(ctx, objectName, &metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			scale := got.(*scheme.Scale)
			if scale.Spec.Replicas != 4 || scale.Status.Replicas != 3 || metav1.FormatLabelSelector(scale.Status.Selector) != tc.selector {
				t.Errorf("Scale is %+v %+v", scale.Spec, scale.Status)
			}
			for _, size := range append(slices.Clone(tc.allowed), tc.refused...) {
				store := endpoints(t, tc.object)
				asked := scale.DeepCopy()
				asked.Spec.Replicas = size
				endpoint := store[tc.resource+"/scale"].(rest.Patcher)
				result, created, err := endpoint.Update(ctx, objectName, rest.DefaultUpdatedObjectInfo(asked),
					rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, true, &metav1.UpdateOptions{})
				if slices.Contains(tc.refused, size) {
					if !apierrors.IsInvalid(err) {
						t.Errorf("size %d: got %v, error %v", size, result, err)
					}
					continue
				}
				if err != nil || created {
					t.Errorf("size %d: created %t, error %v", size, created, err)
					continue
				}
				if got := result.(*scheme.Scale).Spec.Replicas; got != size {
					t.Errorf("size %d: the answer says %d", size, got)
				}
				stored, err := store[tc.resource].(rest.Getter).Get(ctx, objectName, &metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if got := tc.replicas(stored); got != size {
					t.Errorf("size %d: stored is %d", size, got)
				}
			}
		})
	}
}

func TestSubresourcesOfAnObjectThatIsNotThere(t *testing.T) {
	ctx := genericapirequest.WithNamespace(context.Background(), "ns")
	for resource, endpoint := range endpoints(t, nil) {
		if !slices.Contains([]byte(resource), '/') {
			continue
		}
		patcher := endpoint.(rest.Patcher)
		if got, err := patcher.Get(ctx, "nobody", &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("get %s: got %v, error %v", resource, got, err)
		}
		sent := endpoint.New()
		accessor(t, sent).SetName("nobody")
		accessor(t, sent).SetResourceVersion("7")
		got, _, err := patcher.Update(ctx, "nobody", rest.DefaultUpdatedObjectInfo(sent),
			rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, true, &metav1.UpdateOptions{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("update %s: got %v, error %v", resource, got, err)
		}
	}
}
