package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/owners"
)

func kindsOf(config Config) []string {
	var out []string
	for _, rule := range config.Rules {
		for _, kind := range rule.Kinds() {
			out = append(out, kind.String())
		}
	}
	return out
}

func TestShipped(t *testing.T) {
	config, errs := Shipped()
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	want := []string{
		"SeldonDeployment.machinelearning.seldon.io", "VirtualMachineInstance.kubevirt.io", "PipelineRun.tekton.dev", "TaskRun.tekton.dev",
		"DevWorkspace.workspace.devfile.io", "SPOTRequest.egx.nvidia.io",
	}
	if diff := cmp.Diff(want, kindsOf(config)); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

// everything has each kind of entry; types is as KAI's users write it.
func everything() map[string]string {
	return map[string]string{
		TypesKey: `[
  {"typeName": "Job", "group": "batch", "priorityName": "build", "preemptibility": "non-preemptible"},
  {"typeName": "TFJob.kubeflow.org", "queue": "research", "nodePool": "h100", "minMember": 2, "markUnschedulable": false, "schedulingBackoff": 1},
  {"typeName": "Notebook", "priorityName": "inference"}]`,
		PassOverKey: "- {group: tekton.dev, kind: PipelineRun}\n- {kind: Pod}\n",
		RulesKey:    "- {group: example.com, kind: CustomJob, minMemberPath: spec.minAvailable}\n",
	}
}

func TestParse(t *testing.T) {
	config, errs := Parse(everything())
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	kinds := map[schema.GroupKind]podgrouper.KindDefaults{
		{Group: "batch", Kind: "Job"}:          {PriorityClassName: "build", Preemptibility: "non-preemptible"},
		{Group: "kubeflow.org", Kind: "TFJob"}: {Queue: "research", NodePool: "h100", MinMember: 2, MarkUnschedulable: ptr.To(false), SchedulingBackoff: ptr.To[int32](1)},
		{Kind: "Notebook"}:                     {PriorityClassName: "inference"},
	}
	if diff := cmp.Diff(kinds, config.Kinds); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]schema.GroupKind{{Group: "tekton.dev", Kind: "PipelineRun"}, {Kind: "Pod"}}, config.PassedOver); diff != "" {
		t.Errorf("passed over (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"CustomJob.example.com"}, kindsOf(config)); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if config, errs := Parse(nil); len(errs) > 0 || len(config.Kinds)+len(config.PassedOver)+len(config.Rules) > 0 {
		t.Errorf("nothing reads as %v, %v", config, errs)
	}
}

// What is wrong is left out and told, and the rest counts.
func TestMistakesAreLeftOut(t *testing.T) {
	tests := map[string]struct {
		key, text             string
		want                  string
		types, passOver, rule int
	}{
		"no list":                   {TypesKey, "{", "data.types: Invalid value: must be a list in YAML or JSON", 0, 2, 1},
		"a misspelt field":          {TypesKey, `[{"typeName": "Job", "priorityNmae": "train"}]`, `unknown field "priorityNmae"`, 0, 2, 1},
		"a text for a number":       {TypesKey, `[{"typeName": "Job", "minMember": "all"}]`, "data.types: Invalid value", 0, 2, 1},
		"no type":                   {TypesKey, `[{"group": "batch"}, {"typeName": "A"}]`, "data.types[0].typeName: Required value", 1, 2, 1},
		"twice":                     {TypesKey, `[{"typeName": "Job", "group": "batch"}, {"typeName": "Job.batch"}]`, `data.types[1].typeName: Duplicate value: "Job.batch"`, 1, 2, 1},
		"a class that is no name":   {TypesKey, `[{"typeName": "A", "priorityName": "No Name"}]`, "data.types[0].priorityName: Invalid value", 0, 2, 1},
		"a queue that is no name":   {TypesKey, `[{"typeName": "A", "queue": "No Name"}]`, "data.types[0].queue: Invalid value", 0, 2, 1},
		"a node pool that is none":  {TypesKey, `[{"typeName": "A", "nodePool": "a/b"}]`, "data.types[0].nodePool: Invalid value", 0, 2, 1},
		"preemptible or not":        {TypesKey, `[{"typeName": "A", "preemptibility": "maybe"}]`, `data.types[0].preemptibility: Unsupported value: "maybe"`, 0, 2, 1},
		"a minimum of none":         {TypesKey, `[{"typeName": "A", "minMember": 0}]`, "data.types[0].minMember: Invalid value", 0, 2, 1},
		"another back-off":          {TypesKey, `[{"typeName": "A", "schedulingBackoff": 2}]`, "data.types[0].schedulingBackoff: Unsupported value", 0, 2, 1},
		"a kind without a name":     {PassOverKey, "[{group: example.com}, {kind: A}]", "data.passOver[0].kind: Required value", 3, 1, 1},
		"a kind with too much":      {PassOverKey, "[{kind: A, version: v1}]", `unknown field "version"`, 3, 0, 1},
		"a rule that is wrong":      {RulesKey, "[{kind: A, groupPer: Node}, {kind: B}]", "data.rules[0].groupPer: Unsupported value", 3, 2, 1},
		"two rules for a kind":      {RulesKey, "[{kind: A}, {kind: A}]", `data.rules[1]: Duplicate value: "A"`, 3, 2, 1},
		"a rule of unknown fields":  {RulesKey, "[{kind: A, minMember: 3}]", `unknown field "minMember"`, 3, 2, 0},
		"something that is no list": {"rule", "[]", `data: Unsupported value: "rule": supported values: "passOver", "rules", "types"`, 3, 2, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			data := everything()
			data[tc.key] = tc.text
			config, errs := Parse(data)
			if len(errs) != 1 || !strings.Contains(errs[0].Error(), tc.want) {
				t.Errorf("got %v, want %s", errs, tc.want)
			}
			if len(config.Kinds) != tc.types || len(config.PassedOver) != tc.passOver || len(config.Rules) != tc.rule {
				t.Errorf("%d types, %d to pass over, %d rules", len(config.Kinds), len(config.PassedOver), len(config.Rules))
			}
		})
	}
}

type noClasses struct{}

func (noClasses) Exists(string) bool    { return true }
func (noClasses) GlobalDefault() string { return "" }

// group is what a pod of a kind is grouped by.
func group(t *testing.T, config Config, kind schema.GroupKind) podgrouper.Identity {
	t.Helper()
	owner := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: kind.Group + "/v1", Kind: kind.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "owner", UID: "owner-uid"},
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "pod-uid"}}
	options := podgrouper.Options{Schedulers: map[string]podgrouper.BackEnd{"default-scheduler": podgrouper.KAI}, PriorityClasses: noClasses{}}
	id, err := config.Grouper(options).Identify(pod, owners.Chain{Owners: []*metav1.PartialObjectMetadata{owner}})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestMergedConfigurationGroups(t *testing.T) {
	shipped, errs := Shipped()
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	with := func(data map[string]string) Config {
		config, errs := Parse(data)
		if len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		return Merge(shipped, config)
	}
	workflow := schema.GroupKind{Group: "argoproj.io", Kind: "Workflow"}
	seldon := schema.GroupKind{Group: "machinelearning.seldon.io", Kind: "SeldonDeployment"}
	tests := map[string]struct {
		data        map[string]string
		kind        schema.GroupKind
		rule, class string
	}{
		"a shipped rule":               {nil, seldon, "Declared:SeldonDeployment.machinelearning.seldon.io", "train"},
		"it is replaced":               {map[string]string{RulesKey: "[{group: machinelearning.seldon.io, kind: SeldonDeployment, priorityClassName: inference}]"}, seldon, "Declared:SeldonDeployment.machinelearning.seldon.io", "inference"},
		"it is passed over":            {map[string]string{PassOverKey: "[{group: machinelearning.seldon.io, kind: SeldonDeployment}]"}, seldon, "Pod", "train"},
		"a shipped kind to pass over":  {nil, schema.GroupKind{Group: "nvidia.com", Kind: "DynamoGraphDeployment"}, "Pod", "train"},
		"a built-in kind to pass over": {nil, workflow, "Pod", "train"},
		"it gets a rule":               {map[string]string{RulesKey: "[{group: argoproj.io, kind: Workflow}]"}, workflow, "Declared:Workflow.argoproj.io", "train"},
		"it gets both":                 {map[string]string{RulesKey: "[{group: argoproj.io, kind: Workflow}]", PassOverKey: "[{group: argoproj.io, kind: Workflow}]"}, workflow, "Pod", "train"},
		"defaults":                     {map[string]string{TypesKey: "[{typeName: Job.batch, priorityName: build}]"}, schema.GroupKind{Group: "batch", Kind: "Job"}, "Job", "build"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if id := group(t, with(tc.data), tc.kind); id.Rule != tc.rule || id.PriorityClassName != tc.class {
				t.Errorf("rule %q with class %q, want %q with %q", id.Rule, id.PriorityClassName, tc.rule, tc.class)
			}
		})
	}
	if len(shipped.Kinds) > 0 {
		t.Errorf("merging changed what is shipped: %v", shipped.Kinds)
	}
	merged := Merge(Config{Kinds: map[schema.GroupKind]podgrouper.KindDefaults{workflow: {Queue: "a"}}}, Config{Kinds: map[schema.GroupKind]podgrouper.KindDefaults{workflow: {Queue: "b"}}})
	if merged.Kinds[workflow].Queue != "b" {
		t.Errorf("got %v", merged.Kinds)
	}
}
