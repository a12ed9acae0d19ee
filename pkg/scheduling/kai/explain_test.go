package kai

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
)

type explanations = []schedulerv1alpha1.UnschedulableExplanation

func resources(cpu, memory, gpu string) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory), "nvidia.com/gpu": resource.MustParse(gpu),
	}
}

// The statuses are as KAI writes them.
func TestExplain(t *testing.T) {
	for name, tc := range map[string]struct {
		status string
		want   explanations
	}{
		"KAI has said nothing": {`{}`, nil},
		"a queue above the group's is over its limit": {`{"schedulingConditions": [{
			"type": "UnschedulableOnNodePool", "nodePool": "default", "status": "True", "transitionID": "0", "lastTransitionTime": "2026-03-01T12:00:00Z",
			"reason": "Unschedulable", "message": "\nOverLimit: Workload requested 8 GPUs, but department limit is 8 GPUs, while 4 GPUs are already allocated.",
			"reasons": [{
				"reason": "OverLimit", "message": "Workload requested 8 GPUs, but department limit is 8 GPUs, while 4 GPUs are already allocated.",
				"details": {"queueDetails": {
					"name": "department",
					"queueRequestedResources": {"cpu": "12", "memory": "64Gi", "nvidia.com/gpu": "12"},
					"queueDeservedResources": {"cpu": "-1", "memory": "-1", "nvidia.com/gpu": "8"},
					"queueAllocatedResources": {"cpu": "4", "memory": "32Gi", "nvidia.com/gpu": "4"},
					"queueAllocatedNonPreemptibleResources": {"cpu": "0", "memory": "0", "nvidia.com/gpu": "0"},
					"queueResourceLimits": {"cpu": "-1", "memory": "-1", "nvidia.com/gpu": "8"},
					"podGroupRequestedResources": {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "8"},
					"podGroupRequestedNonPreemptibleResources": {"cpu": "0", "memory": "0", "nvidia.com/gpu": "0"}
				}}
			}]
		}]}`, explanations{{
			Reason: schedulerv1alpha1.ReasonOverLimit, Message: "Workload requested 8 GPUs, but department limit is 8 GPUs, while 4 GPUs are already allocated.",
			Details: &schedulerv1alpha1.UnschedulableExplanationDetails{QueueDetails: &schedulerv1alpha1.QueueDetails{
				Name:                                     "department",
				QueueRequestedResources:                  resources("12", "64Gi", "12"),
				QueueDeservedResources:                   resources("-1", "-1", "8"),
				QueueAllocatedResources:                  resources("4", "32Gi", "4"),
				QueueAllocatedNonPreemptibleResources:    resources("0", "0", "0"),
				QueueResourceLimits:                      resources("-1", "-1", "8"),
				PodGroupRequestedResources:               resources("8", "32Gi", "8"),
				PodGroupRequestedNonPreemptibleResources: resources("0", "0", "0"),
			}},
		}}},
		"what is not preemptible is over quota": {`{"schedulingConditions": [{
			"type": "UnschedulableOnNodePool", "nodePool": "default", "status": "True", "transitionID": "0",
			"reasons": [{"reason": "NonPreemptibleOverQuota", "message": "Non-preemptible workload is over quota.", "details": {"queueDetails": {"name": "team-a"}}}]
		}]}`, explanations{{
			Reason: schedulerv1alpha1.ReasonNonPreemptibleOverQuota, Message: "Non-preemptible workload is over quota.",
			Details: &schedulerv1alpha1.UnschedulableExplanationDetails{QueueDetails: &schedulerv1alpha1.QueueDetails{Name: "team-a"}},
		}}},
		"the queue does not exist": {`{"schedulingConditions": [{
			"type": "UnschedulableOnNodePool", "nodePool": "default", "status": "True", "transitionID": "0",
			"reasons": [{"reason": "QueueDoesNotExist", "message": "Queue 'nowhere' does not exist"}]
		}]}`, explanations{{Reason: schedulerv1alpha1.ReasonQueueDoesNotExist, Message: "Queue 'nowhere' does not exist"}}},
		"a word that is not known": {`{"schedulingConditions": [{
			"type": "UnschedulableOnNodePool", "nodePool": "default", "status": "True", "transitionID": "0",
			"reasons": [{"reason": "PreemptionDelayNotElapsed", "message": "5m are left"}]
		}]}`, explanations{{Reason: "PreemptionDelayNotElapsed", Message: "5m are left"}}},
		"pods do not fit": {`{"schedulingConditions": [{
			"type": "UnschedulableOnNodePool", "nodePool": "default", "status": "True", "transitionID": "0", "reason": "Unschedulable",
			"reasons": [{"reason": "PodSchedulingErrors", "message": "Resources were found for 3 pods while 4 are required for gang scheduling."}]
		}]}`, explanations{{Reason: schedulerv1alpha1.ReasonNotEnoughResources, Message: "Resources were found for 3 pods while 4 are required for gang scheduling."}}},
		"the reason is a text": {`{"schedulingConditions": [{
			"type": "UnschedulableOnNodePool", "nodePool": "default", "status": "True", "transitionID": "0",
			"reasons": [{"reason": "Not enough resources for the workload", "message": "2 node(s) didn't have enough resources: GPUs"}]
		}]}`, explanations{{Reason: schedulerv1alpha1.ReasonNotEnoughResources, Message: "Not enough resources for the workload: 2 node(s) didn't have enough resources: GPUs"}}},
		"the reason is a text, and all": {`{"schedulingConditions": [{
			"type": "UnschedulableOnNodePool", "nodePool": "default", "status": "True", "transitionID": "0",
			"reasons": [{"reason": "Unable to schedule podgroup"}]
		}]}`, explanations{{Reason: schedulerv1alpha1.ReasonNotEnoughResources, Message: "Unable to schedule podgroup"}}},
		"no domain of the topology fits": {`{"schedulingConditions": [{
			"type": "UnschedulableOnNodePool", "nodePool": "default", "status": "True", "transitionID": "0",
			"reasons": [
				{"reason": "Not enough resources for the workload", "message": "node-group zone1 can allocate only 1 of 2 required pods"},
				{"reason": "PodSchedulingErrors", "message": "Matching topology cluster does not exist"}
			]
		}]}`, explanations{
			{Reason: schedulerv1alpha1.ReasonTopologyUnsatisfied, Message: "Not enough resources for the workload: node-group zone1 can allocate only 1 of 2 required pods"},
			{Reason: schedulerv1alpha1.ReasonTopologyUnsatisfied, Message: "Matching topology cluster does not exist"},
		}},
		"several node pools, the newest first": {`{"schedulingConditions": [
			{"type": "UnschedulableOnNodePool", "nodePool": "a100", "status": "True", "transitionID": "0",
			 "reasons": [{"reason": "Not enough resources for the workload", "message": "Node-Pool 'a100': no room"}]},
			{"type": "UnschedulableOnNodePool", "nodePool": "h100", "status": "True", "transitionID": "1",
			 "reasons": [{"reason": "OverLimit", "message": "too much", "details": {"queueDetails": {"name": "q"}}}]}
		]}`, explanations{
			{Reason: schedulerv1alpha1.ReasonOverLimit, Message: "node pool 'h100': too much", Details: &schedulerv1alpha1.UnschedulableExplanationDetails{QueueDetails: &schedulerv1alpha1.QueueDetails{Name: "q"}}},
			{Reason: schedulerv1alpha1.ReasonNotEnoughResources, Message: "Not enough resources for the workload: Node-Pool 'a100': no room"},
		}},
		"a version without a list of reasons": {`{"schedulingConditions": [{
			"type": "UnschedulableOnNodePool", "nodePool": "default", "status": "True", "transitionID": "0", "lastTransitionTime": null,
			"reason": "Unschedulable", "message": "Resources were not found for pod ns/a"
		}]}`, explanations{{Reason: schedulerv1alpha1.ReasonNotEnoughResources, Message: "Resources were not found for pod ns/a"}}},
		"nothing but that it is not scheduled": {`{"schedulingConditions": [{"type": "UnschedulableOnNodePool", "nodePool": "default", "status": "True", "reason": "Unschedulable"}]}`,
			explanations{{Reason: schedulerv1alpha1.ReasonNotEnoughResources, Message: "Unschedulable"}}},
		"an empty condition":     {`{"schedulingConditions": [{"type": "UnschedulableOnNodePool", "nodePool": "default", "status": "True"}]}`, nil},
		"it holds no more":       {`{"schedulingConditions": [{"type": "UnschedulableOnNodePool", "status": "False", "reasons": [{"reason": "OverLimit"}]}]}`, nil},
		"it says something else": {`{"schedulingConditions": [{"type": "Other", "status": "True", "reasons": [{"reason": "OverLimit"}]}]}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			status := PodGroupStatus{}
			if err := json.Unmarshal([]byte(tc.status), &status); err != nil {
				t.Fatal(err)
			}
			expect(t, "why", tc.want, Explain(status.SchedulingConditions))
		})
	}
}

func TestWhatWasSaidBeforeAGangWasPlacedIsOver(t *testing.T) {
	at := func(minutes time.Duration) metav1.Time {
		return metav1.NewTime(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC).Add(minutes * time.Minute))
	}
	conditions := []schedulerv1alpha1.SchedulingCondition{{NodePool: "timeless"}, {NodePool: "before", LastTransitionTime: at(0)}, {NodePool: "after", LastTransitionTime: at(2)}}
	pools := func(conditions []schedulerv1alpha1.SchedulingCondition) (out []string) {
		for i := range conditions {
			out = append(out, conditions[i].NodePool)
		}
		return out
	}
	scheduled := func(g *schedulerv1alpha1.PodGang) {
		g.Status.ObservedAttempt = 2
		g.Status.Conditions = []metav1.Condition{{Type: schedulerv1alpha1.PodGangConditionScheduled, Status: metav1.ConditionTrue, LastTransitionTime: at(1)}}
	}
	expect(t, "of a gang that was placed", []string{"after"}, pools(since(conditions, newGang(scheduled))))
	expect(t, "of one that was not", []string{"timeless", "before", "after"}, pools(since(conditions, newGang(nil))))
}
