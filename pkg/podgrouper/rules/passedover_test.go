package rules_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/config"
	"github.com/copse-dev/copse/pkg/podgrouper/rules"
)

func TestWhatIsPassedOver(t *testing.T) {
	const workflow = "{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: flow, labels: {kai.scheduler/queue: research}}, spec: {entrypoint: main}}\n---\n"
	const bert = `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: bert}, under: UNDER, spec: {pytorchReplicaSpecs: {Worker: {replicas: 2}}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: bert-worker-0, labels: {training.kubeflow.org/replica-type: worker}}, under: PyTorchJob/bert, spec: {}}
`
	const prep = `{apiVersion: batch/v1, kind: Job, metadata: {name: prep}, under: UNDER, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: prep-x}, under: Job/prep, spec: {}}
`
	const sweep = "{apiVersion: example.com/v1, kind: Sweep, metadata: {name: sweep, labels: {priorityClassName: high}}}\n---\n"
	runCases(t, map[string]groupCase{
		"a PyTorchJob of a workflow": {
			objects: workflow + replace(bert, "UNDER", "Workflow/flow"),
			want:    map[string]string{"bert-worker-0": "pg-bert of PyTorchJob/bert, 2; train; worker 2; in worker"},
		},
		"a pod of a workflow": {
			objects: workflow + "{apiVersion: v1, kind: Pod, metadata: {name: step}, under: Workflow/flow, spec: {}}",
			want:    map[string]string{"step": "pg-step of Pod/step, 1; train"},
		},
		"a workflow of a workflow": {
			objects: workflow + "{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: inner}, under: Workflow/flow}\n---\n" + replace(bert, "UNDER", "Workflow/inner"),
			want:    map[string]string{"bert-worker-0": "pg-bert of PyTorchJob/bert, 2; train; worker 2; in worker"},
		},
		"a workflow of something": {
			objects: sweep + replace(workflow, "spec:", "under: Sweep/sweep, spec:") + "{apiVersion: v1, kind: Pod, metadata: {name: step}, under: Workflow/flow, spec: {}}",
			want:    map[string]string{"step": "pg-step of Pod/step, 1; high"},
		},
		"a Job of something": {
			objects: sweep + replace(prep, "UNDER", "Sweep/sweep"),
			want:    map[string]string{"prep-x": "pg-prep of Job/prep, 1; high"},
		},
		"something below a workflow": {
			objects: workflow + replace(sweep, "}}", "}, under: Workflow/flow}") + "{apiVersion: v1, kind: Pod, metadata: {name: step}, under: Sweep/sweep, spec: {}}",
			want:    map[string]string{"step": "pg-sweep of Sweep/sweep, 1; high"},
		},
		"a pod of something of something": {
			objects: sweep + "{apiVersion: example.com/v1, kind: Trial, metadata: {name: trial}, under: Sweep/sweep}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: step}, under: Trial/trial, spec: {}}",
			want:    map[string]string{"step": "pg-sweep of Sweep/sweep, 1; high"},
		},
		"a pod of a pod of something": {
			objects: sweep + "{apiVersion: v1, kind: Pod, metadata: {name: main}, under: Sweep/sweep, spec: {}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: helper}, under: Pod/main, spec: {}}",
			want:    map[string]string{"main": "pg-sweep of Sweep/sweep, 1; high", "helper": "pg-sweep of Sweep/sweep, 1; high"},
		},
	})
}

// Each kind has one rule, and none that is passed over: it would never be asked.
func TestEachKindHasOneRule(t *testing.T) {
	by := map[schema.GroupKind]string{}
	for _, kind := range rules.PassedOver() {
		by[kind] = "passed over"
	}
	for _, rule := range append([]podgrouper.Rule{rules.Pod{}, rules.Default{}}, rules.All()...) {
		if rule.Name() == "" {
			t.Errorf("the rule for %v has no name", rule.Kinds())
		}
		for _, kind := range rule.Kinds() {
			if other, twice := by[kind]; twice {
				t.Errorf("%s has the rule %s and is %s", kind, rule.Name(), other)
			}
			by[kind] = rule.Name()
		}
	}
}

// Whatever stands above a kind that only orders work is no owner to be grouped by, though it
// has a rule: here a platform that declares itself. Nor is the kind itself, of a pod that is
// right below it.
func TestNothingAboveIsTheOwner(t *testing.T) {
	platform := config.Config{Rules: []podgrouper.Rule{declare(t, rules.Declaration{Group: "example.com", Kind: "Platform", ReplicasPath: "spec.replicas"})}}
	for _, kind := range []string{
		"argoproj.io/v1alpha1, kind: Workflow", "trainer.kubeflow.org/v1alpha1, kind: TrainJob", "batch/v1, kind: CronJob", "ray.io/v1, kind: RayJob",
		"ray.io/v1, kind: RayService", "serving.knative.dev/v1, kind: Service", "serving.knative.dev/v1, kind: Configuration", "nvidia.com/v1alpha1, kind: DynamoGraphDeployment",
	} {
		name := kind[strings.LastIndex(kind, " ")+1:]
		objects := `
{apiVersion: example.com/v1, kind: Platform, metadata: {name: platform}, spec: {replicas: 7}}
---
{apiVersion: ` + kind + `, metadata: {name: order}, under: Platform/platform}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: work}, under: ` + name + `/order, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: work-x}, under: Job/work, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: step}, under: ` + name + `/order, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: part}, under: Platform/platform, spec: {}}
`
		runCases(t, map[string]groupCase{name: {objects: objects, config: platform, want: map[string]string{
			"work-x": "pg-work of Job/work, 1; train",
			"step":   "pg-step of Pod/step, 1; train",
			"part":   "pg-platform of Platform/platform, 7; train",
		}}})
	}
}
