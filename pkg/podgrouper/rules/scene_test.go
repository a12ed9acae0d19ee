package rules_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/copse-dev/copse/pkg/apis/scheduler"
	"github.com/copse-dev/copse/pkg/apis/scheduler/install"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/apis/scheduler/validation"
	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/config"
	"github.com/copse-dev/copse/pkg/podgrouper/desired"
	"github.com/copse-dev/copse/pkg/podgrouper/owners"
)

// classes are the PriorityClasses of a cluster.
type classes []string

func (c classes) Exists(name string) bool { return slices.Contains(c, name) }
func (c classes) GlobalDefault() string   { return "" }

// scene is a cluster with the objects of a text. An object says with "under: Kind/name" what
// its controller is. UIDs are made of kinds and names.
type scene struct {
	reader client.Client
	mapper meta.RESTMapper
	owners *owners.Resolver
	config config.Config
}

func newScene(t testing.TB, text string, configured config.Config) *scene {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	install.Install(scheme)
	objects := decode(t, text)
	versions := []schema.GroupVersion{}
	for _, obj := range objects {
		versions = append(versions, obj.GroupVersionKind().GroupVersion())
	}
	mapper := meta.NewDefaultRESTMapper(versions)
	byName := map[string]*unstructured.Unstructured{}
	for _, obj := range objects {
		mapper.Add(obj.GroupVersionKind(), meta.RESTScopeNamespace)
		byName[obj.GetKind()+"/"+obj.GetName()] = obj
		obj.SetNamespace("ns")
		obj.SetUID(types.UID(obj.GetKind() + "-" + obj.GetName()))
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper)
	for _, obj := range objects {
		if under, ok := obj.Object["under"].(string); ok {
			owner := byName[under]
			if owner == nil {
				t.Fatalf("%s is under %s, which is not there", obj.GetName(), under)
			}
			obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(), Controller: ptr.To(true)}})
			delete(obj.Object, "under")
		}
	}
	for _, obj := range objects {
		builder.WithObjects(obj)
	}
	shipped, errs := config.Shipped()
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	s := &scene{reader: builder.Build(), mapper: mapper, config: config.Merge(shipped, configured)}
	s.owners = owners.New(s.reader, mapper, owners.Options{})
	return s
}

func decode(t testing.TB, text string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		obj := &unstructured.Unstructured{}
		err := decoder.Decode(obj)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(obj.Object) > 0 {
			out = append(out, obj)
		}
	}
}

func (s *scene) grouper() *podgrouper.Grouper {
	return s.config.Grouper(podgrouper.Options{
		Schedulers:      map[string]podgrouper.BackEnd{"default-scheduler": podgrouper.KAI},
		PriorityClasses: classes{"train", "build", "inference", "high"},
	})
}

// describe groups a pod, and checks what is true of every group.
func (s *scene) describe(t *testing.T, name string) (*podgrouper.Group, error) {
	t.Helper()
	pod := &corev1.Pod{}
	if err := s.reader.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: name}, pod); err != nil {
		t.Fatal(err)
	}
	chain, err := s.owners.Find(t.Context(), pod)
	if err != nil {
		t.Fatal(err)
	}
	group, err := s.grouper().Describe(t.Context(), pod, chain, s.reader)
	if err != nil {
		return nil, err
	}
	if group.Needed() {
		s.checkAdmission(t, pod, chain, group)
		checkAPI(t, group)
	}
	return group, nil
}

// checkAdmission holds what is known of a pod while it is created against what is known
// later.
func (s *scene) checkAdmission(t *testing.T, pod *corev1.Pod, chain owners.Chain, group *podgrouper.Group) {
	t.Helper()
	early := pod.DeepCopy()
	early.UID, early.Name, early.GenerateName, early.CreationTimestamp = "", "", pod.Name+"-", metav1.Time{}
	id, err := s.grouper().Identify(early, chain)
	if err != nil {
		t.Errorf("at its creation: %v", err)
		return
	}
	if id.PerPod && id.Name != "" {
		t.Errorf("a group per pod has the name %q before the pod has one", id.Name)
	}
	if !id.PerPod && id.Name != group.Name || id.PerPod != group.PerPod || id.SubGroup != group.SubGroup {
		t.Errorf("at its creation the pod is in %q/%q, later in %q/%q", id.Name, id.SubGroup, group.Name, group.SubGroup)
	}
	if id.PriorityClassName != group.PriorityClassName && !id.PriorityInOwner {
		t.Errorf("at its creation the class is %q, later %q", id.PriorityClassName, group.PriorityClassName)
	}
	if group.SubGroup != "" && !slices.ContainsFunc(group.SubGroups, func(sub podgrouper.SubGroup) bool { return sub.Name == group.SubGroup && sub.MinMember != nil }) {
		t.Errorf("the pod is in subgroup %q, which is no leaf of %v", group.SubGroup, group.SubGroups)
	}
}

// checkAPI applies the group where an API server would, and validates it.
func checkAPI(t *testing.T, group *podgrouper.Group) {
	t.Helper()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	applied, err := runtime.DefaultUnstructuredConverter.ToUnstructured(desired.PodGroup(group, nil))
	if err != nil {
		t.Fatal(err)
	}
	versioned, hub := &schedulerv1alpha1.PodGroup{}, &scheduler.PodGroup{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(applied, versioned, true); err != nil {
		t.Fatal(err)
	}
	scheme.Default(versioned)
	if err := scheme.Convert(versioned, hub, nil); err != nil {
		t.Fatal(err)
	}
	if errs := validation.ValidatePodGroup(hub); len(errs) > 0 {
		t.Errorf("the API refuses the group: %v", errs.ToAggregate())
	}
	if got := int64(desired.MinPods(versioned)); got != group.MinPods() {
		t.Errorf("the PodGroup needs %d pods, the group %d", got, group.MinPods())
	}
}

// render tells a group in one line.
func render(group *podgrouper.Group) string {
	if !group.Needed() {
		return "exempt: " + string(group.Exempt)
	}
	var out []string
	name := group.Name[:strings.LastIndex(group.Name, "-")]
	out = append(out, fmt.Sprintf("%s of %s/%s, %s", name, group.Owner.Kind, group.Owner.Name, minimum(int64Of(group.MinMember), int64Of(group.MinSubGroup))))
	if group.FirstPods != nil {
		out = append(out, fmt.Sprintf("the first of %d pods", group.MinPods()))
		if group.FirstPast {
			out = append(out, "past")
		}
	}
	if group.Topology != nil {
		out = append(out, "on "+place(group.Topology))
	}
	out = append(out, group.PriorityClassName)
	for _, sub := range group.SubGroups {
		text := sub.Name + " " + minimum(sub.MinMember, sub.MinSubGroup)
		if sub.Parent != "" {
			text = sub.Parent + "/" + text
		}
		if sub.Topology != nil {
			text += " on " + place(sub.Topology)
		}
		out = append(out, text)
	}
	if group.SubGroup != "" {
		out = append(out, "in "+group.SubGroup)
	}
	for _, note := range group.Notes {
		out = append(out, note.Reason)
	}
	return strings.Join(out, "; ")
}

func minimum(members, groups *int64) string {
	if groups != nil {
		return fmt.Sprintf("%d groups", *groups)
	}
	return fmt.Sprint(ptr.Deref(members, -1))
}

func int64Of(count *int32) *int64 {
	if count == nil {
		return nil
	}
	return ptr.To(int64(*count))
}

func place(topology *podgrouper.Topology) string {
	return topology.Name + ":" + topology.Required + ":" + topology.Preferred
}

// groupCase is a cluster and what the groups of some of its pods are.
type groupCase struct {
	objects string
	config  config.Config
	want    map[string]string
}

func runCases(t *testing.T, cases map[string]groupCase) {
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, tc.objects, tc.config)
			got := map[string]string{}
			names := map[string]string{}
			for pod := range tc.want {
				group, err := s.describe(t, pod)
				if err != nil {
					got[pod] = "error: " + err.Error()
					continue
				}
				got[pod] = render(group)
				names[group.Name] = got[pod]
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("groups (-want +got):\n%s", diff)
			}
		})
	}
}

// namesOf are the names of the groups of all pods of a scene, by pod.
func namesOf(t *testing.T, objects string) map[string]string {
	t.Helper()
	s := newScene(t, objects, config.Config{})
	out := map[string]string{}
	for _, obj := range decode(t, objects) {
		if obj.GetKind() != "Pod" {
			continue
		}
		group, err := s.describe(t, obj.GetName())
		if err != nil {
			t.Fatal(err)
		}
		out[obj.GetName()] = group.Name
	}
	return out
}

// sameGroup checks which pods share a group: those of one list do, those of two do not.
func sameGroup(t *testing.T, objects string, want ...[]string) {
	t.Helper()
	names := namesOf(t, objects)
	byGroup := map[string][]string{}
	for _, pod := range slices.Sorted(maps.Keys(names)) {
		byGroup[names[pod]] = append(byGroup[names[pod]], pod)
	}
	got := slices.SortedFunc(maps.Values(byGroup), slices.Compare)
	slices.SortFunc(want, slices.Compare)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pods by group (-want +got):\n%s", diff)
	}
}

func replace(text string, pairs ...string) string {
	return strings.NewReplacer(pairs...).Replace(text)
}
