package rules_test

import "testing"

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 3
  template: {spec: {containers: [{name: web, image: nginx}]}}
---
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-7d4b}, under: Deployment/web, spec: {replicas: 3}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web-7d4b-a}, under: ReplicaSet/web-7d4b, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web-7d4b-b}, under: ReplicaSet/web-7d4b, spec: {}}
`

const deploymentWithMinimum = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {scheduler.grove.io/min-member: "2"}}
spec: {replicas: 3}
---
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: old}, under: Deployment/web}
---
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: new}, under: Deployment/web}
---
{apiVersion: v1, kind: Pod, metadata: {name: old-a}, under: ReplicaSet/old, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: new-a}, under: ReplicaSet/new, spec: {}}
`

func TestApps(t *testing.T) {
	statefulSet := func(spec, annotations string) string {
		return `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, annotations: ` + annotations + `}
spec: ` + spec + `
---
{apiVersion: v1, kind: Pod, metadata: {name: db-0}, under: StatefulSet/db, spec: {}}
`
	}
	runCases(t, map[string]groupCase{
		"a pod of a Deployment is a group": {
			objects: deployment,
			want: map[string]string{
				"web-7d4b-a": "pg-web-7d4b-a of Pod/web-7d4b-a, 1; inference",
				"web-7d4b-b": "pg-web-7d4b-b of Pod/web-7d4b-b, 1; inference",
			},
		},
		"a Deployment with a minimum is one, through its updates": {
			objects: deploymentWithMinimum,
			want: map[string]string{
				"old-a": "pg-web of Deployment/web, 2; inference",
				"new-a": "pg-web of Deployment/web, 2; inference",
			},
		},
		"a ReplicaSet of nobody": {
			objects: `
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web, annotations: {scheduler.grove.io/min-member: "5"}}, spec: {replicas: 2}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web-a}, under: ReplicaSet/web, spec: {}}
`,
			want: map[string]string{"web-a": "pg-web of ReplicaSet/web, 2; train; MinMemberTooHigh"},
		},
		"a StatefulSet": {
			objects: statefulSet("{replicas: 3}", "{}"),
			want:    map[string]string{"db-0": "pg-db of StatefulSet/db, 1; train"},
		},
		"pods that come one by one cannot wait for each other": {
			objects: statefulSet("{replicas: 3}", `{scheduler.grove.io/min-member: "3"}`),
			want:    map[string]string{"db-0": "pg-db of StatefulSet/db, 1; train; MinMemberTooHigh"},
		},
		"pods that come at once can": {
			objects: statefulSet("{replicas: 3, podManagementPolicy: Parallel}", `{scheduler.grove.io/min-member: "3"}`),
			want:    map[string]string{"db-0": "pg-db of StatefulSet/db, 3; train"},
		},
		"a mistake names the field": {
			objects: statefulSet("{replicas: three}", "{}"),
			want:    map[string]string{"db-0": `error: StatefulSet db: spec.replicas: Invalid value: "three": must be a whole number`},
		},
	})
	sameGroup(t, deploymentWithMinimum, []string{"new-a", "old-a"})
	sameGroup(t, deployment, []string{"web-7d4b-a"}, []string{"web-7d4b-b"})
}
