package admission

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/config"
	"github.com/copse-dev/copse/pkg/podgrouper/owners"
)

const (
	namespace = "ns"
	critical  = "system-cluster-critical"
)

// classes are the PriorityClasses of the cluster.
type classes []string

func (c classes) Exists(name string) bool { return slices.Contains(c, name) }
func (classes) GlobalDefault() string     { return "normal" }

// Value is the place of a class in the list, but for that of the system.
func (c classes) Value(name string) (int32, bool) {
	place := slices.Index(c, name)
	if name == critical {
		return 2_000_000_000, place >= 0
	}
	return int32(place), place >= 0
}

// known are those of most scenes; "normal", the default, has the priority 0.
func known() classes { return classes{"normal", "train", "inference", "high", "low", critical} }

// scene is a pod that is being created, and what there is in its cluster.
type scene struct {
	pod *corev1.Pod
	// chain are the owners that are found, or err is why they are not.
	chain owners.Chain
	err   error
	// searched says that they were looked for.
	searched bool
	cluster  []client.Object
	starting bool
	recent   *Recent
	dryRun   bool
	grouper  *podgrouper.Grouper
}

func newScene(t *testing.T) *scene {
	t.Helper()
	shipped, errs := config.Shipped()
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return &scene{
		pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pod", Labels: map[string]string{}, Annotations: map[string]string{}},
			// As the API server has it before webhooks.
			Spec: corev1.PodSpec{
				SchedulerName: corev1.DefaultSchedulerName, PriorityClassName: "normal", Priority: ptr.To[int32](7), PreemptionPolicy: ptr.To(corev1.PreemptLowerPriority),
			},
		},
		grouper: shipped.Grouper(podgrouper.Options{
			Schedulers:      map[string]podgrouper.BackEnd{corev1.DefaultSchedulerName: podgrouper.Native, "kai-scheduler": podgrouper.KAI},
			PriorityClasses: known(),
		}),
	}
}

// under puts an owner above those that there are.
func (s *scene) under(apiVersion, kind, name string) *metav1.PartialObjectMetadata {
	owner := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiVersion, Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name + "-uid"), Labels: map[string]string{}, Annotations: map[string]string{}},
	}
	if len(s.chain.Owners) == 0 {
		s.pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: owner.UID, Controller: ptr.To(true)}}
	}
	s.chain.Owners = append(s.chain.Owners, owner)
	return owner
}

// fields are those of an owner, whole.
func (s *scene) fields(owner *metav1.PartialObjectMetadata, spec map[string]any) {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	obj.SetGroupVersionKind(owner.GroupVersionKind())
	obj.SetNamespace(namespace)
	obj.SetName(owner.Name)
	obj.SetUID(owner.UID)
	s.cluster = append(s.cluster, obj)
}

func (s *scene) native(name, class string) {
	s.cluster = append(s.cluster, &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: schedulingv1beta1.PodGroupSpec{PriorityClassName: class},
	})
}

func (s *scene) podGroup(name, class string) {
	s.cluster = append(s.cluster, &schedulerv1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name + "-uid")}, Spec: schedulerv1alpha1.PodGroupSpec{PriorityClassName: class},
	})
}

// Current is the scene's grouper.
func (s *scene) Current() *podgrouper.Grouper {
	if s.starting {
		return nil
	}
	return s.grouper
}

// Find finds the scene's owners.
func (s *scene) Find(context.Context, *corev1.Pod) (owners.Chain, error) {
	s.searched = true
	return s.chain, s.err
}

func scheme() *runtime.Scheme {
	out := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(out))
	utilruntime.Must(schedulerv1alpha1.AddToScheme(out))
	return out
}

func (s *scene) members() *Members {
	reader := fake.NewClientBuilder().WithScheme(scheme()).WithObjects(s.cluster...).Build()
	if s.recent == nil {
		s.recent = NewRecent(clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	}
	return &Members{Groupers: s, Owners: s, Cache: reader, Live: reader, Classes: known(), Recent: s.recent}
}

// add makes the pod a member.
func (s *scene) add(t *testing.T) []string {
	t.Helper()
	warnings, err := s.members().Add(t.Context(), s.pod, Request{ID: "request", DryRun: s.dryRun})
	if err != nil {
		t.Fatal(err)
	}
	return warnings
}

// refuses is the status with which the pod is refused.
func (s *scene) refuses(t *testing.T) metav1.Status {
	t.Helper()
	before := s.pod.DeepCopy()
	_, err := s.members().Add(t.Context(), s.pod, Request{ID: "request"})
	var why *refusal
	if !errors.As(err, &why) {
		t.Fatalf("got %v", err)
	}
	if s.pod.Spec.SchedulingGroup != nil || len(s.pod.Spec.SchedulingGates) > 0 {
		t.Errorf("the pod is changed: %s", cmp.Diff(before, s.pod))
	}
	return why.status
}

// group of the pod; empty for none.
func (s *scene) group() string {
	if s.pod.Spec.SchedulingGroup == nil {
		return ""
	}
	return *s.pod.Spec.SchedulingGroup.PodGroupName
}

func expect(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// podgrouperWithout is a grouper in a cluster without PriorityClasses but the default.
func podgrouperWithout(t *testing.T) *podgrouper.Grouper {
	t.Helper()
	shipped, errs := config.Shipped()
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return shipped.Grouper(podgrouper.Options{
		Schedulers: map[string]podgrouper.BackEnd{corev1.DefaultSchedulerName: podgrouper.Native}, PriorityClasses: classes{"normal"},
	})
}
