package rules_test

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/config"
	"github.com/copse-dev/copse/pkg/podgrouper/fields"
	"github.com/copse-dev/copse/pkg/podgrouper/rules"
)

// customJob is the example of seed 004, written as a rule: minAvailable, else replicas, else
// what is so by default.
func customJob(_ context.Context, _ podgrouper.Input, owner fields.Fields, _ client.Reader) (podgrouper.Shape, error) {
	for _, name := range []string{"minAvailable", "replicas"} {
		if count := owner.Count("spec", name); count != nil && *count > 0 {
			return podgrouper.Shape{MinMember: count}, nil
		}
	}
	return podgrouper.Shape{}, nil
}

func declare(t *testing.T, declaration rules.Declaration) podgrouper.Rule {
	t.Helper()
	rule, errs := rules.Declare(declaration, field.NewPath("rules"))
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return rule
}

func custom(spec, podSpec string) string {
	return `
{apiVersion: example.com/v1, kind: CustomJob, metadata: {name: custom}, spec: ` + spec + `}
---
{apiVersion: v1, kind: Pod, metadata: {name: custom-x}, under: CustomJob/custom, spec: ` + podSpec + `}
`
}

// The same in code and without: a kind of one's own.
func TestCustomJob(t *testing.T) {
	for name, rule := range map[string]podgrouper.Rule{
		"in code":  rules.PerOwner("example.com", "CustomJob", podgrouper.TrainPriorityClass, customJob),
		"declared": declare(t, rules.Declaration{Group: "example.com", Kind: "CustomJob", MinMemberPath: "spec.minAvailable", ReplicasPath: "spec.replicas"}),
	} {
		t.Run(name, func(t *testing.T) {
			with := config.Config{Rules: []podgrouper.Rule{rule}}
			of := func(want string) map[string]string {
				return map[string]string{"custom-x": "pg-custom of CustomJob/custom, " + want}
			}
			runCases(t, map[string]groupCase{
				"the minimum":  {objects: custom("{minAvailable: 3, replicas: 5}", "{}"), config: with, want: of("3; train")},
				"the replicas": {objects: custom("{replicas: 5}", "{}"), config: with, want: of("5; train")},
				"a minimum of 0 is none": {
					objects: custom("{minAvailable: 0, replicas: 5}", "{}"), config: with, want: of("5; train"),
				},
				"neither": {objects: custom("{}", "{}"), config: with, want: of("1; train")},
				"a text": {
					objects: custom("{minAvailable: three}", "{}"), config: with,
					want: map[string]string{"custom-x": `error: CustomJob custom: spec.minAvailable: Invalid value: "three": must be a whole number`},
				},
				"without the rule": {objects: custom("{minAvailable: 3, replicas: 5}", "{}"), want: of("1; train")},
			})
		})
	}
}

func TestDeclared(t *testing.T) {
	of := func(declaration rules.Declaration) config.Config {
		declaration.Group, declaration.Kind = "example.com", "CustomJob"
		return config.Config{Rules: []podgrouper.Rule{declare(t, declaration)}}
	}
	priority := of(rules.Declaration{PriorityClassPath: "spec.template.priority", PriorityClassName: "build"})
	runCases(t, map[string]groupCase{
		"a class":           {objects: custom("{}", "{}"), config: of(rules.Declaration{PriorityClassName: "build"}), want: map[string]string{"custom-x": "pg-custom of CustomJob/custom, 1; build"}},
		"a group per pod":   {objects: custom("{}", "{}"), config: of(rules.Declaration{GroupPer: rules.GroupPerPod}), want: map[string]string{"custom-x": "pg-custom-x of Pod/custom-x, 1; train"}},
		"a class by path":   {objects: custom("{template: {priority: high}}", "{}"), config: priority, want: map[string]string{"custom-x": "pg-custom of CustomJob/custom, 1; high"}},
		"no class at it":    {objects: custom("{}", "{}"), config: priority, want: map[string]string{"custom-x": "pg-custom of CustomJob/custom, 1; build"}},
		"an unknown class":  {objects: custom("{template: {priority: royal}}", "{}"), config: priority, want: map[string]string{"custom-x": "pg-custom of CustomJob/custom, 1; build; UnknownPriorityClass"}},
		"it is the owner's": {objects: custom("{template: {priority: high}}", "{priorityClassName: inference}"), config: priority, want: map[string]string{"custom-x": "pg-custom of CustomJob/custom, 1; high"}},
		"below its label": {
			objects: replace(custom("{template: {priority: high}}", "{}"), "{name: custom}", "{name: custom, labels: {priorityClassName: inference}}"), config: priority,
			want: map[string]string{"custom-x": "pg-custom of CustomJob/custom, 1; inference"},
		},
		"a minimum above the replicas": {
			objects: custom("{min: 5, replicas: 2}", "{}"), config: of(rules.Declaration{MinMemberPath: "spec.min", ReplicasPath: "spec.replicas"}),
			want: map[string]string{"custom-x": "pg-custom of CustomJob/custom, 2; train; MinMemberTooHigh"},
		},
		"a built-in rule is replaced": {
			objects: "{apiVersion: batch/v1, kind: Job, metadata: {name: job}, spec: {parallelism: 4}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: job-x}, under: Job/job, spec: {}}",
			config:  config.Config{Rules: []podgrouper.Rule{declare(t, rules.Declaration{Group: "batch", Kind: "Job", ReplicasPath: "spec.parallelism"})}},
			want:    map[string]string{"job-x": "pg-job of Job/job, 4; train"},
		},
	})
}

func TestDeclarationsThatAreWrong(t *testing.T) {
	tests := map[string]struct {
		declaration rules.Declaration
		want        string
	}{
		"no kind":         {rules.Declaration{Group: "example.com"}, "rules.kind: Required value"},
		"a group of what": {rules.Declaration{Kind: "A", GroupPer: "Node"}, `rules.groupPer: Unsupported value: "Node": supported values: "Owner", "Pod"`},
		"a minimum per pod": {
			rules.Declaration{Kind: "A", GroupPer: rules.GroupPerPod, MinMemberPath: "spec.min"}, "rules.minMemberPath: Forbidden: a group per pod has one pod",
		},
		"replicas per pod": {
			rules.Declaration{Kind: "A", GroupPer: rules.GroupPerPod, ReplicasPath: "spec.min"}, "rules.replicasPath: Forbidden",
		},
		"a path with a dot in front": {rules.Declaration{Kind: "A", MinMemberPath: ".spec.min"}, "rules.minMemberPath: Invalid value"},
		"a path through a list":      {rules.Declaration{Kind: "A", ReplicasPath: "spec.groups[0].replicas"}, "rules.replicasPath: Invalid value"},
		"a path to everything":       {rules.Declaration{Kind: "A", PriorityClassPath: "spec.*"}, "rules.priorityClassPath: Invalid value"},
		"a class that is no name":    {rules.Declaration{Kind: "A", PriorityClassName: "No Name"}, "rules.priorityClassName: Invalid value"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, errs := rules.Declare(tc.declaration, field.NewPath("rules"))
			if len(errs) != 1 || !strings.Contains(errs[0].Error(), tc.want) {
				t.Errorf("got %v, want %s", errs, tc.want)
			}
		})
	}
}
