package rules_test

import "testing"

func rayCluster(spec, metadata string) string {
	return `
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: ray` + metadata + `}
spec: {headGroupSpec: {template: {metadata: {annotations: {kai.scheduler/topology: dc, kai.scheduler/topology-required-placement: zone}}}}, ` + spec + `}
---
{apiVersion: v1, kind: Pod, metadata: {name: ray-head, labels: {ray.io/cluster: ray, ray.io/node-type: head, ray.io/group: headgroup}}, under: RayCluster/ray, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: ray-worker, labels: {ray.io/cluster: ray, ray.io/node-type: worker, ray.io/group: GPU_group}}, under: RayCluster/ray, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: ray-x}, under: RayCluster/ray, spec: {}}
`
}

// cleanUp is what KubeRay makes when the cluster is deleted, after the pods of the cluster have
// gone: the pod has the labels of a head but for its type.
const cleanUp = `---
{apiVersion: batch/v1, kind: Job, metadata: {name: ray-redis-cleanup}, under: RayCluster/ray, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: ray-redis-cleanup-x, labels: {ray.io/cluster: ray, ray.io/node-type: redis-cleanup, ray.io/group: headgroup}}, under: Job/ray-redis-cleanup, spec: {}}
`

func TestRay(t *testing.T) {
	const head = "headgroup 1 on dc:zone:"
	const gpus = "gpu-group-oab3a2bs"
	runCases(t, map[string]groupCase{
		"head and workers": {
			objects: rayCluster("workerGroupSpecs: [{groupName: GPU_group, replicas: 2, numOfHosts: 4}, {groupName: cpu, replicas: 3}]", ""),
			want: map[string]string{
				"ray-head":   "pg-ray of RayCluster/ray, 12; train; " + head + "; " + gpus + " 8; cpu 3; in headgroup",
				"ray-worker": "pg-ray of RayCluster/ray, 12; train; " + head + "; " + gpus + " 8; cpu 3; in " + gpus,
				"ray-x":      "pg-ray of RayCluster/ray, 12; train; " + head + "; " + gpus + " 8; cpu 3; MissingLabel",
			},
		},
		"as many as there always are": {
			objects: rayCluster("enableInTreeAutoscaling: true, workerGroupSpecs: [{groupName: GPU_group, replicas: 5, minReplicas: 2, maxReplicas: 8, numOfHosts: 2}, {groupName: cpu, replicas: 3, minReplicas: 0}]", ""),
			want:    map[string]string{"ray-worker": "pg-ray of RayCluster/ray, 5; train; " + head + "; " + gpus + " 4; cpu 0; in " + gpus},
		},
		"a minimum without an autoscaler": {
			objects: rayCluster("workerGroupSpecs: [{groupName: GPU_group, replicas: 5, minReplicas: 2}]", ""),
			want:    map[string]string{"ray-worker": "pg-ray of RayCluster/ray, 3; train; " + head + "; " + gpus + " 2; in " + gpus},
		},
		"replicas out of bounds": {
			objects: rayCluster("workerGroupSpecs: [{groupName: GPU_group, replicas: 1, minReplicas: 3}, {groupName: cpu, replicas: 9, minReplicas: 0, maxReplicas: 4}]", ""),
			want:    map[string]string{"ray-worker": "pg-ray of RayCluster/ray, 8; train; " + head + "; " + gpus + " 3; cpu 4; in " + gpus},
		},
		"a suspended group": {
			objects: rayCluster("workerGroupSpecs: [{groupName: GPU_group, replicas: 2}, {groupName: cpu, replicas: 3, suspend: true}]", ""),
			want:    map[string]string{"ray-worker": "pg-ray of RayCluster/ray, 3; train; " + head + "; " + gpus + " 2; in " + gpus},
		},
		"a placement of workers": {
			objects: rayCluster("workerGroupSpecs: [{groupName: GPU_group, replicas: 2, template: {metadata: {annotations: {kai.scheduler/topology: dc, kai.scheduler/topology-preferred-placement: rack}}}}]", ""),
			want:    map[string]string{"ray-worker": "pg-ray of RayCluster/ray, 3; train; " + head + "; " + gpus + " 2 on dc::rack; in " + gpus},
		},
		"no more than there are": {
			objects: rayCluster("workerGroupSpecs: [{groupName: GPU_group, replicas: 2, numOfHosts: 2}]", `, annotations: {scheduler.grove.io/min-member: "9"}`),
			want:    map[string]string{"ray-worker": "pg-ray of RayCluster/ray, 5; train; MinMemberTooHigh"},
		},
		"no more than there are, within the bounds": {
			objects: rayCluster("workerGroupSpecs: [{groupName: GPU_group, replicas: 1, minReplicas: 3}, {groupName: cpu, replicas: 9, maxReplicas: 2}]", `, annotations: {scheduler.grove.io/min-member: "9"}`),
			want:    map[string]string{"ray-worker": "pg-ray of RayCluster/ray, 6; train; MinMemberTooHigh"},
		},
		"Ray's own label for the class": {
			objects: rayCluster("workerGroupSpecs: []", ", labels: {ray.io/priority-class-name: high}"),
			want:    map[string]string{"ray-head": "pg-ray of RayCluster/ray, 1; high; " + head + "; in headgroup"},
		},
		"ours counts more than Ray's": {
			objects: rayCluster("workerGroupSpecs: []", ", labels: {ray.io/priority-class-name: high, priorityClassName: build}"),
			want:    map[string]string{"ray-head": "pg-ray of RayCluster/ray, 1; build; " + head + "; in headgroup"},
		},
		"the pod that empties Redis waits for none of those that are gone": {
			objects: rayCluster("workerGroupSpecs: [{groupName: GPU_group, replicas: 2}]", ", labels: {ray.io/priority-class-name: high}") + cleanUp,
			want: map[string]string{
				"ray-redis-cleanup-x": "pg-ray-redis-cleanup-x of Pod/ray-redis-cleanup-x, 1; high",
				"ray-head":            "pg-ray of RayCluster/ray, 3; high; " + head + "; " + gpus + " 2; in headgroup",
			},
		},
		"nor is it hindered by what is wrong with them": {
			objects: rayCluster("workerGroupSpecs: [{groupName: cpu, numOfHosts: none}]", "") + cleanUp,
			want:    map[string]string{"ray-redis-cleanup-x": "pg-ray-redis-cleanup-x of Pod/ray-redis-cleanup-x, 1; train"},
		},
		"a mistake names the field": {
			objects: rayCluster("workerGroupSpecs: [{groupName: GPU_group, replicas: 2}, {groupName: cpu, numOfHosts: none}]", ""),
			want:    map[string]string{"ray-head": `error: RayCluster ray: spec.workerGroupSpecs[1].numOfHosts: Invalid value: "none": must be a whole number`},
		},
		"too many": {
			objects: rayCluster("workerGroupSpecs: [{groupName: GPU_group, replicas: 2147483647, numOfHosts: 2147483647}]", ""),
			want:    map[string]string{"ray-head": "error: RayCluster ray: spec: Invalid value: 4611686014132420610: the pods that have to be scheduled together must be a number from 0 to 2147483647"},
		},
	})
}

// What makes a cluster is not the gang: a job that is retried and a service that is upgraded
// have several, and the pod that submits a job comes when the cluster runs.
func TestRayOwners(t *testing.T) {
	const objects = `
{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: tune, labels: {priorityClassName: high}}, spec: {entrypoint: python tune.py, rayClusterSpec: {}}}
---
{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: tune-1}, under: RayJob/tune, spec: {workerGroupSpecs: [{groupName: a, replicas: 1}]}}
---
{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: tune-2}, under: RayJob/tune, spec: {workerGroupSpecs: [{groupName: a, replicas: 1}]}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: tune}, under: RayJob/tune, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: tune-1-head, labels: {ray.io/group: headgroup}}, under: RayCluster/tune-1, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: tune-1-worker, labels: {ray.io/group: a}}, under: RayCluster/tune-1, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: tune-2-head, labels: {ray.io/group: headgroup}}, under: RayCluster/tune-2, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: tune-submitter}, under: Job/tune, spec: {}}
---
{apiVersion: ray.io/v1, kind: RayService, metadata: {name: chat}, spec: {}}
---
{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: chat-1}, under: RayService/chat, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: chat-head, labels: {ray.io/group: headgroup}}, under: RayCluster/chat-1, spec: {}}
`
	runCases(t, map[string]groupCase{"a RayJob and a RayService": {objects: objects, want: map[string]string{
		"tune-1-worker":  "pg-tune-1 of RayCluster/tune-1, 2; high; headgroup 1; a 1; in a",
		"tune-2-head":    "pg-tune-2 of RayCluster/tune-2, 2; high; headgroup 1; a 1; in headgroup",
		"tune-submitter": "pg-tune of Job/tune, 1; high",
		"chat-head":      "pg-chat-1 of RayCluster/chat-1, 1; train; headgroup 1; in headgroup",
	}}})
	sameGroup(t, objects, []string{"chat-head"}, []string{"tune-1-head", "tune-1-worker"}, []string{"tune-2-head"}, []string{"tune-submitter"})
}
