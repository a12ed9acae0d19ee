package rules_test

import "testing"

const jobSet = `
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: llm}
spec:
  ORDER
  replicatedJobs:
  - name: driver
    template: {spec: {template: {spec: {containers: [{name: driver, image: llm}]}}}}
  - name: workers
    replicas: 2
    DEPENDS
    template: {metadata: {annotations: {kai.scheduler/topology: dc, kai.scheduler/topology-preferred-placement: rack}}, spec: {parallelism: 4, completions: 4}}
  - {name: spare, replicas: 0}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: llm-driver-0}, under: JobSet/llm}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: llm-workers-1}, under: JobSet/llm}
---
{apiVersion: v1, kind: Pod, metadata: {name: llm-driver-0-0-x, labels: {jobset.sigs.k8s.io/replicatedjob-name: driver, jobset.sigs.k8s.io/job-index: "0"}}, under: Job/llm-driver-0, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: llm-workers-1-3-x, labels: {jobset.sigs.k8s.io/replicatedjob-name: workers, jobset.sigs.k8s.io/job-index: "1"}}, under: Job/llm-workers-1, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: no-index, labels: {jobset.sigs.k8s.io/replicatedjob-name: workers}}, under: Job/llm-workers-1, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: no-name}, under: Job/llm-workers-1, spec: {}}
`

func TestJobSet(t *testing.T) {
	with := func(order, depends string) string { return replace(jobSet, "ORDER", order, "DEPENDS", depends) }
	const tree = "; train; driver 1 groups; driver/driver-replica-0 1; workers 2 groups on dc::rack; workers/workers-replica-0 4; workers/workers-replica-1 4"
	runCases(t, map[string]groupCase{
		"all jobs together": {
			objects: with("", ""),
			want: map[string]string{
				"llm-driver-0-0-x":  "pg-llm of JobSet/llm, 2 groups" + tree + "; in driver-replica-0",
				"llm-workers-1-3-x": "pg-llm of JobSet/llm, 2 groups" + tree + "; in workers-replica-1",
				"no-index":          "pg-llm of JobSet/llm, 2 groups" + tree + "; MissingLabel",
				"no-name":           "pg-llm of JobSet/llm, 2 groups" + tree + "; MissingLabel",
			},
		},
		"in any order": {
			objects: with("startupPolicy: {startupPolicyOrder: AnyOrder}", ""),
			want:    map[string]string{"llm-driver-0-0-x": "pg-llm of JobSet/llm, 2 groups" + tree + "; in driver-replica-0"},
		},
		"in order the first is enough": {
			objects: with("startupPolicy: {startupPolicyOrder: InOrder}", ""),
			want:    map[string]string{"llm-driver-0-0-x": "pg-llm of JobSet/llm, 1 groups" + tree + "; in driver-replica-0"},
		},
		"a job that waits for another is not waited for": {
			objects: with("", "dependsOn: [{name: driver, status: Complete}]"),
			want:    map[string]string{"llm-driver-0-0-x": "pg-llm of JobSet/llm, 1 groups" + tree + "; in driver-replica-0"},
		},
		"a minimum in pods": {
			objects: replace(with("", ""), "{name: llm}", `{name: llm, annotations: {scheduler.grove.io/min-member: "5"}}`),
			want:    map[string]string{"llm-workers-1-3-x": "pg-llm of JobSet/llm, 5; train"},
		},
		"a minimum in pods, of those that come first": {
			objects: replace(with("startupPolicy: {startupPolicyOrder: InOrder}", ""), "{name: llm}", `{name: llm, annotations: {scheduler.grove.io/min-member: "5"}}`),
			want:    map[string]string{"llm-workers-1-3-x": "pg-llm of JobSet/llm, 1; train; MinMemberTooHigh"},
		},
		"a TrainJob is its JobSet": {
			objects: replace(with("", ""), "metadata: {name: llm}", "metadata: {name: llm}\nunder: TrainJob/llm") +
				"---\n{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: llm, labels: {priorityClassName: high}}, spec: {runtimeRef: {name: torch}}}\n",
			want: map[string]string{"llm-driver-0-0-x": replace("pg-llm of JobSet/llm, 2 groups"+tree+"; in driver-replica-0", "; train", "; high")},
		},
		"too many": {
			objects: replace(with("", ""), "replicas: 2\n", "replicas: 2000000000\n"),
			want:    map[string]string{"no-name": "error: JobSet llm: spec.replicatedJobs[1].replicas: Too many: 2000000000: must have at most 10000 items"},
		},
	})
}
