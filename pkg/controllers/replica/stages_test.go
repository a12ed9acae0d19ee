package replica

import (
	"testing"

	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
)

// staged lets the cliques router, leader and worker start one after the other; leader and
// worker are a scaling group of two copies, of which one is in the base gang.
func staged(pcs *grovev1alpha1.PodCliqueSet) {
	pcs.Spec.StartupPolicy = &grovev1alpha1.StartupPolicy{StartupPolicyOrder: grovev1alpha1.StartupPolicyInOrder}
	cliques := pcs.Spec.Template.Cliques
	leader := *cliques[1].DeepCopy()
	leader.Name, leader.Spec.Replicas, leader.Spec.MinAvailable = "leader", 1, ptr.To[int32](1)
	pcs.Spec.Template.Cliques = []grovev1alpha1.PodCliqueTemplateSpec{cliques[0], leader, cliques[1]}
	pcs.Spec.Template.PodCliqueScalingGroups[0].CliqueNames = []string{"leader", "worker"}
}

func open(stages ...string) setOption {
	return func(pcs *grovev1alpha1.PodCliqueSet) {
		if len(pcs.Status.ReplicaStatuses) == 0 {
			pcs.Status.ReplicaStatuses = []grovev1alpha1.PodCliqueSetReplicaStatus{{Index: 1}}
		}
		pcs.Status.ReplicaStatuses[0].OpenStages = stages
	}
}

// ready makes all pods of cliques ready in the attempt that they want.
func (o observed) ready(names ...string) observed {
	for _, name := range names {
		clique := o.cliques[name]
		clique.Status.ObservedAttempt = clique.Spec.Attempt
		clique.Status.Replicas, clique.Status.ReadyReplicas, clique.Status.CreatedReplicas = clique.Spec.Replicas, clique.Spec.Replicas, clique.Spec.Replicas
	}
	return o
}

func TestAStageIsMadeWhenItIsOpen(t *testing.T) {
	have := nothing()
	for _, step := range []struct {
		what string
		open []string
		want writes
	}{
		{"at first", nil, writes{Create: []string{"Service llm-1", "PodCliqueScalingGroup llm-1-decode", "PodClique llm-1-router"}}},
		{"the gang of the first stage", []string{"router"}, writes{Create: []string{"PodGang llm-1-router"}}},
		{"and no more", []string{"router"}, writes{}},
		{"the next stage", []string{"router", "leader"}, writes{Create: []string{"PodClique llm-1-decode-0-leader", "PodClique llm-1-decode-1-leader"}}},
		{"its gangs", []string{"router", "leader"}, writes{Create: []string{"PodGang llm-1-leader", "PodGang llm-1-decode-0-leader"}}},
		{"and no more than that", []string{"router", "leader"}, writes{}},
	} {
		p := planReplica(newSet(staged, open(step.open...)), 1, have)
		expect(t, step.what, step.want, writesOf(p))
		have.add(p.create...)
	}
	scaled := have.gangs["llm-1-decode-0-leader"]
	if base := scaled.Labels["grove.io/base-podgang"]; base != "llm-1-leader" {
		t.Errorf("the gang of a further copy waits for %q", base)
	}

	// The copies go on each for itself.
	have.ready("llm-1-router", "llm-1-decode-0-leader")
	all := newSet(staged, open("router", "leader", "worker"))
	have.add(planReplica(all, 1, have).create...)
	expect(t, "one copy is ready", writes{Create: []string{"PodGang llm-1-worker"}}, writesOf(planReplica(all, 1, have)))
	have.add(planReplica(all, 1, have).create...)
	have.ready("llm-1-decode-1-leader")
	expect(t, "the other copy is ready", writes{Create: []string{"PodGang llm-1-decode-0-worker"}}, writesOf(planReplica(all, 1, have)))
}

// stagedReplica is one that has come to its end in order.
func stagedReplica(t *testing.T) observed {
	t.Helper()
	have, all := nothing(), newSet(staged, open("router", "leader", "worker"))
	for range 6 {
		p := planReplica(all, 1, have)
		have.add(p.create...)
		for name := range have.cliques {
			have.ready(name)
		}
	}
	return have
}

func TestARestartReplaysTheOrder(t *testing.T) {
	have := stagedReplica(t)
	again := newSet(staged, attemptOf(1, 1), open("router"))
	p := planReplica(again, 1, have)
	expect(t, "all cliques begin anew, and the gang of the first stage", writes{Update: []string{
		"PodClique llm-1-router", "PodClique llm-1-decode-0-leader", "PodClique llm-1-decode-1-leader", "PodClique llm-1-decode-0-worker", "PodClique llm-1-decode-1-worker",
		"PodGang llm-1-router",
	}}, writesOf(p))
	have.add(p.update...)
	expect(t, "the others are left as they are", writes{}, writesOf(planReplica(again, 1, have)))
	open("router", "leader")(again)
	expect(t, "until their stage is open", writes{Update: []string{"PodGang llm-1-leader", "PodGang llm-1-decode-0-leader"}}, writesOf(planReplica(again, 1, have)))
}

// A copy of the base gang that is made anew replays the order, and the others of its
// stages keep their pods.
func TestARecycledCopyReplaysTheOrderAlone(t *testing.T) {
	have := stagedReplica(t)
	all := newSet(staged, open("router", "leader", "worker"))
	have.groups["llm-1-decode"].Status.ReplicaAttempts = []grovev1alpha1.ScalingGroupReplicaAttempt{{Index: 0, Attempt: 1}}
	before := have.gangs["llm-1-worker"].DeepCopy()
	p := planReplica(all, 1, have)
	expect(t, "the copy's cliques and its first gang", writes{Update: []string{"PodClique llm-1-decode-0-leader", "PodClique llm-1-decode-0-worker", "PodGang llm-1-leader"}}, writesOf(p))
	have.add(p.update...)
	for _, name := range []string{"llm-1-decode-0-leader", "llm-1-decode-0-worker"} {
		have.cliques[name].Status = grovev1alpha1.PodCliqueStatus{ObservedAttempt: 1}
	}
	expect(t, "its worker waits", writes{}, writesOf(planReplica(all, 1, have)))
	have.ready("llm-1-decode-0-leader")
	p = planReplica(all, 1, have)
	expect(t, "until its leader is ready", writes{Update: []string{"PodGang llm-1-worker"}}, writesOf(p))
	have.add(p.update...)
	if name := have.gangs["llm-1-worker"].Spec.PodGroups[0].PodReferences[0].Name; name == before.Spec.PodGroups[0].PodReferences[0].Name {
		t.Errorf("the gang still names pod %s", name)
	}
	if attempt := gang.GangAttempt(have.gangs["llm-1-worker"]); attempt != 0 {
		t.Errorf("the gang has attempt %d", attempt)
	}
}

func TestACopyThatIsAddedReplaysTheOrder(t *testing.T) {
	have := stagedReplica(t)
	all := newSet(staged, open("router", "leader", "worker"))
	have.groups["llm-1-decode"].Spec.Replicas = 3
	have.add(planReplica(all, 1, have).create...)
	expect(t, "its first stage", writes{Create: []string{"PodGang llm-1-decode-1-leader"}}, writesOf(planReplica(all, 1, have)))
	have.add(planReplica(all, 1, have).create...)
	expect(t, "and no more", writes{}, writesOf(planReplica(all, 1, have)))
	have.ready("llm-1-decode-2-leader")
	expect(t, "its second stage", writes{Create: []string{"PodGang llm-1-decode-1-worker"}}, writesOf(planReplica(all, 1, have)))
}
