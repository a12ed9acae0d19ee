package replica

import (
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
)

// queued is a set that says all that its gangs carry, and more.
func queued(pcs *grovev1alpha1.PodCliqueSet) {
	pcs.Labels = map[string]string{
		"kai.scheduler/queue": "team-a", "kai.scheduler/preemptibility": "preemptible", "kai.scheduler/node-pool": "h100", "project": "p", "team": "red",
	}
	pcs.Annotations = map[string]string{
		"kai.scheduler/topology": "cluster", "kai.scheduler/topology-required-placement": "rack", "kai.scheduler/topology-preferred-placement": "host", "note": "n",
	}
}

func TestGangsCarryWhatTheSetSaysToSchedulers(t *testing.T) {
	have := allOf(t, newSet(), 1).without("PodGang", "llm-1")
	var podGang client.Object
	for _, obj := range planReplica(newSet(queued), 1, have).create {
		if obj.GetName() == "llm-1" {
			podGang = obj
		}
	}
	if podGang == nil {
		t.Fatal("the gang is not made")
	}
	plain := allOf(t, newSet(), 1).gangs["llm-1"].Labels
	want := maps.Clone(plain)
	maps.Copy(want, map[string]string{
		"kai.scheduler/queue": "team-a", "kai.scheduler/preemptibility": "preemptible", "kai.scheduler/node-pool": "h100", "project": "p",
	})
	expect(t, "labels", want, podGang.GetLabels())
	expect(t, "annotations", map[string]string{
		"kai.scheduler/topology": "cluster", "kai.scheduler/topology-required-placement": "rack", "kai.scheduler/topology-preferred-placement": "host",
	}, podGang.GetAnnotations())
}

func TestGangsFollowWhatTheSetSaysToSchedulers(t *testing.T) {
	have := allOf(t, newSet(queued), 1)
	expect(t, "writes when nothing has changed", writes{}, writesOf(planReplica(newSet(queued), 1, have)))

	have.gangs["llm-1"].Labels["user"] = "kept"
	have.gangs["llm-1"].Annotations["user"] = "kept"
	changed := newSet(queued, func(pcs *grovev1alpha1.PodCliqueSet) {
		pcs.Labels["kai.scheduler/queue"] = "team-b"
		delete(pcs.Labels, "project")
		pcs.Annotations = nil
	})
	p := planReplica(changed, 1, have)
	expect(t, "writes", []string{"PodGang llm-1", "PodGang llm-1-decode-0"}, writesOf(p).Update)
	podGang := p.update[0]
	for key, value := range map[string]string{"kai.scheduler/queue": "team-b", "kai.scheduler/node-pool": "h100", "user": "kept", "project": ""} {
		expect(t, "label "+key, value, podGang.GetLabels()[key])
	}
	expect(t, "annotations", map[string]string{"user": "kept"}, podGang.GetAnnotations())
	expect(t, "queue of the gang that was read", "team-a", have.gangs["llm-1"].Labels["kai.scheduler/queue"])
}

func TestAChangeOfWhatGangsCarryIsLookedAt(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*grovev1alpha1.PodCliqueSet)
		want   bool
	}{
		"nothing":            {func(*grovev1alpha1.PodCliqueSet) {}, false},
		"another label":      {func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Labels["team"] = "blue" }, false},
		"the queue":          {func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Labels["kai.scheduler/queue"] = "b" }, true},
		"a project less":     {func(pcs *grovev1alpha1.PodCliqueSet) { delete(pcs.Labels, "project") }, true},
		"the topology":       {func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Annotations["kai.scheduler/topology"] = "b" }, true},
		"another annotation": {func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Annotations["note"] = "b" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := setChanged().Update(event.TypedUpdateEvent[*grovev1alpha1.PodCliqueSet]{ObjectOld: newSet(queued), ObjectNew: newSet(queued, tc.change)})
			expect(t, "looked at", tc.want, got)
		})
	}
}

func TestCarryMakesNoMapForNothing(t *testing.T) {
	podGang := &schedulerv1alpha1.PodGang{}
	carry(podGang, newSet())
	expect(t, "metadata", metav1.ObjectMeta{}, podGang.ObjectMeta)
}
