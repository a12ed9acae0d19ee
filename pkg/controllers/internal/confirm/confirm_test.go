package confirm

import (
	"context"
	"errors"
	"testing"
	"time"

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
	"github.com/copse-dev/copse/pkg/naming"
)

var now = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// clique is one of 2 pods that was available and is breached.
func clique(name string, change func(*grovev1alpha1.PodClique)) *grovev1alpha1.PodClique {
	out := &grovev1alpha1.PodClique{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Spec:       grovev1alpha1.PodCliqueSpec{Replicas: 2, MinAvailable: ptr.To[int32](2), WorkloadType: grovev1alpha1.WorkloadTypeTraining},
		Status: grovev1alpha1.PodCliqueStatus{
			WasAvailable: true,
			Conditions:   []metav1.Condition{{Type: grovev1alpha1.ConditionTypeMinAvailableBreached, Status: metav1.ConditionTrue, Reason: "R"}},
		},
	}
	if change != nil {
		change(out)
	}
	return out
}

func pod(of string, index int32, ready bool) client.Object {
	out := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: naming.Pod(of, types.UID(of), index, 0),
			Labels:          map[string]string{labels.ManagedBy: labels.ManagedByValue, labels.PodClique: of, labels.PodIndex: labels.Index(index), labels.RestartAttempt: "0"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "PodClique", Name: of, UID: types.UID(of), Controller: ptr.To(true)}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	if ready {
		out.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	return out
}

func failedIndex(index, count int32) func(*grovev1alpha1.PodClique) {
	return func(c *grovev1alpha1.PodClique) {
		c.Status.FailedIndexes = append(c.Status.FailedIndexes, grovev1alpha1.FailedIndex{Index: index, Count: count, PodUID: "before"})
	}
}

func TestBreachesAreLookedAtOnTheServer(t *testing.T) {
	type objects = []client.Object
	over := func(c *grovev1alpha1.PodClique) { c.Status.Conditions[0].Status = metav1.ConditionFalse }
	tests := map[string]struct {
		cached  []*grovev1alpha1.PodClique
		live    objects
		want    bool
		lists   int
		wantErr string
	}{
		"nothing to confirm": {want: true},
		"a pod is not Ready": {
			cached: []*grovev1alpha1.PodClique{clique("a", nil)}, live: objects{clique("a", nil), pod("a", 0, true), pod("a", 1, false)}, want: true, lists: 1,
		},
		"a pod is missing": {
			cached: []*grovev1alpha1.PodClique{clique("a", nil)}, live: objects{clique("a", nil), pod("a", 0, true)}, want: true, lists: 1,
		},
		"all pods are Ready, though nobody has noted it": {
			cached: []*grovev1alpha1.PodClique{clique("a", nil)}, live: objects{clique("a", nil), pod("a", 0, true), pod("a", 1, true)}, lists: 1,
		},
		"the end of the breach is on record": {
			cached: []*grovev1alpha1.PodClique{clique("a", nil)}, live: objects{clique("a", over), pod("a", 0, true)},
		},
		"the clique is in another attempt": {
			cached: []*grovev1alpha1.PodClique{clique("a", nil)}, live: objects{clique("a", func(c *grovev1alpha1.PodClique) { c.Spec.Attempt, c.Status.ObservedAttempt = 1, 1 })},
		},
		"the clique is gone": {cached: []*grovev1alpha1.PodClique{clique("a", nil)}},
		"another one has its name": {
			cached: []*grovev1alpha1.PodClique{clique("a", nil)}, live: objects{clique("a", func(c *grovev1alpha1.PodClique) { c.UID = "other" })},
		},
		"an index has failed too often: no pod changes that": {
			cached: []*grovev1alpha1.PodClique{clique("a", failedIndex(0, 6))}, live: objects{clique("a", failedIndex(0, 6)), pod("a", 0, true), pod("a", 1, true)}, want: true,
		},
		"all of several": {
			cached: []*grovev1alpha1.PodClique{clique("a", nil), clique("b", nil)}, live: objects{clique("a", nil), clique("b", nil), pod("b", 0, true)}, want: true, lists: 2,
		},
		"one of several is over": {
			cached: []*grovev1alpha1.PodClique{clique("a", nil), clique("b", nil)}, live: objects{clique("a", nil), clique("b", nil), pod("b", 0, true), pod("b", 1, true)}, lists: 2,
		},
		"a copy of a pod is none": {
			cached: []*grovev1alpha1.PodClique{clique("a", nil)}, live: objects{clique("a", nil), pod("a", 0, true), pod("a", 1, true), func() client.Object {
				out := pod("a", 1, false)
				out.SetName("debug")
				return out
			}()}, lists: 1,
		},
		"a pod that cannot be told from others is none": {
			cached: []*grovev1alpha1.PodClique{clique("a", nil)}, live: objects{clique("a", nil), pod("a", 0, true), func() client.Object {
				out := pod("a", 1, true)
				out.GetLabels()[labels.PodIndex] = "x"
				return out
			}()}, want: true, lists: 1,
		},
		"a pod of another": {
			cached: []*grovev1alpha1.PodClique{clique("a", nil)}, live: objects{clique("a", nil), pod("a", 0, true), func() client.Object {
				out := pod("a", 1, true)
				out.GetOwnerReferences()[0].UID = "other"
				return out
			}()}, want: true, lists: 1,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			lists := 0
			reader := build(t, interceptor.Funcs{List: func(ctx context.Context, w client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				lists++
				return w.List(ctx, list, opts...)
			}}, tc.live)
			got, err := Breaches(t.Context(), reader, tc.cached, now)
			expect(t, "confirmed", tc.want, got)
			expect(t, "lists", tc.lists, lists)
			expect(t, "error", tc.wantErr, textOf(err))
		})
	}
}

// A failed pod that was replaced may be Ready by now: what is on record is not the last word.
func TestAReplacedPodMayHaveEndedTheBreach(t *testing.T) {
	cached := clique("a", failedIndex(1, 1))
	reader := build(t, interceptor.Funcs{}, []client.Object{cached, pod("a", 0, true), pod("a", 1, true)})
	got, err := Breaches(t.Context(), reader, []*grovev1alpha1.PodClique{cached}, now)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "confirmed", false, got)
}

func TestAFailedReadConfirmsNothing(t *testing.T) {
	boom := errors.New("boom")
	tests := map[string]struct {
		funcs interceptor.Funcs
		want  string
	}{
		"of the clique": {interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return boom
		}}, "read clique a live: boom"},
		"of its pods": {interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return boom }}, "list pods live: boom"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Breaches(t.Context(), build(t, tc.funcs, []client.Object{clique("a", nil)}), []*grovev1alpha1.PodClique{clique("a", nil)}, now)
			expect(t, "confirmed", false, got)
			expect(t, "error", tc.want, textOf(err))
		})
	}
}

func build(t *testing.T, funcs interceptor.Funcs, objects []client.Object) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, grovev1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(funcs).WithObjects(objects...).Build()
}

func expect(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
