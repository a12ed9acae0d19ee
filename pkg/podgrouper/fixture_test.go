package podgrouper

import (
	"context"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/copse-dev/copse/pkg/podgrouper/fields"
	"github.com/copse-dev/copse/pkg/podgrouper/owners"
)

// rule groups the pods of a kind as a test wants it to.
type rule struct {
	kind       string
	membership Membership
	shape      Shape
	err        error
}

func (r rule) Name() string { return r.kind }

func (r rule) Kinds() []schema.GroupKind {
	if r.kind == "Pod" {
		return []schema.GroupKind{podKind}
	}
	return []schema.GroupKind{{Group: "example.com", Kind: r.kind}}
}

func (r rule) Identify(Input) (Membership, error) { return r.membership, r.err }

func (r rule) Describe(_ context.Context, _ Input, owner fields.Fields, _ client.Reader) (Shape, error) {
	owner.Count("spec", "replicas")
	return r.shape, r.err
}

// clusterClasses are PriorityClasses.
type clusterClasses struct {
	names         []string
	globalDefault string
}

func (c clusterClasses) Exists(name string) bool { return slices.Contains(c.names, name) }
func (c clusterClasses) GlobalDefault() string   { return c.globalDefault }

// world is a pod, its owners and how they are grouped.
type world struct {
	pod     *corev1.Pod
	owners  []*metav1.PartialObjectMetadata
	fields  map[string]any
	notes   []owners.Note
	rules   []Rule
	options Options
}

func newWorld() *world {
	return &world{
		pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "pod-uid", Labels: map[string]string{}, Annotations: map[string]string{}}},
		rules: []Rule{
			rule{kind: "Pod", membership: Membership{PerPod: true, PriorityClassName: "train"}},
			rule{kind: "Default", membership: Membership{PriorityClassName: "train"}},
			rule{kind: "Gang", membership: Membership{PriorityClassName: "train"}},
		},
		options: Options{
			Schedulers:      map[string]BackEnd{"default-scheduler": Native, "kai-scheduler": KAI},
			PassedOver:      []schema.GroupKind{{Group: "example.com", Kind: "Flow"}},
			Kinds:           map[schema.GroupKind]KindDefaults{},
			PriorityClasses: clusterClasses{names: []string{"train", "a", "b", "c", "d", "e"}},
		},
	}
}

// under puts an owner above those that there are.
func (w *world) under(kind, name string) *metav1.PartialObjectMetadata {
	owner := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/v1", Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name + "-uid"), Labels: map[string]string{}, Annotations: map[string]string{}},
	}
	w.owners = append(w.owners, owner)
	return owner
}

func (w *world) grouper() *Grouper {
	return New(NewRegistry(w.rules[0], w.rules[1], w.rules[2:]...), w.options)
}

func (w *world) chain() owners.Chain { return owners.Chain{Owners: w.owners, Notes: w.notes} }

func (w *world) identify(t *testing.T) Identity {
	t.Helper()
	id, err := w.grouper().Identify(w.pod, w.chain())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (w *world) tryDescribe() (*Group, error) {
	builder := fake.NewClientBuilder().WithScheme(runtime.NewScheme())
	for _, owner := range w.owners {
		obj := &unstructured.Unstructured{Object: map[string]any{"spec": maps.Clone(w.fields)}}
		obj.SetGroupVersionKind(owner.GroupVersionKind())
		obj.SetNamespace(owner.Namespace)
		obj.SetName(owner.Name)
		obj.SetUID(owner.UID)
		builder.WithObjects(obj)
	}
	return w.grouper().Describe(context.Background(), w.pod, w.chain(), builder.Build())
}

func (w *world) describe(t *testing.T) *Group {
	t.Helper()
	group, err := w.tryDescribe()
	if err != nil {
		t.Fatal(err)
	}
	return group
}

func reasonsOf(notes []Note) []string {
	var out []string
	for _, note := range notes {
		out = append(out, note.Reason)
	}
	return out
}

func count(n int64) *int64 { return ptr.To(n) }
