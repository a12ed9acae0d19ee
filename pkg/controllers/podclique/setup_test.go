package podclique

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

func namesOf(requests []reconcile.Request) []string {
	var out []string
	for _, request := range requests {
		out = append(out, request.Name)
	}
	slices.SortFunc(out, strings.Compare)
	return out
}

// Others wait for the last old pod of a clique, and for nothing else that it does.
func TestWhichUpdatesOfACliqueMatterToItsSiblings(t *testing.T) {
	clique := func(observed, old, running int32) *grovev1alpha1.PodClique {
		return newClique(func(c *grovev1alpha1.PodClique) {
			c.Status.ObservedAttempt, c.Status.OldReplicas, c.Status.RunningReplicas = observed, old, running
		})
	}
	tests := map[string]struct {
		before, after *grovev1alpha1.PodClique
		want          bool
	}{
		"the last old pod has gone":            {clique(1, 1, 0), clique(1, 0, 0), true},
		"one of several has":                   {clique(1, 2, 0), clique(1, 1, 0), false},
		"it begins an attempt, with old pods":  {clique(0, 0, 3), clique(1, 3, 0), false},
		"it begins an attempt, and has none":   {clique(0, 0, 0), clique(1, 0, 0), true},
		"its pods start":                       {clique(1, 0, 0), clique(1, 0, 3), false},
		"the old ones of two attempts are one": {clique(1, 3, 0), clique(2, 0, 0), true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			expect(t, "matters", tc.want, drained().Update(event.TypedUpdateEvent[*grovev1alpha1.PodClique]{ObjectOld: tc.before, ObjectNew: tc.after}))
		})
	}
	expect(t, "one that is made", false, drained().Create(event.TypedCreateEvent[*grovev1alpha1.PodClique]{Object: clique(0, 0, 0)}))
	expect(t, "one that is gone", true, drained().Delete(event.TypedDeleteEvent[*grovev1alpha1.PodClique]{Object: clique(1, 1, 0)}))
}

func TestTheSiblingsOfACliqueAreThoseInARestart(t *testing.T) {
	ofReplica := func(name, replica string) *grovev1alpha1.PodClique {
		return sibling(name, func(c *grovev1alpha1.PodClique) { c.Labels[labels.ReplicaIndex] = replica })
	}
	c := &cluster{t: t, objects: []client.Object{
		newClique(inAttempt(1)),
		sibling("waits", nil),
		sibling("was-never-made", func(c *grovev1alpha1.PodClique) { c.Status.CreatedAttempt = nil }),
		sibling("is-complete", func(c *grovev1alpha1.PodClique) { c.Status.CreatedAttempt = ptr.To[int32](1) }),
		sibling("is-in-its-first-attempt", func(c *grovev1alpha1.PodClique) { c.Spec.Attempt, c.Status.CreatedAttempt = 0, nil }),
		ofReplica("of-another-replica", "1"),
		sibling("of-another-set", func(c *grovev1alpha1.PodClique) { c.OwnerReferences[0].UID = "other" }),
	}}
	r := c.reconciler()
	expect(t, "requests", []string{"waits", "was-never-made"}, namesOf(r.siblings(t.Context(), newClique(inAttempt(1)))))
	member := newClique(func(c *grovev1alpha1.PodClique) {
		// The set owns a member beside the group that controls it.
		c.OwnerReferences = append([]metav1.OwnerReference{{APIVersion: "grove.io/v1alpha1", Kind: "PodCliqueScalingGroup", Name: "g", UID: "g", Controller: ptr.To(true)}}, c.OwnerReferences...)
	})
	expect(t, "of a member", []string{"waits", "was-never-made"}, namesOf(r.siblings(t.Context(), member)))
	unlabelled := newClique(func(c *grovev1alpha1.PodClique) { delete(c.Labels, labels.ReplicaIndex) })
	expect(t, "of a clique of no replica", []string(nil), namesOf(r.siblings(t.Context(), unlabelled)))
}

func TestWhichUpdatesOfASetMatterToItsCliques(t *testing.T) {
	tests := map[string]struct {
		after func(*grovev1alpha1.PodCliqueSet)
		want  bool
	}{
		"counters":   {func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Status.AvailablePods, pcs.ResourceVersion = 7, "8" }, false},
		"the spec":   {func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Generation = 1 }, true},
		"an attempt": {replicaInAttempt(1), true},
		"a failure":  {failing, true},
		"a success":  {func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Status.Phase = grovev1alpha1.PodCliqueSetSucceeded }, true},
		"a deletion": {deletedSet, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			expect(t, "matters", tc.want, parentChanged().Update(event.TypedUpdateEvent[*grovev1alpha1.PodCliqueSet]{ObjectOld: newSet(nil), ObjectNew: newSet(tc.after)}))
		})
	}
}

func TestWhichUpdatesOfAGangMatterToItsCliques(t *testing.T) {
	tests := map[string]struct {
		before, after func(*schedulerv1alpha1.PodGang)
		want          bool
	}{
		"counters":          {nil, func(g *schedulerv1alpha1.PodGang) { g.ResourceVersion = "8" }, false},
		"the pods it names": {nil, func(g *schedulerv1alpha1.PodGang) { g.Generation = 1 }, true},
		"its attempt":       {nil, func(g *schedulerv1alpha1.PodGang) { g.Labels[labels.RestartAttempt] = "1" }, true},
		"its scheduler has been told of it": {
			func(g *schedulerv1alpha1.PodGang) { g.Generation, g.Status.ObservedGeneration = 2, ptr.To[int64](1) },
			func(g *schedulerv1alpha1.PodGang) { g.Generation, g.Status.ObservedGeneration = 2, ptr.To[int64](2) }, true,
		},
		"it is scheduled": {nil, gangScheduled, true},
		"it stays so":     {gangScheduled, gangScheduled, false},
		"it is Ready": {nil, func(g *schedulerv1alpha1.PodGang) {
			meta.SetStatusCondition(&g.Status.Conditions, metav1.Condition{Type: schedulerv1alpha1.PodGangConditionReady, Status: metav1.ConditionTrue, Reason: "R"})
		}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			expect(t, "matters", tc.want, gangChanged().Update(event.TypedUpdateEvent[*schedulerv1alpha1.PodGang]{ObjectOld: newGang(tc.before), ObjectNew: newGang(tc.after)}))
		})
	}
}

func TestTheCliquesOfGangsAndSets(t *testing.T) {
	inGang := func(name, own, base, replica string) *grovev1alpha1.PodClique {
		return sibling(name, func(c *grovev1alpha1.PodClique) {
			c.Labels[labels.PodGang], c.Labels[labels.ReplicaIndex] = own, replica
			if base != "" {
				c.Labels[labels.BasePodGang] = base
			}
		})
	}
	c := &cluster{t: t, objects: []client.Object{
		inGang("base", "llm-0", "", "0"), inGang("scaled", "llm-0-g-0", "llm-0", "0"), inGang("of-another-replica", "llm-1", "", "1"),
		sibling("of-another-set", func(c *grovev1alpha1.PodClique) { c.OwnerReferences[0].UID = "other" }),
	}}
	r := c.reconciler()
	gang := func(name, replica string) *schedulerv1alpha1.PodGang {
		return newGang(func(g *schedulerv1alpha1.PodGang) {
			g.Name, g.Labels[labels.ReplicaIndex] = name, replica
			g.OwnerReferences = []metav1.OwnerReference{{APIVersion: "grove.io/v1alpha1", Kind: "PodCliqueSet", Name: "llm", UID: "set"}}
		})
	}
	expect(t, "of a base gang, and those that wait for it", []string{"base", "scaled"}, namesOf(r.cliquesOfGang(t.Context(), gang("llm-0", "0"))))
	expect(t, "of a scaled gang", []string{"scaled"}, namesOf(r.cliquesOfGang(t.Context(), gang("llm-0-g-0", "0"))))
	expect(t, "of a gang that nothing owns", []string(nil), namesOf(r.cliquesOfGang(t.Context(), newGang(func(g *schedulerv1alpha1.PodGang) { g.Labels[labels.ReplicaIndex] = "0" }))))
	expect(t, "of a gang of no replica", []string(nil), namesOf(r.cliquesOfGang(t.Context(), gang("llm-0", "x"))))
	expect(t, "of a set", []string{"base", "of-another-replica", "scaled"}, namesOf(cliquesOf[*grovev1alpha1.PodCliqueSet](r.Cache)(t.Context(), newSet(nil))))
}
