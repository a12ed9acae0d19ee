package live

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

func reader(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, grovev1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(funcs).WithObjects(objects...).Build()
}

func pod(namespace, name, clique string, owner types.UID, controller bool) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{labels.PodClique: clique, labels.PartOf: "llm", labels.ManagedBy: labels.ManagedByValue},
		OwnerReferences: []metav1.OwnerReference{{Kind: "PodClique", Name: clique, UID: owner, Controller: ptr.To(controller)}},
	}}
}

func names(pods []corev1.Pod) []string {
	var out []string
	for _, p := range pods {
		out = append(out, p.Name)
	}
	slices.Sort(out)
	return out
}

func TestSetIsTheOneOfTheUID(t *testing.T) {
	pcs := &grovev1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "llm", UID: "new"}}
	key := types.NamespacedName{Namespace: "ns", Name: "llm"}
	tests := map[string]struct {
		key  types.NamespacedName
		uid  types.UID
		want bool
	}{
		"it is there":                     {key, "new", true},
		"another one has its name":        {key, "old", false},
		"nothing has its name":            {types.NamespacedName{Namespace: "ns", Name: "x"}, "new", false},
		"it is in another namespace only": {types.NamespacedName{Namespace: "other", Name: "llm"}, "new", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Set(t.Context(), reader(t, interceptor.Funcs{}, pcs), tc.key, tc.uid)
			if err != nil || (got != nil) != tc.want {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	boom := interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errors.New("boom")
	}}
	if got, err := Set(t.Context(), reader(t, boom, pcs), key, "new"); err == nil || got != nil {
		t.Errorf("a failed read is taken for an answer: %v", got)
	}
}

func TestPodsAreThoseThatTheOwnerControls(t *testing.T) {
	unlabelled := pod("ns", "not-of-the-set", "llm-0-a", "uid-a", true)
	delete(unlabelled.Labels, labels.PartOf)
	ofSet := func(name string, uid, owner types.UID) *grovev1alpha1.PodClique {
		return &grovev1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: uid, OwnerReferences: []metav1.OwnerReference{{UID: owner}},
			Labels: map[string]string{labels.PartOf: "llm", labels.ManagedBy: labels.ManagedByValue},
		}}
	}
	r := reader(t, interceptor.Funcs{},
		// The cliques of a set are read live as well: none has to be in a cache.
		ofSet("llm-0-a", "uid-a", "set-uid"), ofSet("llm-0-b", "uid-b", "set-uid"), ofSet("llm-0-c", "uid-c", "namesake"),
		pod("ns", "c-0", "llm-0-c", "uid-c", true),
		pod("ns", "a-0", "llm-0-a", "uid-a", true),
		pod("ns", "a-1", "llm-0-a", "uid-a", true),
		pod("ns", "owned-only", "llm-0-a", "uid-a", false),
		pod("ns", "of-a-namesake-that-is-gone", "llm-0-a", "uid-old", true),
		pod("ns", "b-0", "llm-0-b", "uid-b", true),
		pod("other", "elsewhere", "llm-0-a", "uid-a", true),
		unlabelled,
	)
	clique := func(name string, uid types.UID) grovev1alpha1.PodClique {
		return grovev1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid}}
	}
	a := clique("llm-0-a", "uid-a")

	got, err := CliquePods(t.Context(), r, &a)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a-0", "a-1", "not-of-the-set"}, names(got)); diff != "" {
		t.Errorf("pods of a clique (-want +got):\n%s", diff)
	}

	pcs := &grovev1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "llm", UID: "set-uid"}}
	_, got, err = SetPods(t.Context(), r, pcs)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a-0", "a-1", "b-0"}, names(got)); diff != "" {
		t.Errorf("pods of a set (-want +got):\n%s", diff)
	}
}

func TestPodsOfAReplicaCarryItsLabels(t *testing.T) {
	of := func(namespace, name, set, replica string) *corev1.Pod {
		out := pod(namespace, name, "llm-0-a", "uid-a", true)
		out.Labels[labels.PartOf], out.Labels[labels.ReplicaIndex] = set, replica
		return out
	}
	foreign := of("ns", "of-somebody-else", "llm", "1")
	foreign.Labels[labels.ManagedBy] = "x"
	r := reader(t, interceptor.Funcs{},
		of("ns", "ours", "llm", "1"), of("ns", "of-another-replica", "llm", "0"), of("ns", "of-another-set", "x", "1"), of("other", "elsewhere", "llm", "1"), foreign)
	pcs := &grovev1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "llm", UID: "set-uid"}}
	got, err := ReplicaPods(t.Context(), r, pcs, "1")
	if err != nil {
		t.Fatal(err)
	}
	// Whoever manages it: one of ours may have lost that label.
	if diff := cmp.Diff([]string{"of-somebody-else", "ours"}, names(got)); diff != "" {
		t.Errorf("pods of a replica (-want +got):\n%s", diff)
	}
}

func TestAPodOfACliqueIsTheOneOfTheUIDThatItControls(t *testing.T) {
	bare := pod("ns", "a-0", "llm-0-a", "uid-a", true)
	bare.UID, bare.Labels = "new", nil
	owned := pod("ns", "owned-only", "llm-0-a", "uid-a", false)
	owned.UID = "new"
	clique := &grovev1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "llm-0-a", UID: "uid-a"}}
	tests := map[string]struct {
		name string
		uid  types.UID
		want bool
	}{
		"it is there, without a label":  {"a-0", "new", true},
		"another one has its name":      {"a-0", "old", false},
		"it is controlled by no clique": {"owned-only", "new", false},
		"nothing has its name":          {"x", "new", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := CliquePod(t.Context(), reader(t, interceptor.Funcs{}, bare, owned), clique, tc.name, tc.uid)
			if err != nil || (got != nil) != tc.want {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	boom := interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errors.New("boom")
	}}
	if got, err := CliquePod(t.Context(), reader(t, boom), clique, "a-0", "new"); err == nil || got != nil {
		t.Errorf("a failed read is taken for an answer: %v", got)
	}
}

func TestAFailedListIsNoAnswer(t *testing.T) {
	r := reader(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("boom")
	}})
	if _, err := CliquePods(t.Context(), r, &grovev1alpha1.PodClique{}); err == nil {
		t.Error("pods of a clique: no error")
	}
	if _, _, err := SetPods(t.Context(), r, &grovev1alpha1.PodCliqueSet{}); err == nil {
		t.Error("pods of a set: no error")
	}
	if _, err := ReplicaPods(t.Context(), r, &grovev1alpha1.PodCliqueSet{}, "0"); err == nil {
		t.Error("pods of a replica: no error")
	}
}
