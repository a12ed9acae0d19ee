package index

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/scheduling/kai"
)

// indexer remembers what is indexed, by kind and field.
type indexer map[string]client.IndexerFunc

func (i indexer) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	i[fmt.Sprintf("%T %s", obj, field)] = extract
	return nil
}

func registered(t *testing.T, native bool) indexer {
	t.Helper()
	i := indexer{}
	if err := Register(t.Context(), i, native); err != nil {
		t.Fatal(err)
	}
	return i
}

func keys(i indexer) []string {
	var out []string
	for key := range i {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}

func TestRegister(t *testing.T) {
	want := []string{
		"*v1.ConfigMap copse.replica", "*v1.ConfigMap metadata.ownerReferences.uid",
		"*v1.Pod copse.controllerClique", "*v1.Pod copse.terminatingOn", "*v1.Pod metadata.controllerUID",
		"*v1.Service copse.replica", "*v1.Service metadata.ownerReferences.uid",
		"*v1alpha1.PodClique copse.replica", "*v1alpha1.PodClique metadata.ownerReferences.uid",
		"*v1alpha1.PodCliqueScalingGroup copse.replica", "*v1alpha1.PodCliqueScalingGroup metadata.ownerReferences.uid",
		"*v1alpha1.PodGang copse.replica", "*v1alpha1.PodGang metadata.ownerReferences.uid",
		"*v1alpha1.StartGate copse.replica", "*v1alpha1.StartGate metadata.ownerReferences.uid",
		"*v2.HorizontalPodAutoscaler copse.replica", "*v2.HorizontalPodAutoscaler metadata.ownerReferences.uid",
	}
	if diff := cmp.Diff(want, keys(registered(t, false))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// A kind that the cluster does not serve must not be indexed: its informer would never sync.
	withGangs := slices.Sorted(slices.Values(append(slices.Clone(want), "*v1beta1.PodGroup metadata.controllerUID")))
	if diff := cmp.Diff(withGangs, keys(registered(t, true))); diff != "" {
		t.Errorf("with gangs (-want +got):\n%s", diff)
	}
}

func TestRegisterClaims(t *testing.T) {
	i := indexer{}
	if err := RegisterClaims(t.Context(), i); err != nil {
		t.Fatal(err)
	}
	want := []string{"*v1.ResourceClaim copse.replica", "*v1.ResourceClaim metadata.ownerReferences.uid", "*v1alpha1.PodCliqueSet copse.claimTemplate"}
	if diff := cmp.Diff(want, keys(i)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	pcs := &grovev1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}
	pcs.Spec.Template.ResourceSharing = []grovev1alpha1.PCSResourceSharingSpec{
		{ResourceSharingSpec: grovev1alpha1.ResourceSharingSpec{Name: "gpu"}}, {ResourceSharingSpec: grovev1alpha1.ResourceSharingSpec{Name: "nic", Namespace: "other"}},
	}
	claim := func(replica string) *resourcev1.ResourceClaim {
		out := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: "clique", Controller: ptr.To(true)}, {UID: "set"}}}}
		if replica != "" {
			out.Labels = map[string]string{labels.ReplicaIndex: replica}
		}
		return out
	}
	for name, tc := range map[string]struct {
		obj     client.Object
		options []client.ListOption
		want    bool
	}{
		"a set by a template of its namespace":    {pcs, SharingTemplate(types.NamespacedName{Namespace: "ns", Name: "gpu"}), true},
		"by one of another":                       {pcs, SharingTemplate(types.NamespacedName{Namespace: "other", Name: "nic"}), true},
		"not by one of that name elsewhere":       {pcs, SharingTemplate(types.NamespacedName{Namespace: "other", Name: "gpu"}), false},
		"a claim by its replica":                  {claim("1"), OwnedByReplica("ns", "set", 1), true},
		"one of the whole set":                    {claim(""), OwnedByNoReplica("ns", "set"), true},
		"one of a replica is not the whole set's": {claim("1"), OwnedByNoReplica("ns", "set"), false},
		"nor is one of another set":               {claim(""), OwnedByNoReplica("ns", "other"), false},
	} {
		list := (&client.ListOptions{}).ApplyOptions(tc.options)
		requirement := list.FieldSelector.Requirements()[0]
		if got := slices.Contains(i[fmt.Sprintf("%T %s", tc.obj, requirement.Field)](tc.obj), requirement.Value); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestRegisterControlled(t *testing.T) {
	i := indexer{}
	if err := RegisterControlled(t.Context(), i, &kai.PodGroup{}); err != nil {
		t.Fatal(err)
	}
	key := fmt.Sprintf("%T %s", &kai.PodGroup{}, kai.OwnerIndex)
	if diff := cmp.Diff([]string{key}, keys(i)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	group := &kai.PodGroup{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: "other"}, {UID: "gang", Controller: ptr.To(true)}}}}
	if diff := cmp.Diff([]string{"gang"}, i[key](group)); diff != "" {
		t.Errorf("of a group (-want +got):\n%s", diff)
	}
}

// selects says whether a list with some options finds an object.
func selects(t *testing.T, i indexer, obj client.Object, options []client.ListOption) bool {
	t.Helper()
	list := (&client.ListOptions{}).ApplyOptions(options)
	requirement := list.FieldSelector.Requirements()[0]
	if wantNamespace := map[bool]string{true: "", false: "ns"}[requirement.Field == terminatingOn]; list.Namespace != wantNamespace {
		t.Errorf("namespace %q, want %q", list.Namespace, wantNamespace)
	}
	extract := i[fmt.Sprintf("%T %s", obj, requirement.Field)]
	if extract == nil {
		t.Fatalf("%T is not indexed by %s", obj, requirement.Field)
	}
	return slices.Contains(extract(obj), requirement.Value)
}

func TestWhatIsSelected(t *testing.T) {
	member := &grovev1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{labels.ReplicaIndex: "1"},
		OwnerReferences: []metav1.OwnerReference{
			{UID: "group", Controller: ptr.To(true)}, {UID: "set"},
		},
	}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: "other"}, {UID: "clique", Controller: ptr.To(true)}}}}
	named := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: "grove.io/v1alpha1", Kind: "PodClique", Name: "worker", UID: "any", Controller: ptr.To(true)}}}}
	ofJob := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "worker", Controller: ptr.To(true)}}}}
	bare := &corev1.Pod{}
	onNode := func(node string, deleted bool) *corev1.Pod {
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: node}}
		if deleted {
			pod.DeletionTimestamp = ptr.To(metav1.Now())
		}
		return pod
	}
	i := registered(t, true)
	tests := map[string]struct {
		obj     client.Object
		options []client.ListOption
		want    bool
	}{
		"a member by its group":                       {member, OwnedBy("ns", "group"), true},
		"a member by its set, which does not control": {member, OwnedBy("ns", "set"), true},
		"not by another":                              {member, OwnedBy("ns", "x"), false},
		"by the replica of its set":                   {member, OwnedByReplica("ns", "set", 1), true},
		"not by another replica":                      {member, OwnedByReplica("ns", "set", 0), false},
		"nor by the replica of another set":           {member, OwnedByReplica("ns", "x", 1), false},
		"a pod by what controls it":                   {pod, ControlledBy("ns", "clique"), true},
		"not by another owner":                        {pod, ControlledBy("ns", "other"), false},
		"a pod that nothing controls":                 {bare, ControlledBy("ns", ""), false},
		"a pod by the name of its clique":             {named, OfCliqueNamed("ns", "worker"), true},
		"not by another name":                         {named, OfCliqueNamed("ns", "work"), false},
		"not one of a Job of that name":               {ofJob, OfCliqueNamed("ns", "worker"), false},
		"a terminating pod by its node":               {onNode("n", true), TerminatingOn("n"), true},
		"not by another node":                         {onNode("m", true), TerminatingOn("n"), false},
		"not one that stays":                          {onNode("n", false), TerminatingOn("n"), false},
		"nor one that has no node":                    {onNode("", true), TerminatingOn(""), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := selects(t, i, tc.obj, tc.options); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
