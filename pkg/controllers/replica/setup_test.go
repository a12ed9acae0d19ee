package replica

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

// listed is a reader that lists Services.
type listed struct {
	client.Reader
	services []corev1.Service
	err      error
}

func (l listed) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*corev1.ServiceList).Items = l.services
	return l.err
}

func serviceOf(replica string) corev1.Service {
	return corev1.Service{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{labels.ReplicaIndex: replica}}}
}

// A replica above the size is looked at as long as something of it is there; its Service
// is the last to go.
func TestKeysOfASetAreItsReplicasAndThoseThatItHad(t *testing.T) {
	key := func(replica int32) Key {
		return Key{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "llm"}, UID: "set-uid", Replica: replica}
	}
	tests := map[string]struct {
		reader listed
		want   []Key
	}{
		"new":             {listed{}, []Key{key(0), key(1)}},
		"complete":        {listed{services: []corev1.Service{serviceOf("0"), serviceOf("1")}}, []Key{key(0), key(1)}},
		"after scale-in":  {listed{services: []corev1.Service{serviceOf("1"), serviceOf("2"), serviceOf("5")}}, []Key{key(0), key(1), key(2), key(5)}},
		"without a label": {listed{services: []corev1.Service{{}, serviceOf("x")}}, []Key{key(0), key(1)}},
		"no list":         {listed{err: errors.New("boom")}, []Key{key(0), key(1)}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			expect(t, "keys", tc.want, (&Reconciler{Cache: tc.reader}).keysOfSet(t.Context(), newSet()))
		})
	}
}

func TestKeyOfAChild(t *testing.T) {
	set := metav1.OwnerReference{APIVersion: "grove.io/v1alpha1", Kind: "PodCliqueSet", Name: "llm", UID: "set-uid"}
	group := metav1.OwnerReference{APIVersion: "grove.io/v1alpha1", Kind: "PodCliqueScalingGroup", Name: "g", UID: "g", Controller: ptr.To(true)}
	child := func(replica string, owners ...metav1.OwnerReference) *grovev1alpha1.PodClique {
		return &grovev1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Labels: map[string]string{labels.ReplicaIndex: replica}, OwnerReferences: owners}}
	}
	want := []Key{{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "llm"}, UID: "set-uid", Replica: 3}}
	foreign := set
	foreign.APIVersion = "example.com/v1"
	tests := map[string]struct {
		child *grovev1alpha1.PodClique
		want  []Key
	}{
		"of a set":                       {child("3", set), want},
		"of a scaling group and its set": {child("3", group, set), want},
		"of a scaling group alone":       {child("3", group), nil},
		"of nothing":                     {child("3"), nil},
		"of another kind of that name":   {child("3", foreign), nil},
		"of no replica":                  {child("x", set), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { expect(t, "keys", tc.want, keyOfChild(t.Context(), tc.child)) })
	}
}

func TestWhichUpdatesOfASetMatter(t *testing.T) {
	tests := map[string]struct {
		after *grovev1alpha1.PodCliqueSet
		want  bool
	}{
		"counters":   {newSet(func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Status.AvailablePods = 7 }), false},
		"the spec":   {newSet(func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Generation = 1 }), true},
		"a failure":  {newSet(failing), true},
		"a success":  {newSet(finished), true},
		"a deletion": {newSet(deletedSet), true},
		"an attempt": {newSet(attemptOf(1, 1)), true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			expect(t, "matters", tc.want, setChanged().Update(event.TypedUpdateEvent[*grovev1alpha1.PodCliqueSet]{ObjectOld: newSet(), ObjectNew: tc.after}))
		})
	}
}

func TestWhichUpdatesOfAChildMatter(t *testing.T) {
	child := func(change func(*grovev1alpha1.PodClique)) *grovev1alpha1.PodClique {
		clique := &grovev1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{labels.RestartAttempt: "0"}}}
		if change != nil {
			change(clique)
		}
		return clique
	}
	tests := map[string]struct {
		after *grovev1alpha1.PodClique
		want  bool
	}{
		"counters":       {child(func(c *grovev1alpha1.PodClique) { c.Status.Replicas, c.ResourceVersion = 7, "8" }), false},
		"the spec":       {child(func(c *grovev1alpha1.PodClique) { c.Generation = 1 }), true},
		"a deletion":     {child(func(c *grovev1alpha1.PodClique) { c.DeletionTimestamp = ptr.To(metav1.Now()) }), true},
		"its attempt":    {child(func(c *grovev1alpha1.PodClique) { c.Labels[labels.RestartAttempt] = "1" }), true},
		"a user's label": {child(func(c *grovev1alpha1.PodClique) { c.Labels["x"] = "x" }), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := childChanged[*grovev1alpha1.PodClique]().Update(event.TypedUpdateEvent[*grovev1alpha1.PodClique]{ObjectOld: child(nil), ObjectNew: tc.after})
			expect(t, "matters", tc.want, got)
		})
	}
}

// A copy that is recycled changes the plan though no spec changes; what else a group's
// status tells does not.
func TestWhichUpdatesOfAScalingGroupMatter(t *testing.T) {
	scalingGroup := func(change func(*grovev1alpha1.PodCliqueScalingGroup)) *grovev1alpha1.PodCliqueScalingGroup {
		out := &grovev1alpha1.PodCliqueScalingGroup{Status: grovev1alpha1.PodCliqueScalingGroupStatus{
			ReplicaAttempts: []grovev1alpha1.ScalingGroupReplicaAttempt{{Index: 1, Attempt: 1}},
		}}
		if change != nil {
			change(out)
		}
		return out
	}
	tests := map[string]struct {
		after func(*grovev1alpha1.PodCliqueScalingGroup)
		want  bool
	}{
		"counters":           {func(g *grovev1alpha1.PodCliqueScalingGroup) { g.Status.AvailableReplicas, g.ResourceVersion = 7, "8" }, false},
		"a condition":        {func(g *grovev1alpha1.PodCliqueScalingGroup) { g.Status.Conditions = []metav1.Condition{{Type: "T"}} }, false},
		"the size":           {func(g *grovev1alpha1.PodCliqueScalingGroup) { g.Generation = 1 }, true},
		"a deletion":         {func(g *grovev1alpha1.PodCliqueScalingGroup) { g.DeletionTimestamp = ptr.To(metav1.Now()) }, true},
		"a copy is recycled": {func(g *grovev1alpha1.PodCliqueScalingGroup) { g.Status.ReplicaAttempts[0].Attempt = 2 }, true},
		"another copy is, first": {func(g *grovev1alpha1.PodCliqueScalingGroup) {
			g.Status.ReplicaAttempts = append(g.Status.ReplicaAttempts, grovev1alpha1.ScalingGroupReplicaAttempt{Index: 2, Attempt: 1})
		}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			expect(t, "matters", tc.want, groupChanged().Update(event.TypedUpdateEvent[*grovev1alpha1.PodCliqueScalingGroup]{ObjectOld: scalingGroup(nil), ObjectNew: scalingGroup(tc.after)}))
		})
	}
}

// A Service has no generation that would tell of a change.
func TestWhichUpdatesOfAServiceMatter(t *testing.T) {
	tests := map[string]struct {
		change func(*corev1.Service)
		want   bool
	}{
		"its revision":         {func(s *corev1.Service) { s.ResourceVersion = "8" }, false},
		"an annotation":        {func(s *corev1.Service) { s.Annotations = map[string]string{"a": "b"} }, false},
		"its status":           {func(s *corev1.Service) { s.Status.Conditions = []metav1.Condition{{Type: "T"}} }, false},
		"whom it selects":      {func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "other"} }, true},
		"whether it publishes": {func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = false }, true},
		"whose it is":          {func(s *corev1.Service) { s.Labels[labels.ReplicaIndex] = "7" }, true},
		"a deletion":           {func(s *corev1.Service) { s.DeletionTimestamp = ptr.To(metav1.Now()) }, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before, after := desiredService(newSet(), 1), desiredService(newSet(), 1)
			tc.change(after)
			expect(t, "is heard", tc.want, Hears(before, after, false))
		})
	}
}
