package rules_test

import "testing"

// lwsScene is a LeaderWorkerSet of two replicas with the leader and a worker of one, and the
// leader of the other. Labels that its webhook gives are there or not.
func lwsScene(spec, annotations string, webhook bool, leaderSpec string) string {
	leader, worker := "", ""
	if webhook {
		leader = `, leaderworkerset.sigs.k8s.io/group-index: "1", leaderworkerset.sigs.k8s.io/worker-index: "0"`
		worker = `, leaderworkerset.sigs.k8s.io/worker-index: "3"`
	}
	return `
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: vllm}
spec: {replicas: 2, ` + spec + `}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: vllm}, under: LeaderWorkerSet/vllm}
---
{apiVersion: v1, kind: Pod, metadata: {name: vllm-1, annotations: ` + annotations + `, labels: {leaderworkerset.sigs.k8s.io/name: vllm, apps.kubernetes.io/pod-index: "1"` + leader + `}}, under: StatefulSet/vllm, spec: ` + leaderSpec + `}
---
{apiVersion: v1, kind: Pod, metadata: {name: vllm-0, annotations: ` + annotations + `, labels: {leaderworkerset.sigs.k8s.io/name: vllm, apps.kubernetes.io/pod-index: "0"}}, under: StatefulSet/vllm, spec: {}}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: vllm-1}, under: Pod/vllm-1}
---
{apiVersion: v1, kind: Pod, metadata: {name: vllm-1-3, annotations: ` + annotations + `, labels: {leaderworkerset.sigs.k8s.io/name: vllm, leaderworkerset.sigs.k8s.io/group-index: "1", apps.kubernetes.io/pod-index: "3"` + worker + `}}, under: StatefulSet/vllm-1, spec: {}}
`
}

func TestLeaderWorkerSet(t *testing.T) {
	const (
		five    = "leaderWorkerTemplate: {size: 5}"
		late    = "startupPolicy: LeaderReady, leaderWorkerTemplate: {size: 5}"
		halves  = "leaderWorkerTemplate: {size: 4, subGroupPolicy: {subGroupSize: 2}}"
		extra   = "leaderWorkerTemplate: {size: 5, subGroupPolicy: {subGroupSize: 2}}"
		without = "leaderWorkerTemplate: {size: 5, subGroupPolicy: {subGroupSize: 2, subGroupPolicyType: LeaderExcluded}}"
		node    = "{nodeName: node-1}"
	)
	const group = "pg-vllm-group-1 of LeaderWorkerSet/vllm, "
	runCases(t, map[string]groupCase{
		"a replica": {
			objects: lwsScene(five, "{}", true, "{}"),
			want: map[string]string{
				"vllm-1":   group + "5; train; leader 1; workers 4; in leader",
				"vllm-1-3": group + "5; train; leader 1; workers 4; in workers",
				"vllm-0":   "pg-vllm-group-0 of LeaderWorkerSet/vllm, 5; train; leader 1; workers 4; in leader",
			},
		},
		"before its webhook has seen the pods": {
			objects: lwsScene(five, "{}", false, "{}"),
			want: map[string]string{
				"vllm-1":   group + "5; train; leader 1; workers 4; in leader",
				"vllm-1-3": group + "5; train; leader 1; workers 4; in workers",
			},
		},
		"a replica of one": {
			objects: lwsScene("leaderWorkerTemplate: {}", "{}", true, "{}"),
			want:    map[string]string{"vllm-1": group + "1; train; leader 1; in leader"},
		},
		"a replica of the size that it was made with": {
			objects: lwsScene(five, `{leaderworkerset.sigs.k8s.io/size: "3"}`, true, "{}"),
			want:    map[string]string{"vllm-1": group + "3; train; leader 1; workers 2; in leader"},
		},
		"the leader does not wait for workers that wait for it": {
			objects: lwsScene(late, "{}", true, "{}"),
			want:    map[string]string{"vllm-1": group + "1; train; leader 1; workers 0; in leader"},
		},
		"workers come when the leader has a node": {
			objects: lwsScene(late, "{}", true, node),
			want: map[string]string{
				"vllm-1":   group + "5; train; leader 1; workers 4; in leader",
				"vllm-1-3": group + "5; train; leader 1; workers 4; in workers",
			},
		},
		"subgroups": {
			objects: lwsScene(halves, `{leaderworkerset.sigs.k8s.io/size: "4", leaderworkerset.sigs.k8s.io/subgroup-size: "2"}`, true, "{}"),
			want: map[string]string{
				"vllm-1":   group + "4; train; segment-0 2; segment-1 2; in segment-0",
				"vllm-1-3": group + "4; train; segment-0 2; segment-1 2; in segment-1",
			},
		},
		"subgroups, the leader is one too many": {
			objects: lwsScene(extra, `{leaderworkerset.sigs.k8s.io/size: "5", leaderworkerset.sigs.k8s.io/subgroup-size: "2"}`, false, "{}"),
			want: map[string]string{
				"vllm-1":   group + "5; train; segment-0 3; segment-1 2; in segment-0",
				"vllm-1-3": group + "5; train; segment-0 3; segment-1 2; in segment-1",
			},
		},
		"subgroups without the leader": {
			objects: lwsScene(without, `{leaderworkerset.sigs.k8s.io/size: "5", leaderworkerset.sigs.k8s.io/subgroup-size: "2", leaderworkerset.sigs.k8s.io/subgroup-policy-type: LeaderExcluded}`, true, "{}"),
			want: map[string]string{
				"vllm-1":   group + "5; train; leader 1; segment-0 2; segment-1 2; in leader",
				"vllm-1-3": group + "5; train; leader 1; segment-0 2; segment-1 2; in segment-1",
			},
		},
		"subgroups of one without the leader": {
			objects: lwsScene("leaderWorkerTemplate: {size: 4, subGroupPolicy: {subGroupSize: 1, subGroupPolicyType: LeaderExcluded}}", `{leaderworkerset.sigs.k8s.io/size: "4", leaderworkerset.sigs.k8s.io/subgroup-size: "1", leaderworkerset.sigs.k8s.io/subgroup-policy-type: LeaderExcluded}`, true, "{}"),
			want:    map[string]string{"vllm-1-3": group + "4; train; leader 1; segment-1 1; segment-2 1; segment-3 1; in segment-3"},
		},
		"subgroups, the leader first": {
			objects: lwsScene(halves+", startupPolicy: LeaderReady", `{leaderworkerset.sigs.k8s.io/size: "4", leaderworkerset.sigs.k8s.io/subgroup-size: "2"}`, true, "{}"),
			want:    map[string]string{"vllm-1": group + "1; train; segment-0 1; segment-1 0; in segment-0"},
		},
		"subgroups of many pods": {
			objects: lwsScene("leaderWorkerTemplate: {}", `{leaderworkerset.sigs.k8s.io/size: "2147483647", leaderworkerset.sigs.k8s.io/subgroup-size: "2147483645"}`, true, "{}"),
			want:    map[string]string{"vllm-1": group + "2147483647; train; segment-0 2147483645; segment-1 2; in segment-0"},
		},
		"a worker whose place is not known": {
			objects: lwsScene(halves, `{leaderworkerset.sigs.k8s.io/subgroup-size: "2"}`, true, "{}"),
			want:    map[string]string{"vllm-1-3": group + "4; train; segment-0 2; segment-1 2; MissingLabel"},
		},
		"a worker of no replica": {
			objects: replace(lwsScene(five, "{}", true, "{}"), `leaderworkerset.sigs.k8s.io/group-index: "1", `, ""),
			want:    map[string]string{"vllm-1-3": `error: rule LeaderWorkerSet: label leaderworkerset.sigs.k8s.io/group-index of pod vllm-1-3 has to be the index of its replica, and is ""`},
		},
		"too many subgroups": {
			objects: lwsScene("leaderWorkerTemplate: {size: 2000000000, subGroupPolicy: {subGroupSize: 1}}", `{leaderworkerset.sigs.k8s.io/size: "2000000000", leaderworkerset.sigs.k8s.io/subgroup-size: "1"}`, true, "{}"),
			want:    map[string]string{"vllm-1": "error: LeaderWorkerSet vllm: spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize: Invalid value: 1: makes 2000000000 subgroups of 2000000000 pods; there may be 9999"},
		},
		"a set of a size that is none": {
			objects: lwsScene("leaderWorkerTemplate: {size: big}", "{}", true, "{}"),
			want:    map[string]string{"vllm-1": `error: LeaderWorkerSet vllm: spec.leaderWorkerTemplate.size: Invalid value: "big": must be a whole number`},
		},
	})
	sameGroup(t, lwsScene(five, "{}", true, "{}"), []string{"vllm-0"}, []string{"vllm-1", "vllm-1-3"})
}
