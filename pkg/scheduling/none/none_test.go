package none

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
	"github.com/copse-dev/copse/pkg/scheduling"
)

func expect(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// newGang refers to the pods a, b and c.
func newGang(scheduled bool) *schedulerv1alpha1.PodGang {
	podGang := &schedulerv1alpha1.PodGang{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "llm-0", Labels: map[string]string{labels.RestartAttempt: "2"}},
		Spec: schedulerv1alpha1.PodGangSpec{PodGroups: []schedulerv1alpha1.PodGangPodGroup{
			{Name: "x", MinReplicas: 1, PodReferences: []schedulerv1alpha1.NamespacedName{{Name: "a"}}},
			{Name: "y", MinReplicas: 2, PodReferences: []schedulerv1alpha1.NamespacedName{{Name: "b"}, {Name: "c"}}},
		}},
	}
	if scheduled {
		podGang.Status.ObservedAttempt = 2
		podGang.Status.Conditions = []metav1.Condition{{Type: schedulerv1alpha1.PodGangConditionScheduled, Status: metav1.ConditionTrue}}
	}
	return podGang
}

func newPod(name string, changes ...func(*corev1.Pod)) client.Object {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)},
		Spec:       corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: "example.com/mine"}, {Name: naming.PendingGate}}},
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func released(pod *corev1.Pod) { pod.Spec.SchedulingGates = nil }

func terminating(pod *corev1.Pod) {
	at := metav1.Unix(1, 0)
	pod.DeletionTimestamp, pod.Finalizers = &at, []string{"example.com/hold"}
}

func TestPreparePodHoldsAPodUntilItsGangIsComplete(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: "example.com/mine"}}}}
	New(nil).PreparePod(pod, newGang(false))
	expect(t, "gates", []corev1.PodSchedulingGate{{Name: "example.com/mine"}, {Name: naming.PendingGate}}, pod.Spec.SchedulingGates)

	replacement := &corev1.Pod{}
	New(nil).PreparePod(replacement, newGang(true))
	expect(t, "gates of one that joins a gang that runs", 0, len(replacement.Spec.SchedulingGates))
}

func TestSyncReleasesAGangThatIsComplete(t *testing.T) {
	tests := map[string]struct {
		pods      []client.Object
		scheduled bool
		needed    int32
		released  []string
	}{
		"one is missing":               {pods: []client.Object{newPod("a"), newPod("b")}, needed: 3},
		"all exist":                    {pods: []client.Object{newPod("a"), newPod("b"), newPod("c")}, needed: 3, released: []string{"a", "b", "c"}},
		"another gang's pod is nobody": {pods: []client.Object{newPod("a"), newPod("b"), newPod("z")}, needed: 3},
		"a pod of another namespace is nobody": {
			pods: []client.Object{newPod("a"), newPod("b"), newPod("c", func(p *corev1.Pod) { p.Namespace = "other" })}, needed: 3,
		},
		"one is on its way out": {pods: []client.Object{newPod("a"), newPod("b"), newPod("c", terminating)}, needed: 3},
		// A leader that ended halfway through leaves the rest to the next one.
		"some were released and have ended": {
			pods:   []client.Object{newPod("a", released, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), newPod("b", released), newPod("c")},
			needed: 3, released: []string{"c"},
		},
		"it runs: a replacement waits for nobody": {pods: []client.Object{newPod("a", released), newPod("c")}, scheduled: true, needed: 3, released: []string{"c"}},
		"members that have finished are not waited for": {
			pods: []client.Object{newPod("b"), newPod("c")}, needed: 2, released: []string{"b", "c"},
		},
		"nobody is held": {pods: []client.Object{newPod("a", released), newPod("b", released), newPod("c", released)}, needed: 3},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var patched []string
			record := interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				body, err := patch.Data(obj)
				expect(t, "patch of "+obj.GetName(), `{"metadata":{"uid":"uid-`+obj.GetName()+`"},"spec":{"schedulingGates":[{"$patch":"delete","name":"grove.io/podgang-pending-creation"}]}}`, string(body))
				return errors.Join(err, c.Patch(ctx, obj, patch, opts...))
			}}
			c := fake.NewClientBuilder().WithObjects(tc.pods...).WithInterceptorFuncs(record).Build()
			if err := New(c).Sync(t.Context(), newGang(tc.scheduled), gang.Needed{Members: tc.needed}); err != nil {
				t.Fatal(err)
			}
			for _, before := range tc.pods {
				was, pod := before.(*corev1.Pod), &corev1.Pod{}
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(was), pod); err != nil {
					t.Fatal(err)
				}
				if isHeld(was) && !isHeld(pod) {
					patched = append(patched, pod.Name)
					expect(t, "gates of others", []corev1.PodSchedulingGate{{Name: "example.com/mine"}}, pod.Spec.SchedulingGates)
				}
			}
			slices.Sort(patched)
			expect(t, "released pods", tc.released, patched)
		})
	}
}

func TestReleaseOfAPodThatHasGoneIsNoFailure(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"gone":                     {apierrors.NewNotFound(pods, "a"), false},
		"another has its name now": {apierrors.NewConflict(pods, "a", errors.New("uid")), false},
		"refused":                  {apierrors.NewForbidden(pods, "a", errors.New("no")), true},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return tc.err
				},
			}).Build()
			err := Release(t.Context(), c, newPod("a").(*corev1.Pod))
			expect(t, "failed", tc.want, err != nil)
		})
	}
}

func TestObserveHasThePodsWords(t *testing.T) {
	says := func(reason, message string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message}}
		}
	}
	placed := func(p *corev1.Pod) { p.Spec.NodeName = "node" }
	tests := map[string]struct {
		pods []client.Object
		want scheduling.Observation
	}{
		"none exists": {want: scheduling.Observation{Untold: true}},
		"all are held": {
			// The API server says of a gated pod that it is not scheduled, which says nothing new.
			pods: []client.Object{newPod("a", says("SchedulingGated", "gated")), newPod("b")}, want: scheduling.Observation{Untold: true, Gated: 2},
		},
		"one has no room": {
			pods: []client.Object{newPod("a", released, placed), newPod("b", released, says("Unschedulable", "0/4 nodes are available"))},
			want: scheduling.Observation{Untold: true, Why: []schedulerv1alpha1.UnschedulableExplanation{{Reason: "NotEnoughResources", Message: "pod b: 0/4 nodes are available"}}},
		},
		"the scheduler fails": {
			pods: []client.Object{newPod("a", released, says("SchedulerError", "boom"))},
			want: scheduling.Observation{Untold: true, Why: []schedulerv1alpha1.UnschedulableExplanation{{Reason: "SchedulerError", Message: "pod a: boom"}}},
		},
		"one that has a node had none before": {
			pods: []client.Object{newPod("a", released, placed, says("Unschedulable", "0/4 nodes are available"))}, want: scheduling.Observation{Untold: true},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := New(fake.NewClientBuilder().WithObjects(tc.pods...).Build()).Observe(t.Context(), newGang(false))
			if err != nil {
				t.Fatal(err)
			}
			expect(t, "observation", tc.want, got)
		})
	}
}

func TestSuchSchedulersAreToldOfNoTopology(t *testing.T) {
	if support := New(nil).Topology(); support.Gangs || support.Parts || support.Fixed || support.Lacks == "" {
		t.Errorf("support is %+v", support)
	}
}
