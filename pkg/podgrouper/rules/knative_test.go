package rules_test

import "testing"

func TestKnative(t *testing.T) {
	revision := func(annotations string) string {
		return `
{apiVersion: serving.knative.dev/v1, kind: Service, metadata: {name: hello, labels: {kai.scheduler/preemptibility: preemptible}}, spec: {}}
---
{apiVersion: serving.knative.dev/v1, kind: Configuration, metadata: {name: hello}, under: Service/hello, spec: {}}
---
{apiVersion: serving.knative.dev/v1, kind: Revision, metadata: {name: hello-00001, annotations: ` + annotations + `}, under: Configuration/hello, spec: {}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: hello-00001-deployment}, under: Revision/hello-00001, spec: {}}
---
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: hello-00001-deployment-x}, under: Deployment/hello-00001-deployment, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: hello-a}, under: ReplicaSet/hello-00001-deployment-x, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: hello-b}, under: ReplicaSet/hello-00001-deployment-x, spec: {}}
`
	}
	runCases(t, map[string]groupCase{
		"a revision": {objects: revision("{}"), want: map[string]string{"hello-a": "pg-hello-00001 of Revision/hello-00001, 1; inference"}},
		"with a scale": {
			objects: revision(`{autoscaling.knative.dev/min-scale: "3"}`),
			want:    map[string]string{"hello-a": "pg-hello-00001 of Revision/hello-00001, 3; inference"},
		},
		"with a scale, spelt as before": {
			objects: revision(`{autoscaling.knative.dev/minScale: "3"}`),
			want:    map[string]string{"hello-a": "pg-hello-00001 of Revision/hello-00001, 3; inference"},
		},
		"down to nothing": {
			objects: revision(`{autoscaling.knative.dev/min-scale: "0"}`),
			want:    map[string]string{"hello-a": "pg-hello-00001 of Revision/hello-00001, 1; inference"},
		},
		"no more than it begins with": {
			objects: revision(`{autoscaling.knative.dev/initial-scale: "2", scheduler.grove.io/min-member: "4"}`),
			want:    map[string]string{"hello-a": "pg-hello-00001 of Revision/hello-00001, 2; inference; MinMemberTooHigh"},
		},
	})
	sameGroup(t, revision("{}"), []string{"hello-a", "hello-b"})
}
