package integration

import (
	"fmt"
	"strings"
	"testing"
)

// replaceOnce fails the test when a manifest is not changed: a refusal of the unchanged
// manifest would prove nothing.
func replaceOnce(t *testing.T, manifest, old, replacement string) string {
	t.Helper()
	if strings.Count(manifest, old) == 0 {
		t.Fatalf("%q is not in the manifest", old)
	}
	return strings.Replace(manifest, old, replacement, 1)
}

func TestBadInputIsRefusedWithThePathOfTheField(t *testing.T) {
	ns := cluster.Namespace(t)
	tests := map[string]struct {
		base, old, replacement string
		want                   []string
	}{
		"unknown field":                 {training, "replicas: 1", "replicas: 1\n  replcas: 2", []string{"replcas", "unknown field"}},
		"unknown field, deep":           {training, "replicas: 2", "replicas: 2\n          minAvailabel: 1", []string{"minAvailabel", "unknown field"}},
		"wrong type":                    {training, "replicas: 1", "replicas: many", []string{"replicas"}},
		"wrong enum":                    {training, "workloadType: Training", "workloadType: Trainning", []string{"spec.workloadType", `supported values: "Inference", "Training"`}},
		"negative replicas":             {inference, "replicas: 1", "replicas: -1", []string{"spec.replicas", "must be 0 or more"}},
		"no replicas in training":       {training, "replicas: 1", "replicas: 0", []string{"spec.replicas", "at least 1"}},
		"negative clique replicas":      {training, "replicas: 2", "replicas: -2", []string{"spec.template.cliques[0].spec.replicas"}},
		"negative maxRestarts":          {training, "workloadType: Training", "workloadType: Training\n  trainingSpec: {maxRestarts: -1}", []string{"spec.trainingSpec.maxRestarts", "must be 0 or more"}},
		"no maxRuntime":                 {training, "workloadType: Training", "workloadType: Training\n  trainingSpec: {maxRuntime: 0s}", []string{"spec.trainingSpec.maxRuntime"}},
		"duration without unit":         {training, "workloadType: Training", "workloadType: Training\n  trainingSpec: {maxRuntime: \"5\"}", []string{"missing unit"}},
		"trainingSpec in inference":     {inference, "replicas: 1", "replicas: 1\n  trainingSpec: {maxRestarts: 1}", []string{"spec.trainingSpec", "workloadType Training"}},
		"minAvailable over replicas":    {training, "replicas: 2", "replicas: 2\n          minAvailable: 3", []string{"spec.template.cliques[0].spec.minAvailable", "greater than replicas, 2"}},
		"restartPolicy in training":     {training, "podSpec:", "podSpec:\n            restartPolicy: Always", []string{"spec.template.cliques[0].spec.podSpec.restartPolicy", `"Never", "OnFailure"`}},
		"no container":                  {training, "containers: [{name: main, image: example.com/trainer}]", "containers: []", []string{"spec.template.cliques[0].spec.podSpec.containers", "Required"}},
		"clique name is no DNS label":   {training, "name: worker", "name: Worker_1", []string{"spec.template.cliques[0].name"}},
		"autoscaling in training":       {training, "replicas: 2", "replicas: 2\n          autoScalingConfig: {maxReplicas: 4}", []string{"spec.template.cliques[0].spec.autoScalingConfig", "does not change its size"}},
		"too many pods":                 {inference, "replicas: 2", "replicas: 2147483647", []string{"more than 20000 pods"}},
		"name too long for a host name": {inference, "name: llm}", "name: " + strings.Repeat("a", 60) + "}", []string{"spec.template.cliques[0].name", "of at most 63"}},
		"set name is no DNS label":      {inference, "name: llm}", "name: llm.v1}", []string{"metadata.name"}},
		"delay of 0 in inference":       {inference, "template:", "template:\n    terminationDelay: 0s", []string{"spec.template.terminationDelay", "more than 0s"}},
		"rule for an unknown clique":    {training, "workloadType: Training", "workloadType: Training\n  startupPolicy: {startupPolicyOrder: InOrder, rules: [{targetCliques: [nobody]}]}", []string{"spec.startupPolicy.rules[0].targetCliques[0]", "Not found"}},
		"barrier for an unknown clique": {training, "workloadType: Training", "workloadType: Training\n  groupSchedulingConfig: {targetCliques: [nobody]}", []string{"spec.groupSchedulingConfig.targetCliques[0]", "Not found"}},
		"barrier for cliques in order":  {inference, "template:", "groupSchedulingConfig: {}\n  template:\n    cliqueStartupType: CliqueStartupTypeInOrder", []string{"spec.groupSchedulingConfig.targetCliques", "name one clique"}},
		"reserved container name":       {training, "name: main", "name: group-scheduling-init", []string{"spec.template.cliques[0].spec.podSpec.containers[0].name", "choose another"}},
		"more bytes than etcd takes":    {training, "podSpec:", "podSpec:\n            hostname: " + strings.Repeat("a", 1500000), []string{"spec", "keep files and scripts in ConfigMaps"}},
		"attempt in the template":       {training, "replicas: 2", "replicas: 2\n          attempt: 3", []string{"spec.template.cliques[0].spec.attempt"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			out := ns.ApplyFails(replaceOnce(t, tc.base, tc.old, tc.replacement))
			contains(t, out, tc.want...)
			if strings.Contains(out, "Internal error") || strings.Contains(out, "InternalError") {
				t.Errorf("a user's mistake is called an internal error: %s", out)
			}
		})
	}
	t.Run("no clique", func(t *testing.T) {
		out := ns.ApplyFails("apiVersion: grove.io/v1alpha1\nkind: PodCliqueSet\nmetadata: {name: none}\nspec: {replicas: 1, template: {cliques: []}}\n")
		contains(t, out, "spec.template.cliques", "at least one clique")
	})
	t.Run("null clique", func(t *testing.T) {
		out := ns.ApplyFails("apiVersion: grove.io/v1alpha1\nkind: PodCliqueSet\nmetadata: {name: none}\nspec: {replicas: 1, template: {cliques: [null]}}\n", "--server-side", "--validate=false")
		if strings.Contains(out, "nternal") && strings.Contains(out, "panic") {
			t.Errorf("a null clique is answered with %s", out)
		}
	})
	if out := ns.Kubectl("get", "pcs", "-o", "name"); out != "" {
		t.Errorf("a refused set was stored: %s", out)
	}
}

func TestImmutableFieldsAreRefusedOnUpdate(t *testing.T) {
	ns := cluster.Namespace(t)
	ns.Apply(replaceOnce(t, training, "exit-after: 2s", "exit-after: 1h"))
	ns.Apply(inference)
	running := replaceOnce(t, training, "exit-after: 2s", "exit-after: 1h")
	tests := map[string]struct {
		manifest string
		want     []string
	}{
		"workload type":        {replaceOnce(t, inference, "replicas: 1", "replicas: 1\n  workloadType: Training"), []string{"spec.workloadType", "immutable"}},
		"training replicas":    {replaceOnce(t, running, "replicas: 1", "replicas: 2"), []string{"spec.replicas", "immutable in Training"}},
		"training template":    {replaceOnce(t, running, "example.com/trainer", "example.com/trainer:2"), []string{"spec.template.cliques[0]", "immutable in Training"}},
		"training clique size": {replaceOnce(t, running, "replicas: 2", "replicas: 3"), []string{"spec.template.cliques[0].spec.replicas", "immutable in Training"}},
		"minAvailable":         {replaceOnce(t, inference, "replicas: 2", "replicas: 2\n          minAvailable: 1"), []string{"spec.template.cliques[0].spec.minAvailable", "immutable"}},
		"a clique more":        {inference + "      - {name: more, spec: {podSpec: {containers: [{name: main, image: i}]}}}\n", []string{"spec.template.cliques[2].name", "cannot be added"}},
		"startup type":         {replaceOnce(t, inference, "template:", "template:\n    cliqueStartupType: CliqueStartupTypeInOrder"), []string{"spec.template.cliqueStartupType", "immutable"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			contains(t, ns.ApplyFails(tc.manifest), tc.want...)
		})
	}
	// What a defaulted value depends on may change without moving it.
	ns.Apply(replaceOnce(t, inference, "replicas: 2", "replicas: 3"))
	if got := ns.Kubectl("get", "pcs", "llm", "-o", "jsonpath={.spec.template.cliques[0].spec.minAvailable}"); got != "2" {
		t.Errorf("minAvailable moved to %s", got)
	}
	// A budget may change while the job runs.
	ns.Apply(replaceOnce(t, running, "workloadType: Training", "workloadType: Training\n  trainingSpec: {maxRestarts: 3}"))
}

func TestInertFieldsAreAcceptedWithAWarning(t *testing.T) {
	ns := cluster.Namespace(t)
	packed := replaceOnce(t, training, "name: job", "name: packed, annotations: {grove.io/mnnvl-group: a}")
	packed = replaceOnce(t, packed, "template:", "template:\n    topologyConstraint: {topologyName: nowhere, pack: {required: rack, preferred: host}}")
	out := ns.Apply(packed)
	contains(t, out, "Warning: metadata.annotations[grove.io/mnnvl-group]: accepted, but nothing acts on it yet")
	// What the set's scheduler is never told is as well.
	contains(t, out, "Warning: spec.template.topologyConstraint.pack.preferred: nothing acts on it: kube-scheduler knows no preferences")
	// What the cluster lacks is warned of as well.
	contains(t, out, `Warning: spec.template.topologyConstraint.topologyName: there is no ClusterTopologyBinding "nowhere"`)
	if out := ns.Apply(replaceOnce(t, training, "name: job", "name: plain")); strings.Contains(out, "Warning") {
		t.Errorf("a set without such fields is warned about: %s", out)
	}
}

// The status endpoint is a state machine, also for an administrator.
func TestStatusRefusesWhatCannotHappen(t *testing.T) {
	ns := cluster.Namespace(t)
	ns.Apply(training)
	ns.WaitFor("pcs/job", "jsonpath={.status.phase}=Succeeded")
	for patch, want := range map[string]string{
		`{"status":{"phase":"Running"}}`:                  "Succeeded is final",
		`{"status":{"startTime":"2020-01-01T00:00:00Z"}}`: "is written once",
		`{"status":{"restartCount":1}}`:                   "status.restartCount",
		`{"status":{"availableReplicas":9}}`:              "status.availableReplicas",
		`{"status":{"conditions":[]}}`:                    "go together",
	} {
		contains(t, ns.KubectlFails("patch", "pcs", "job", "--subresource=status", "--type=merge", "-p", patch), want)
	}
	for patch, want := range map[string]string{
		`{"status":{"completedIndexes":"0"}}`:   "only grow",
		`{"status":{"completedIndexes":"1,0"}}`: "status.completedIndexes",
		`{"status":{"wasAvailable":false}}`:     "stays true",
		`{"status":{"observedAttempt":4}}`:      "status.observedAttempt",
	} {
		contains(t, ns.KubectlFails("patch", "pclq", "job-0-worker", "--subresource=status", "--type=merge", "-p", patch), want)
	}
	// Neither endpoint writes what the other owns.
	before := ns.Kubectl("get", "pcs", "job", "-o", "jsonpath={.metadata.generation}")
	ns.Kubectl("patch", "pcs", "job", "--subresource=status", "--type=merge", "-p", `{"spec":{"replicas":5},"metadata":{"labels":{"a":"b"}}}`)
	ns.Kubectl("patch", "pcs", "job", "--type=merge", "-p", `{"status":{"phase":"Failed"}}`)
	if got := ns.Kubectl("get", "pcs", "job", "-o", "jsonpath={.metadata.generation} {.spec.replicas} {.status.phase} {.metadata.labels.a}"); got != fmt.Sprintf("%s 1 Succeeded ", before) {
		t.Errorf("generation, replicas, phase and label are %q", got)
	}
}
