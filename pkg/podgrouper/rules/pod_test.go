package rules_test

import "testing"

func TestPod(t *testing.T) {
	runCases(t, map[string]groupCase{
		"a pod of nobody": {
			objects: `{apiVersion: v1, kind: Pod, metadata: {name: shell}, spec: {}}`,
			want:    map[string]string{"shell": "pg-shell of Pod/shell, 1; train"},
		},
		"one pod is one pod": {
			objects: `{apiVersion: v1, kind: Pod, metadata: {name: shell, annotations: {scheduler.grove.io/min-member: "2"}}, spec: {}}`,
			want:    map[string]string{"shell": "pg-shell of Pod/shell, 1; train; MinMemberTooHigh"},
		},
		"a pod of a pod": {
			objects: `
{apiVersion: v1, kind: Pod, metadata: {name: parent}, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: child}, under: Pod/parent, spec: {}}
`,
			want: map[string]string{"parent": "pg-parent of Pod/parent, 1; train", "child": "pg-parent of Pod/parent, 1; train"},
		},
	})
}

func TestSpark(t *testing.T) {
	const submitted = `
{apiVersion: v1, kind: Pod, metadata: {name: pi-driver, labels: {spark-app-name: pi, spark-app-selector: spark-1a2b, spark-role: driver}}, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: pi-exec-1, labels: {spark-app-name: pi, spark-app-selector: spark-1a2b, spark-role: executor}}, under: Pod/pi-driver, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: other-driver, labels: {spark-app-name: pi, spark-app-selector: spark-3c4d, spark-role: driver}}, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: no-spark, labels: {spark-app-selector: spark-1a2b}}, spec: {}}
`
	const operated = `
{apiVersion: sparkoperator.k8s.io/v1beta2, kind: SparkApplication, metadata: {name: pi, labels: {priorityClassName: high}}, spec: {executor: {instances: 2}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: pi-driver, labels: {spark-app-name: pi, spark-app-selector: spark-1a2b}}, under: SparkApplication/pi, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: pi-exec-1, labels: {spark-app-name: pi, spark-app-selector: spark-1a2b}}, under: Pod/pi-driver, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: pi-submitter}, under: SparkApplication/pi, spec: {}}
`
	runCases(t, map[string]groupCase{
		"by spark-submit": {objects: submitted, want: map[string]string{
			"pi-driver":    "pg-spark-1a2b of Pod/pi-driver, 1; train",
			"pi-exec-1":    "pg-spark-1a2b of Pod/pi-driver, 1; train",
			"other-driver": "pg-spark-3c4d of Pod/other-driver, 1; train",
			"no-spark":     "pg-no-spark of Pod/no-spark, 1; train",
		}},
		"by the operator": {objects: operated, want: map[string]string{
			"pi-driver":    "pg-spark-1a2b of SparkApplication/pi, 1; high",
			"pi-exec-1":    "pg-spark-1a2b of SparkApplication/pi, 1; high",
			"pi-submitter": "pg-pi of SparkApplication/pi, 1; high",
		}},
	})
	sameGroup(t, submitted, []string{"no-spark"}, []string{"other-driver"}, []string{"pi-driver", "pi-exec-1"})
	sameGroup(t, operated, []string{"pi-driver", "pi-exec-1"}, []string{"pi-submitter"})
}
