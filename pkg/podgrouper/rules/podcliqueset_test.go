package rules_test

import "testing"

const podCliqueSet = `
{apiVersion: grove.io/v1alpha1, kind: PodCliqueSet, metadata: {name: llm}, spec: {}}
---
{apiVersion: grove.io/v1alpha1, kind: PodClique, metadata: {name: llm-0-decode}, under: PodCliqueSet/llm, spec: {}}
---
apiVersion: scheduler.grove.io/v1alpha1
kind: PodGang
metadata: {name: llm-0 ANNOTATIONS}
under: PodCliqueSet/llm
spec:
  priorityClassName: high
  topologyConstraint: {packConstraint: {required: zone}}
  topologyConstraintGroupConfigs:
  - {name: serving, podGroupNames: [llm-0-decode, llm-0-prefill], topologyConstraint: {packConstraint: {preferred: rack}}}
  podgroups:
  - {name: llm-0-router, minReplicas: 1}
  - {name: llm-0-decode, minReplicas: 2, podReferences: [{namespace: NAMESPACE, name: llm-0-decode-0}]}
  - {name: llm-0-prefill, minReplicas: 3, topologyConstraint: {packConstraint: {required: host}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: first, labels: {grove.io/podgang: llm-0, grove.io/podclique: llm-0-decode, grove.io/restart-attempt: "0"}}, under: PodClique/llm-0-decode, spec: {priorityClassName: high}}
---
{apiVersion: v1, kind: Pod, metadata: {name: second, labels: {grove.io/podgang: llm-0, grove.io/podclique: llm-0-decode, grove.io/restart-attempt: "1"}}, under: PodClique/llm-0-decode, spec: {priorityClassName: high}}
---
{apiVersion: v1, kind: Pod, metadata: {name: stray}, under: PodClique/llm-0-decode, spec: {}}
`

func TestPodCliqueSet(t *testing.T) {
	named := replace(podCliqueSet, "ANNOTATIONS", ", annotations: {grove.io/topology-name: dc}", "NAMESPACE", "ns")
	runCases(t, map[string]groupCase{
		"as the gang says": {
			objects: named,
			want: map[string]string{
				"first":  "pg-llm-0-0 of PodGang/llm-0, 6; on dc:zone:; high; serving 2 groups on dc::rack; llm-0-router 1; serving/llm-0-decode 2; serving/llm-0-prefill 3 on dc:host:; in llm-0-decode",
				"second": "pg-llm-0-1 of PodGang/llm-0, 6; on dc:zone:; high; serving 2 groups on dc::rack; llm-0-router 1; serving/llm-0-decode 2; serving/llm-0-prefill 3 on dc:host:; in llm-0-decode",
				"stray":  "error: rule PodCliqueSet: pod stray of PodCliqueSet llm has no label grove.io/podgang",
			},
		},
		"a placement on no topology": {
			objects: replace(podCliqueSet, "ANNOTATIONS", "", "NAMESPACE", "ns"),
			want:    map[string]string{"first": "pg-llm-0-0 of PodGang/llm-0, 6; high; serving 2 groups; llm-0-router 1; serving/llm-0-decode 2; serving/llm-0-prefill 3; in llm-0-decode; IncompleteTopology; IncompleteTopology; IncompleteTopology"},
		},
		"a pod of another namespace": {
			objects: replace(podCliqueSet, "ANNOTATIONS", "", "NAMESPACE", "other"),
			want:    map[string]string{"first": "error: rule PodCliqueSet: PodGang llm-0: pod llm-0-decode-0 of group llm-0-decode is in namespace other; a gang is in one namespace"},
		},
		"no gang": {
			objects: replace(podCliqueSet, "name: llm-0 ANNOTATIONS", "name: llm-1", "NAMESPACE", "ns"),
			want:    map[string]string{"first": `error: rule PodCliqueSet: read PodGang ns/llm-0: podgangs.scheduler.grove.io "llm-0" not found`},
		},
	})
}
