package desired

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/podgrouper"
)

func wanted() *podgrouper.Group {
	return &podgrouper.Group{
		Identity: podgrouper.Identity{
			Namespace: "ns", Name: "pg-bert", PriorityClassName: "train",
			Owner: &metav1.OwnerReference{APIVersion: "kubeflow.org/v1", Kind: "PyTorchJob", Name: "bert", UID: "bert-uid"},
		},
		MinSubGroup: ptr.To[int32](2), Queue: "research", NodePool: "h100", Preemptibility: "preemptible",
		MarkUnschedulable: ptr.To(false), SchedulingBackoff: ptr.To[int32](1),
		Topology: &podgrouper.Topology{Name: "dc", Required: "zone"},
		SubGroups: []podgrouper.SubGroup{
			{Name: "master", MinMember: ptr.To[int64](1)},
			{Name: "worker", MinSubGroup: ptr.To[int64](1)},
			{Name: "worker-0", Parent: "worker", MinMember: ptr.To[int64](3), Topology: &podgrouper.Topology{Name: "dc", Preferred: "rack"}},
		},
		Labels: map[string]string{"app": "bert"}, Annotations: map[string]string{"note": "a"},
	}
}

func newClient(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := schedulerv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithTypeConverters(managedfields.NewDeducedTypeConverter()).Build()
}

func apply(t *testing.T, c client.Client, group *podgrouper.Group, live *schedulerv1alpha1.PodGroup) *schedulerv1alpha1.PodGroup {
	t.Helper()
	if err := c.Apply(t.Context(), PodGroup(group, live), client.FieldOwner(FieldManager), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	return read(t, c)
}

func read(t *testing.T, c client.Client) *schedulerv1alpha1.PodGroup {
	t.Helper()
	got := &schedulerv1alpha1.PodGroup{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "pg-bert"}, got); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestCreation(t *testing.T) {
	got := apply(t, newClient(t), wanted(), nil)
	want := schedulerv1alpha1.PodGroupSpec{
		MinSubGroup: ptr.To[int32](2), Queue: "research", PriorityClassName: "train", Preemptibility: schedulerv1alpha1.Preemptible,
		MarkUnschedulable: ptr.To(false), SchedulingBackoff: ptr.To[int32](1),
		TopologyConstraint: &schedulerv1alpha1.PodGroupTopologyConstraint{Topology: "dc", RequiredTopologyLevel: "zone"},
		SubGroups: []schedulerv1alpha1.SubGroup{
			{Name: "master", MinMember: ptr.To[int32](1)},
			{Name: "worker", MinSubGroup: ptr.To[int32](1)},
			{Name: "worker-0", Parent: ptr.To("worker"), MinMember: ptr.To[int32](3), TopologyConstraint: &schedulerv1alpha1.PodGroupTopologyConstraint{Topology: "dc", PreferredTopologyLevel: "rack"}},
		},
	}
	if diff := cmp.Diff(want, got.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"app": "bert", "kai.scheduler/queue": "research", "kai.scheduler/node-pool": "h100"}, got.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"note": "a", "scheduler.grove.io/grouped-by": "pod-grouper", "scheduler.grove.io/made-as": "pg-bert"}, got.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]metav1.OwnerReference{*wanted().Owner}, got.OwnerReferences); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
}

// The least group says nothing about what the API has defaults for.
func TestTheLeastGroup(t *testing.T) {
	group := &podgrouper.Group{Identity: podgrouper.Identity{Namespace: "ns", Name: "pg-bert"}, MinMember: ptr.To[int32](1)}
	got := apply(t, newClient(t), group, nil)
	if diff := cmp.Diff(schedulerv1alpha1.PodGroupSpec{MinMember: ptr.To[int32](1)}, got.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if len(got.Labels)+len(got.OwnerReferences) > 0 {
		t.Errorf("labels %v, owners %v", got.Labels, got.OwnerReferences)
	}
}

func TestAQueueThatIsNoLabel(t *testing.T) {
	group := wanted()
	group.Queue = "a-queue.with-a-name.that-is-longer.than-the-value-of-a-label-can-be"
	if got := apply(t, newClient(t), group, nil); got.Spec.Queue != group.Queue || got.Labels["kai.scheduler/queue"] != "" {
		t.Errorf("queue %q, label %q", got.Spec.Queue, got.Labels["kai.scheduler/queue"])
	}
}

// What users change stays as they changed it; what follows the workload follows it, also
// where a user changed it, and what the workload no longer has goes.
func TestUsersKeepWhatIsTheirs(t *testing.T) {
	c := newClient(t)
	live := apply(t, c, wanted(), nil)
	live.Spec.Queue, live.Spec.MarkUnschedulable, live.Spec.SchedulingBackoff = "other", nil, ptr.To[int32](-1)
	live.Labels["kai.scheduler/queue"], live.Labels["kai.scheduler/node-pool"], live.Labels["mine"] = "other", "a100", "yes"
	live.Spec.PriorityClassName = "mine"
	if err := c.Update(t.Context(), live, client.FieldOwner("kubectl-edit")); err != nil {
		t.Fatal(err)
	}
	group := wanted()
	group.MinSubGroup, group.MinMember, group.SubGroups, group.Topology = nil, ptr.To[int32](5), nil, nil
	group.PriorityClassName, group.Preemptibility = "build", ""
	group.Labels, group.Annotations = map[string]string{"team": "b"}, nil
	got := apply(t, c, group, read(t, c))
	want := schedulerv1alpha1.PodGroupSpec{MinMember: ptr.To[int32](5), Queue: "other", PriorityClassName: "build", SchedulingBackoff: ptr.To[int32](-1)}
	if diff := cmp.Diff(want, got.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"team": "b", "mine": "yes", "kai.scheduler/queue": "other", "kai.scheduler/node-pool": "a100"}, got.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if len(got.Annotations) != 2 {
		t.Errorf("annotations %v", got.Annotations)
	}
}

// A user who changes the queue between our read and our write is not overruled.
func TestAnEditInBetweenIsAConflict(t *testing.T) {
	c := newClient(t)
	live := apply(t, c, wanted(), nil)
	edited := live.DeepCopy()
	edited.Spec.Queue = "other"
	if err := c.Update(t.Context(), edited); err != nil {
		t.Fatal(err)
	}
	err := c.Apply(t.Context(), PodGroup(wanted(), live), client.FieldOwner(FieldManager), client.ForceOwnership)
	if !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
	if got := read(t, c); got.Spec.Queue != "other" {
		t.Errorf("queue %q", got.Spec.Queue)
	}
}
