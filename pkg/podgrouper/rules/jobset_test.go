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
			want:    map[string]string{"llm-driver-0-0-x": "pg-llm of JobSet/llm, 1 groups; the first of 1 pods" + tree + "; in driver-replica-0"},
		},
		"a job that waits for another is not waited for": {
			objects: with("", "dependsOn: [{name: driver, status: Complete}]"),
			want:    map[string]string{"llm-driver-0-0-x": "pg-llm of JobSet/llm, 1 groups; the first of 1 pods" + tree + "; in driver-replica-0"},
		},
		"as many as there are of them": {
			objects: replace(with("startupPolicy: {startupPolicyOrder: InOrder}", ""), "name: driver\n", "name: driver\n    replicas: 3\n"),
			want: map[string]string{"llm-driver-0-0-x": "pg-llm of JobSet/llm, 1 groups; the first of 3 pods; train; driver 3 groups; driver/driver-replica-0 1; driver/driver-replica-1 1; driver/driver-replica-2 1; " +
				"workers 2 groups on dc::rack; workers/workers-replica-0 4; workers/workers-replica-1 4; in driver-replica-0"},
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

// Kubeflow Trainer starts the launcher of a DeepSpeed job when its nodes are ready. The nodes
// are the gang, though there are more of them than of what comes later.
const nodesAndLauncher = `
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: llm}
spec:
  ORDER
  replicatedJobs:
  - {name: node, template: {spec: {parallelism: 8, completions: 8}}}
  - {name: launcher, DEPENDS template: {spec: {}}}
  - {name: spare, replicas: 0, template: {spec: {}}}
status: {replicatedJobsStatus: [{name: node, succeeded: DONE}, {name: launcher, succeeded: 0}]}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: llm-node-0}, under: JobSet/llm}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: llm-launcher-0}, under: JobSet/llm}
---
{apiVersion: v1, kind: Pod, metadata: {name: llm-node-0-0-x, labels: {jobset.sigs.k8s.io/replicatedjob-name: node, jobset.sigs.k8s.io/job-index: "0"}}, under: Job/llm-node-0, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: llm-launcher-0-0-x, labels: {jobset.sigs.k8s.io/replicatedjob-name: launcher, jobset.sigs.k8s.io/job-index: "0"}}, under: Job/llm-launcher-0, spec: {}}
`

func TestTheFirstJobsOfAJobSetAreTheGang(t *testing.T) {
	with := func(order, depends, done string) string {
		return replace(nodesAndLauncher, "ORDER", order, "DEPENDS", depends, "DONE", done)
	}
	const tree = "train; node 1 groups; node/node-replica-0 8; launcher 1 groups; launcher/launcher-replica-0 1; in node-replica-0"
	launcher := replace(tree, "in node", "in launcher")
	runCases(t, map[string]groupCase{
		"the launcher depends on the nodes": {
			objects: with("", "dependsOn: [{name: node, status: Ready}],", "0"),
			want:    map[string]string{"llm-node-0-0-x": "pg-llm of JobSet/llm, 1 groups; the first of 8 pods; " + tree},
		},
		"it comes after them": {
			objects: with("startupPolicy: {startupPolicyOrder: InOrder}", "", "0"),
			want:    map[string]string{"llm-node-0-0-x": "pg-llm of JobSet/llm, 1 groups; the first of 8 pods; " + tree},
		},
		"and waits for none of them": {
			objects: with("", "dependsOn: [{name: node, status: Complete}],", "1"),
			want: map[string]string{
				"llm-launcher-0-0-x": "pg-llm of JobSet/llm, 1 groups; the first of 8 pods; past; " + launcher,
				// The nodes are there once more.
				"llm-node-0-0-x": "pg-llm of JobSet/llm, 1 groups; the first of 8 pods; " + tree,
			},
		},
		"they come together": {
			objects: with("", "", "0"),
			want:    map[string]string{"llm-node-0-0-x": "pg-llm of JobSet/llm, 2 groups; " + tree},
		},
		"the first comes later in the list": {
			objects: replace(with("", "dependsOn: [{name: node, status: Ready}],", "0"), "name: spare, replicas: 0", "name: spare, replicas: 2"),
			want: map[string]string{"llm-node-0-0-x": "pg-llm of JobSet/llm, 2 groups; the first of 10 pods; " +
				replace(tree, "; in ", "; spare 2 groups; spare/spare-replica-0 1; spare/spare-replica-1 1; in ")},
		},
	})
}
