package podgang

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/scheduling"
)

func expect(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

var request = reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "llm-0"}}

// backend is a scheduler that says what a test wants it to.
type backend struct {
	syncErr, observeErr error
	observation         scheduling.Observation
	calls               []string
	needed              int32
}

func (*backend) Name() string                                           { return "fake" }
func (*backend) Topology() gang.TopologySupport                         { return gang.TopologySupport{} }
func (*backend) PreparePod(*corev1.Pod, *schedulerv1alpha1.PodGang)     {}
func (*backend) PrepareSurplus(*corev1.Pod, *schedulerv1alpha1.PodGang) {}

func (b *backend) Sync(_ context.Context, _ *schedulerv1alpha1.PodGang, needed gang.Needed) error {
	b.calls, b.needed = append(b.calls, "sync"), needed.Members
	return b.syncErr
}

func (b *backend) Observe(context.Context, *schedulerv1alpha1.PodGang) (scheduling.Observation, error) {
	b.calls = append(b.calls, "observe")
	return b.observation, b.observeErr
}

func newGang(change func(*schedulerv1alpha1.PodGang)) *schedulerv1alpha1.PodGang {
	podGang := &schedulerv1alpha1.PodGang{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "llm-0", Labels: map[string]string{labels.RestartAttempt: "0"}},
		Spec:       schedulerv1alpha1.PodGangSpec{PodGroups: []schedulerv1alpha1.PodGangPodGroup{{Name: "llm-0-worker", MinReplicas: 1}}},
	}
	if change != nil {
		change(podGang)
	}
	return podGang
}

func newClique(change func(*grovev1alpha1.PodClique)) *grovev1alpha1.PodClique {
	clique := &grovev1alpha1.PodClique{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "llm-0-worker", Labels: map[string]string{labels.PodGang: "llm-0"}},
		Spec:       grovev1alpha1.PodCliqueSpec{Replicas: 1, MinAvailable: ptr.To[int32](1)},
		Status:     grovev1alpha1.PodCliqueStatus{Replicas: 1, ScheduledReplicas: 1},
	}
	if change != nil {
		change(clique)
	}
	return clique
}

func TestReconcile(t *testing.T) {
	going := func(g *schedulerv1alpha1.PodGang) {
		g.DeletionTimestamp, g.Finalizers = ptr.To(metav1.Now()), []string{"x/y"}
	}
	refused := apierrors.NewForbidden(schema.GroupResource{Group: "scheduling.k8s.io", Resource: "podgroups"}, "llm-0", errors.New("not here"))
	tests := map[string]struct {
		objects []client.Object
		// backend is nil where the cluster does not schedule gangs.
		backend *backend
		want    string
		calls   []string
		wantErr string
	}{
		"gone":                    {backend: &backend{}},
		"on its way out":          {objects: []client.Object{newGang(going)}, backend: &backend{}},
		"its clique is not there": {objects: []client.Object{newGang(nil)}, backend: &backend{}, want: "WaitingForPods: 0 of 1 pods exist", calls: []string{"sync", "observe"}},
		"the scheduler's words are told": {
			objects: []client.Object{newGang(nil), newClique(nil)}, backend: &backend{observation: scheduling.Observation{Why: []schedulerv1alpha1.UnschedulableExplanation{{Reason: "NotEnoughResources", Message: "0/4 nodes"}}}},
			want: "NotEnoughResources: 0/4 nodes", calls: []string{"sync", "observe"},
		},
		"the scheduler has placed it": {
			objects: []client.Object{newGang(nil), newClique(nil)}, backend: &backend{observation: scheduling.Observation{Scheduled: true}},
			want: "Scheduled: all 1 pods have been placed", calls: []string{"sync", "observe"},
		},
		"its group cannot be made": {
			objects: []client.Object{newGang(nil)}, backend: &backend{syncErr: errors.New("boom")}, calls: []string{"sync"}, wantErr: "boom",
		},
		"its group is refused": {
			objects: []client.Object{newGang(nil), newClique(nil)},
			backend: &backend{syncErr: fmt.Errorf("create it: %w", refused), observation: scheduling.Observation{Why: []schedulerv1alpha1.UnschedulableExplanation{{Reason: schedulerv1alpha1.ReasonPodGroupMissing, Message: "it is missing"}}}},
			want:    "GroupObjectMissing: it is missing: create it: " + refused.Error(), calls: []string{"sync", "observe"}, wantErr: "create it: " + refused.Error(),
		},
		"its group is there, and a change of it is refused": {
			objects: []client.Object{newGang(nil), newClique(nil)},
			backend: &backend{syncErr: refused, observation: scheduling.Observation{Why: []schedulerv1alpha1.UnschedulableExplanation{{Reason: "NotEnoughResources", Message: "0/4 nodes"}}}},
			want:    "NotEnoughResources: 0/4 nodes", calls: []string{"sync", "observe"}, wantErr: refused.Error(),
		},
		"its group cannot be read": {
			objects: []client.Object{newGang(nil)}, backend: &backend{observeErr: errors.New("boom")}, calls: []string{"sync", "observe"}, wantErr: "boom",
		},
		"the scheduler does not tell": {
			objects: []client.Object{newGang(nil), newClique(nil)}, backend: &backend{observation: scheduling.Observation{Untold: true}},
			want: "Scheduled: all 1 pods have been placed", calls: []string{"sync", "observe"},
		},
		"the scheduler does not tell, and a pod waits": {
			objects: []client.Object{newGang(nil), newClique(func(c *grovev1alpha1.PodClique) { c.Status.ScheduledReplicas = 0 })},
			backend: &backend{observation: scheduling.Observation{Untold: true}},
			want:    "GangSchedulingUnsupported: the scheduler places pods one by one: 0 of 1 have a node", calls: []string{"sync", "observe"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{grovev1alpha1.AddToScheme, schedulerv1alpha1.AddToScheme} {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&schedulerv1alpha1.PodGang{}).WithObjects(tc.objects...).Build()
			r := &Reconciler{Client: c, Clock: clocktesting.NewFakeClock(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC))}
			var calls []string
			r.Backends = &scheduling.Backends{Others: tc.backend}
			_, err := r.Reconcile(t.Context(), request)
			if tc.backend != nil {
				calls = tc.backend.calls
			}
			gotErr := ""
			if err != nil {
				gotErr = err.Error()
			}
			expect(t, "error", tc.wantErr, gotErr)
			expect(t, "calls", tc.calls, calls)
			if len(calls) > 0 {
				expect(t, "members needed", int32(1), tc.backend.needed)
			}
			podGang := &schedulerv1alpha1.PodGang{}
			if err := c.Get(t.Context(), request.NamespacedName, podGang); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			got := ""
			if condition := meta.FindStatusCondition(podGang.Status.Conditions, schedulerv1alpha1.PodGangConditionScheduled); condition != nil {
				got = condition.Reason + ": " + condition.Message
			}
			expect(t, "scheduled", tc.want, got)
			if err != nil || podGang.Name == "" {
				return
			}
			if _, err := r.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			again := &schedulerv1alpha1.PodGang{}
			if err := c.Get(t.Context(), request.NamespacedName, again); err != nil {
				t.Fatal(err)
			}
			expect(t, "version when nothing has changed", podGang.ResourceVersion, again.ResourceVersion)
		})
	}
}

func TestWhichUpdatesOfACliqueMatter(t *testing.T) {
	tests := map[string]struct {
		change func(*grovev1alpha1.PodClique)
		want   bool
	}{
		"nothing":             {nil, false},
		"pods exist":          {func(c *grovev1alpha1.PodClique) { c.Status.Replicas = 2 }, true},
		"pods have nodes":     {func(c *grovev1alpha1.PodClique) { c.Status.ScheduledReplicas = 0 }, true},
		"a new attempt":       {func(c *grovev1alpha1.PodClique) { c.Spec.Attempt, c.Status.ObservedAttempt = 1, 1 }, true},
		"pods have finished":  {func(c *grovev1alpha1.PodClique) { c.Status.CompletedIndexes = "0" }, true},
		"it is available":     {func(c *grovev1alpha1.PodClique) { c.Status.ReadyReplicas = 1 }, true},
		"what is not counted": {func(c *grovev1alpha1.PodClique) { c.Status.RunningReplicas, c.Status.UpdatedReplicas = 1, 1 }, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			expect(t, "matters", tc.want, membersChanged().Update(event.TypedUpdateEvent[*grovev1alpha1.PodClique]{ObjectOld: newClique(nil), ObjectNew: newClique(tc.change)}))
		})
	}
}

func TestTheGangOfAClique(t *testing.T) {
	clique := newClique(nil)
	expect(t, "of a member", []reconcile.Request{request}, gangOfClique(t.Context(), clique))
	clique.Labels = nil
	expect(t, "of a clique without a gang", []reconcile.Request(nil), gangOfClique(t.Context(), clique))
}
