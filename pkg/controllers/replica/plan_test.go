package replica

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
)

// A replica is made in as many passes as objects depend on the UIDs of others.
func TestANewReplicaIsMadeStepByStep(t *testing.T) {
	pcs := newSet()
	have := nothing()
	steps := []writes{
		{Create: []string{"Service llm-1", "PodCliqueScalingGroup llm-1-decode", "PodClique llm-1-router"}},
		{Create: []string{"PodClique llm-1-decode-0-worker", "PodClique llm-1-decode-1-worker"}},
		{Create: []string{"PodGang llm-1", "PodGang llm-1-decode-0"}},
		{},
	}
	for i, want := range steps {
		p := planReplica(pcs, 1, have)
		expect(t, fmt.Sprintf("pass %d", i), want, writesOf(p))
		have.add(p.create...)
	}
}

func TestPlanReplica(t *testing.T) {
	const group, base, scaled = "llm-1-decode", "llm-1", "llm-1-decode-0"
	scaleTo := func(n int32) func(observed) observed {
		return func(o observed) observed {
			o.groups[group].Spec.Replicas = n
			return o
		}
	}
	tests := map[string]struct {
		set *grovev1alpha1.PodCliqueSet
		// change is made to a replica that is complete.
		change func(observed) observed
		want   writes
	}{
		"a complete replica": {set: newSet(), want: writes{}},
		"a Service is missing": {
			set: newSet(), change: func(o observed) observed { return o.without("Service", base) }, want: writes{Create: []string{"Service llm-1"}},
		},
		"a standalone clique is missing": {
			set: newSet(), change: func(o observed) observed { return o.without("PodClique", "llm-1-router") }, want: writes{Create: []string{"PodClique llm-1-router"}},
		},
		"a member is missing": {
			set: newSet(), change: func(o observed) observed { return o.without("PodClique", "llm-1-decode-1-worker") },
			want: writes{Create: []string{"PodClique llm-1-decode-1-worker"}},
		},
		"a base gang is missing": {
			set: newSet(), change: func(o observed) observed { return o.without("PodGang", base) }, want: writes{Create: []string{"PodGang llm-1"}},
		},
		"a gang waits for all its cliques": {
			set: newSet(), change: func(o observed) observed {
				return o.without("PodGang", base, scaled).without("PodClique", "llm-1-decode-0-worker")
			},
			want: writes{Create: []string{"PodClique llm-1-decode-0-worker", "PodGang llm-1-decode-0"}},
		},
		"whichever of them is missing": {
			set: newSet(), change: func(o observed) observed {
				return o.without("PodGang", base, scaled).without("PodClique", "llm-1-router")
			},
			want: writes{Create: []string{"PodClique llm-1-router", "PodGang llm-1-decode-0"}},
		},
		"also for one that is on its way out": {
			set: newSet(), change: func(o observed) observed {
				return o.without("PodGang", base, scaled).deleting("llm-1-decode-0-worker")
			},
			want: writes{Create: []string{"PodGang llm-1-decode-0"}},
		},
		"what is on its way out is awaited, not made": {
			set: newSet(), change: func(o observed) observed {
				return o.deleting(base, scaled, "llm-1-router", "llm-1-decode-1-worker")
			},
			want: writes{},
		},
		"a gang on its way out is not updated": {
			set: newSet(), change: func(o observed) observed {
				o.gangs[base].Spec.PriorityClassName = "low"
				return o.deleting(base)
			},
			want: writes{},
		},
		"scale-out of a group": {
			set: newSet(), change: scaleTo(4), want: writes{Create: []string{"PodClique llm-1-decode-2-worker", "PodClique llm-1-decode-3-worker"}},
		},
		"scale-in of a group: the gang is used until its cliques are gone": {
			set: newSet(), change: scaleTo(1), want: writes{Remove: []string{"PodClique llm-1-decode-1-worker"}},
		},
		"scale-in of a group, while the clique goes": {
			set: newSet(), change: func(o observed) observed { return scaleTo(1)(o).deleting("llm-1-decode-1-worker") }, want: writes{},
		},
		"scale-in of a group, when the clique is gone": {
			set: newSet(), change: func(o observed) observed { return scaleTo(1)(o).without("PodClique", "llm-1-decode-1-worker") },
			want: writes{Remove: []string{"PodGang llm-1-decode-0"}},
		},
		"a gang that goes already": {
			set: newSet(), change: func(o observed) observed {
				return scaleTo(1)(o).without("PodClique", "llm-1-decode-1-worker").deleting(scaled)
			},
			want: writes{},
		},
		"scale-in of the set: cliques first": {
			set:  newSet(func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Spec.Replicas = 1 }),
			want: writes{Remove: []string{"PodClique llm-1-decode-0-worker", "PodClique llm-1-decode-1-worker", "PodClique llm-1-router"}},
		},
		"deletion of the set: cliques first": {
			set:  newSet(deletedSet),
			want: writes{Remove: []string{"PodClique llm-1-decode-0-worker", "PodClique llm-1-decode-1-worker", "PodClique llm-1-router"}},
		},
		"each once": {
			set: newSet(deletedSet), change: func(o observed) observed { return o.deleting("llm-1-decode-0-worker") },
			want: writes{Remove: []string{"PodClique llm-1-decode-1-worker", "PodClique llm-1-router"}},
		},
		"while one of them is there, nothing else goes": {
			set: newSet(deletedSet), change: func(o observed) observed {
				return o.without("PodClique", "llm-1-decode-0-worker", "llm-1-decode-1-worker").deleting("llm-1-router")
			},
			want: writes{},
		},
		"then the rest": {
			set: newSet(deletedSet), change: func(o observed) observed {
				return o.without("PodClique", "llm-1-decode-0-worker", "llm-1-decode-1-worker", "llm-1-router").deleting(scaled)
			},
			want: writes{Remove: []string{"PodCliqueScalingGroup llm-1-decode", "PodGang llm-1", "Service llm-1"}},
		},
		"deletion goes before failure": {
			set:  newSet(deletedSet, failing),
			want: writes{Remove: []string{"PodClique llm-1-decode-0-worker", "PodClique llm-1-decode-1-worker", "PodClique llm-1-router"}},
		},
		"below a set that fails nothing is made, and nothing goes": {
			set: newSet(failing), change: func(o observed) observed {
				return o.without("Service", base).without("PodGang", base).without("PodClique", "llm-1-router").without("PodCliqueScalingGroup", group)
			},
			want: writes{},
		},
		"nor below one that has succeeded": {
			set: newSet(finished), change: func(o observed) observed {
				return o.without("Service", base).without("PodGang", base).without("PodClique", "llm-1-router").without("PodCliqueScalingGroup", group)
			},
			want: writes{},
		},
		"an attempt reaches the cliques and the gangs": {
			set: newSet(attemptOf(1, 1)),
			want: writes{Update: []string{
				"PodClique llm-1-router", "PodClique llm-1-decode-0-worker", "PodClique llm-1-decode-1-worker", "PodGang llm-1", "PodGang llm-1-decode-0",
			}},
		},
		"that of another replica does not": {set: newSet(attemptOf(0, 1)), want: writes{}},
		"the attempt of a copy reaches its cliques and its scaled gang": {
			set: newSet(), change: func(o observed) observed {
				o.groups[group].Status.ReplicaAttempts = []grovev1alpha1.ScalingGroupReplicaAttempt{{Index: 1, Attempt: 1}}
				return o
			},
			want: writes{Update: []string{"PodClique llm-1-decode-1-worker", "PodGang llm-1-decode-0"}},
		},
		"of a copy in the base gang it changes the names of the gang's pods": {
			set: newSet(), change: func(o observed) observed {
				o.groups[group].Status.ReplicaAttempts = []grovev1alpha1.ScalingGroupReplicaAttempt{{Index: 0, Attempt: 1}}
				return o
			},
			want: writes{Update: []string{"PodClique llm-1-decode-0-worker", "PodGang llm-1"}},
		},
		"a clique whose attempt is higher is left alone": {
			set: newSet(), change: func(o observed) observed {
				o.cliques["llm-1-router"].Spec.Attempt = 1
				return o.without("PodGang", base)
			},
			want: writes{Create: []string{"PodGang llm-1"}},
		},
		"a clique that goes is not updated": {
			set: newSet(attemptOf(1, 1)), change: func(o observed) observed { return o.deleting("llm-1-router") },
			want: writes{Update: []string{"PodClique llm-1-decode-0-worker", "PodClique llm-1-decode-1-worker", "PodGang llm-1-decode-0"}},
		},
		"a gang follows the size of its cliques": {
			set: newSet(), change: func(o observed) observed {
				o.cliques["llm-1-decode-0-worker"].Spec.Replicas = 1
				return o
			},
			want: writes{Update: []string{"PodGang llm-1"}},
		},
		"a gang follows the attempt though its pods do not change": {
			set: newSet(attemptOf(1, 1)), change: func(o observed) observed {
				o.add(planReplica(newSet(attemptOf(1, 1)), 1, o).update...)
				o.gangs[base].Labels[labels.RestartAttempt] = "0"
				return o
			},
			want: writes{Update: []string{"PodGang llm-1"}},
		},
		// The scaling group that was read is older than the gang.
		"a gang of a later attempt is left alone": {
			set: newSet(), change: func(o observed) observed {
				o.gangs[scaled].Labels[labels.RestartAttempt] = "7"
				o.gangs[scaled].Spec.PodGroups[0].PodReferences[0].Name = "of-attempt-7"
				return o
			},
			want: writes{},
		},
		"a replica whose groups are scaled to nothing needs no gang": {
			set: newSet(func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Spec.Template.Cliques = pcs.Spec.Template.Cliques[1:] }),
			change: func(o observed) observed {
				return scaleTo(0)(o).without("PodGang", base, scaled).without("PodClique", "llm-1-decode-0-worker", "llm-1-decode-1-worker")
			},
			want: writes{},
		},
		"a scaled clique is left as it was scaled": {
			set: newSet(), change: func(o observed) observed {
				o.cliques["llm-1-router"].Spec.Replicas = 5
				return o
			},
			want: writes{},
		},
		"a Service with another selector": {
			set: newSet(), change: func(o observed) observed {
				o.services[base].Spec.Selector = map[string]string{"x": "y"}
				return o
			},
			want: writes{Update: []string{"Service llm-1"}},
		},
		"a Service that does not publish what is not Ready": {
			set: newSet(), change: func(o observed) observed {
				o.services[base].Spec.PublishNotReadyAddresses = false
				return o
			},
			want: writes{Update: []string{"Service llm-1"}},
		},
		"what the server adds to a Service is left alone": {
			set: newSet(), change: func(o observed) observed {
				o.services[base].Spec.ClusterIPs = []string{"None"}
				o.services[base].Spec.Type = corev1.ServiceTypeClusterIP
				return o
			},
			want: writes{},
		},
		"a clique that the template does not have goes": {
			set: newSet(), change: func(o observed) observed {
				return o.add(&grovev1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Name: "llm-1-former"}})
			},
			want: writes{Remove: []string{"PodClique llm-1-former"}},
		},
		"once": {
			set: newSet(), change: func(o observed) observed {
				return o.add(&grovev1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Name: "llm-1-former"}}).deleting("llm-1-former")
			},
			want: writes{},
		},
		"a member of a group that the cache does not show stays": {
			set: newSet(withoutGroups, func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Spec.Template.Cliques = pcs.Spec.Template.Cliques[:1] }),
			change: func(o observed) observed {
				return o.add(&grovev1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{
					Name: "llm-1-decode-0-worker", Labels: map[string]string{labels.ScalingGroup: group, labels.PodGang: scaled},
				}}).add(&schedulerv1alpha1.PodGang{ObjectMeta: metav1.ObjectMeta{Name: scaled}})
			},
			want: writes{},
		},
		"members of a group that is deleted go": {
			set: newSet(), change: func(o observed) observed {
				return o.deleting(group).without("PodGang", base, scaled).without("PodClique", "llm-1-router")
			},
			want: writes{
				Create: []string{"PodClique llm-1-router"},
				Remove: []string{"PodClique llm-1-decode-0-worker", "PodClique llm-1-decode-1-worker"},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			// The replica was complete before anything happened to its set.
			have := allOf(t, newSet(func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Spec.Template = tc.set.Spec.Template }), 1)
			if tc.change != nil {
				have = tc.change(have)
			}
			expect(t, "writes", tc.want, writesOf(planReplica(tc.set, 1, have)))
		})
	}
}

// The cache may show the cliques of a replica and not its scaling groups: those could
// not be made, or are not seen yet. Absence from a cache proves nothing.
func TestAbsenceOfAScalingGroupDeletesNothing(t *testing.T) {
	have := allOf(t, newSet(), 1).without("PodCliqueScalingGroup", "llm-1-decode")
	p := planReplica(newSet(), 1, have)
	expect(t, "create", []string{"PodCliqueScalingGroup llm-1-decode"}, writesOf(p).Create)
	expect(t, "remove", []string(nil), writesOf(p).Remove)
}

func TestABaseGangIsNeverWithoutItsMembers(t *testing.T) {
	tests := map[string]struct {
		change func(observed) observed
		want   writes
	}{
		"the group could not be made": {
			func(o observed) observed {
				return o.without("PodCliqueScalingGroup", "llm-1-decode").without("PodClique", "llm-1-decode-0-worker", "llm-1-decode-1-worker").
					without("PodGang", "llm-1", "llm-1-decode-0")
			},
			writes{Create: []string{"PodCliqueScalingGroup llm-1-decode"}},
		},
		"the cache does not show the group": {
			func(o observed) observed { return o.without("PodCliqueScalingGroup", "llm-1-decode") },
			writes{Create: []string{"PodCliqueScalingGroup llm-1-decode"}},
		},
		"the group goes": {
			func(o observed) observed { return o.deleting("llm-1-decode") },
			writes{Remove: []string{"PodClique llm-1-decode-0-worker", "PodClique llm-1-decode-1-worker"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			expect(t, "writes", tc.want, writesOf(planReplica(newSet(), 1, tc.change(allOf(t, newSet(), 1)))))
		})
	}
}

func TestAnUpdateChangesWhatItIsFor(t *testing.T) {
	have := allOf(t, newSet(), 1)
	have.cliques["llm-1-router"].Spec.Replicas = 5
	have.cliques["llm-1-router"].ResourceVersion = "7"
	have.services["llm-1"].Spec.PublishNotReadyAddresses = false
	have.services["llm-1"].Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol}
	have.gangs["llm-1"].Labels["user"] = "kept"
	have.gangs["llm-1"].ResourceVersion = "8"
	wantClique := have.cliques["llm-1-router"].DeepCopy()
	wantClique.Spec.Attempt = 2
	wantService := have.services["llm-1"].DeepCopy()
	wantService.Spec.PublishNotReadyAddresses = true
	observedBefore := map[string]client.Object{
		"clique": have.cliques["llm-1-router"].DeepCopy(), "gang": have.gangs["llm-1"].DeepCopy(), "service": have.services["llm-1"].DeepCopy(),
	}

	updates := map[string]client.Object{}
	for _, obj := range planReplica(newSet(attemptOf(1, 2)), 1, have).update {
		updates[kindOf(obj)+" "+obj.GetName()] = obj
	}
	expect(t, "clique", client.Object(wantClique), updates["PodClique llm-1-router"])
	expect(t, "Service", client.Object(wantService), updates["Service llm-1"])
	podGang, ok := updates["PodGang llm-1"].(*schedulerv1alpha1.PodGang)
	if !ok {
		t.Fatalf("no update of the gang in %v", updates)
	}
	expect(t, "attempt of the gang", "2", podGang.Labels[labels.RestartAttempt])
	expect(t, "a user's label of the gang", "kept", podGang.Labels["user"])
	expect(t, "version of the gang", "8", podGang.ResourceVersion)
	expect(t, "the pods that the gang names", naming.Pod("llm-1-router", "uid-of-llm-1-router", 0, 2), podGang.Spec.PodGroups[0].PodReferences[0].Name)

	// What is observed is the cache's own.
	expect(t, "observed clique", observedBefore["clique"], client.Object(have.cliques["llm-1-router"]))
	expect(t, "observed gang", observedBefore["gang"], client.Object(have.gangs["llm-1"]))
	expect(t, "observed Service", observedBefore["service"], client.Object(have.services["llm-1"]))
}

// What the template says on a scaling group is not of its pods: it comes at once, with the size that
// the group has.
func TestAScalingGroupFollowsItsAnnotations(t *testing.T) {
	say := func(annotations map[string]string) setOption {
		return func(pcs *grovev1alpha1.PodCliqueSet) {
			pcs.Spec.Template.PodCliqueScalingGroups[0].Annotations = annotations
		}
	}
	tests := map[string]struct {
		set  *grovev1alpha1.PodCliqueSet
		want []string
	}{
		"the same":        {newSet(say(map[string]string{"group": "kept"})), nil},
		"another value":   {newSet(say(map[string]string{"group": "changed"})), []string{"llm-1-decode 5 map[group:changed]"}},
		"one more":        {newSet(say(map[string]string{"group": "kept", "more": "yes"})), []string{"llm-1-decode 5 map[group:kept more:yes]"}},
		"none any more":   {newSet(say(nil)), []string{"llm-1-decode 5 map[]"}},
		"a failing set":   {newSet(say(nil), failing), nil},
		"it is going":     {newSet(say(nil)), nil},
		"an empty map is": {newSet(say(map[string]string{})), []string{"llm-1-decode 5 map[]"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			have := allOf(t, newSet(), 1)
			group := have.groups["llm-1-decode"]
			group.Spec.Replicas = 5
			if name == "it is going" {
				have.deleting(group.Name)
			}
			before := group.DeepCopy()
			var got []string
			for _, obj := range planReplica(tc.set, 1, have).update {
				if updated, is := obj.(*grovev1alpha1.PodCliqueScalingGroup); is {
					got = append(got, fmt.Sprint(updated.Name, " ", updated.Spec.Replicas, " ", updated.Annotations))
					have.groups[updated.Name] = updated
				}
			}
			expect(t, "updates", tc.want, got)
			expect(t, "observed group", before, group)
			for _, obj := range planReplica(tc.set, 1, have).update {
				if _, is := obj.(*grovev1alpha1.PodCliqueScalingGroup); is {
					t.Error("the next pass changes it again")
				}
			}
		})
	}
}

func TestAgree(t *testing.T) {
	tests := map[string]struct {
		current *grovev1alpha1.PodCliqueSet
		want    bool
	}{
		"the same":                            {newSet(), true},
		"gone":                                {nil, false},
		"with another spec":                   {newSet(func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Generation = 1 }), false},
		"with another status alone":           {newSet(func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Status.AvailablePods = 4 }), true},
		"failing":                             {newSet(failing), false},
		"deleted":                             {newSet(deletedSet), false},
		"in another attempt":                  {newSet(attemptOf(1, 1)), false},
		"with another replica in another one": {newSet(attemptOf(0, 1)), true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { expect(t, "agree", tc.want, agree(newSet(), tc.current, 1)) })
	}
}

// Of an object that was made anew, or orphaned, since it was read, nothing is deleted.
func TestObjectsAreDeletedAsTheyWereSeen(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "uid", ResourceVersion: "7"}}
	expect(t, "preconditions", client.Preconditions{UID: ptr.To(types.UID("uid")), ResourceVersion: ptr.To("7")}, asSeen(service))
}

// A set of scaling groups alone, scaled to nothing, keeps its base gang: it was scheduled,
// and what is scaled out again joins it.
func TestABaseGangStaysThoughItsCliquesAreScaledAway(t *testing.T) {
	alone := func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Spec.Template.Cliques = pcs.Spec.Template.Cliques[1:] }
	have := allOf(t, newSet(alone), 1)
	have.groups["llm-1-decode"].Spec.Replicas = 0
	for _, name := range []string{"llm-1-decode-0-worker", "llm-1-decode-1-worker"} {
		delete(have.cliques, name)
	}
	expect(t, "plan", writes{Remove: []string{"PodGang llm-1-decode-0"}}, writesOf(planReplica(newSet(alone), 1, have)))
}
