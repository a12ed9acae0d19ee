package validation

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

// startupInOrder makes cliques start in the order of the list, with the given rules.
func startupInOrder(rules ...grove.StartupPolicyRule) func(*grove.PodCliqueSet) {
	return func(pcs *grove.PodCliqueSet) {
		pcs.Spec.StartupPolicy = &grove.StartupPolicy{StartupPolicyOrder: grove.StartupPolicyInOrder, Rules: rules}
	}
}

func waitReady(cliques ...string) grove.StartupPolicyRule {
	return grove.StartupPolicyRule{TargetCliques: cliques, WaitForCliquesStatus: grove.CliqueStatusReady}
}

func TestValidatePodCliqueSetStartupPolicy(t *testing.T) {
	const (
		rules = "spec.startupPolicy.rules"
		rule0 = "spec.startupPolicy.rules[0]"
		rule1 = "spec.startupPolicy.rules[1]"
	)
	succeeded := grove.StartupPolicyRule{TargetCliques: []string{"init"}, WaitForCliquesStatus: grove.CliqueStatusSucceeded}
	// The set has cliques init, router and worker, in this order.
	mk := func(tweaks ...func(*grove.PodCliqueSet)) *grove.PodCliqueSet {
		pcs := mkPodCliqueSet()
		pcs.Spec.Template.Cliques = append([]grove.PodCliqueTemplateSpec{mkClique("init")}, pcs.Spec.Template.Cliques...)
		all(tweaks...)(pcs)
		return pcs
	}
	order := func(order grove.StartupPolicyOrder) func(*grove.PodCliqueSet) {
		return func(pcs *grove.PodCliqueSet) { pcs.Spec.StartupPolicy.StartupPolicyOrder = order }
	}
	testCreate(t, mk, ValidatePodCliqueSet, map[string]createCase[grove.PodCliqueSet]{
		"one rule for all cliques":              {tweak: startupInOrder(waitReady("init", "router"))},
		"a rule for each clique":                {tweak: startupInOrder(waitReady("init"), waitReady("router"))},
		"rules in another order than cliques":   {tweak: startupInOrder(waitReady("router"), waitReady("init"))},
		"a training set waits for Succeeded":    {tweak: all(training, startupInOrder(succeeded, waitReady("router")))},
		"AnyOrder without rules":                {tweak: all(startupInOrder(), order(grove.StartupPolicyAnyOrder))},
		"AnyOrder with a rule for some cliques": {tweak: all(startupInOrder(waitReady("init")), order(grove.StartupPolicyAnyOrder))},
		"AnyOrder with cliqueStartupType InOrder": {tweak: all(startupInOrder(), order(grove.StartupPolicyAnyOrder),
			startupType(grove.CliqueStartupTypeInOrder))},
		"InOrder without a cliqueStartupType": {tweak: all(startupInOrder(waitReady("init", "router")), func(pcs *grove.PodCliqueSet) {
			pcs.Spec.Template.StartupType = nil
		})},
		"one clique needs no rule": {tweak: all(startupInOrder(), func(pcs *grove.PodCliqueSet) {
			pcs.Spec.Template.Cliques = pcs.Spec.Template.Cliques[:1]
		})},

		"order is known": {
			tweak: all(startupInOrder(waitReady("init", "router")), order("Backwards")),
			want:  field.ErrorList{unsupported("spec.startupPolicy.startupPolicyOrder")},
		},
		"status is known": {
			tweak: startupInOrder(grove.StartupPolicyRule{TargetCliques: []string{"init"}, WaitForCliquesStatus: "Scheduled"}, waitReady("router")),
			want:  field.ErrorList{unsupported(rule0 + ".waitForCliquesStatus")},
		},
		"inference pods never reach Succeeded": {
			tweak: startupInOrder(succeeded, waitReady("router")),
			want:  field.ErrorList{invalid(rule0 + ".waitForCliquesStatus")},
		},
		"inference pods never reach Succeeded, in AnyOrder too": {
			tweak: all(startupInOrder(succeeded), order(grove.StartupPolicyAnyOrder)),
			want:  field.ErrorList{invalid(rule0 + ".waitForCliquesStatus")},
		},
		"a rule names a clique": {
			tweak: startupInOrder(waitReady("init", "router"), waitReady()),
			want:  field.ErrorList{required(rule1 + ".targetCliques")},
		},
		"unknown clique": {
			tweak: startupInOrder(waitReady("init", "router", "nobody")),
			want:  field.ErrorList{notFound(rule0 + ".targetCliques[2]")},
		},
		"clique twice in a rule": {
			tweak: startupInOrder(waitReady("init", "router", "init")),
			want:  field.ErrorList{duplicate(rule0 + ".targetCliques[2]")},
		},
		"clique in two rules": {
			tweak: startupInOrder(waitReady("init", "router"), waitReady("router")),
			want:  field.ErrorList{duplicate(rule1 + ".targetCliques[0]")},
		},
		"last clique": {
			tweak: startupInOrder(waitReady("init", "router", "worker")),
			want:  field.ErrorList{invalid(rule0 + ".targetCliques[2]")},
		},
		"missing clique": {
			tweak: startupInOrder(waitReady("router")),
			want:  field.ErrorList{required(rules)},
		},
		"no rules, which the strategy fills before validation": {
			tweak: startupInOrder(),
			want:  field.ErrorList{required(rules), required(rules)},
		},
		"cliqueStartupType InOrder beside InOrder": {
			tweak: all(startupInOrder(waitReady("init", "router")), startupType(grove.CliqueStartupTypeInOrder)),
			want:  field.ErrorList{invalid("spec.startupPolicy.startupPolicyOrder")},
		},
		"cliqueStartupType Explicit beside InOrder": {
			tweak: all(startupInOrder(waitReady("init", "router")), startupType(grove.CliqueStartupTypeExplicit)),
			want:  field.ErrorList{invalid("spec.startupPolicy.startupPolicyOrder")},
		},
	})
}

// The container in which pods wait is for Linux.
func TestPodsThatWaitRunOnLinux(t *testing.T) {
	const os1 = clique1 + ".spec.podSpec.os.name"
	runsOn := func(name corev1.OSName) func(*grove.PodCliqueSet) {
		return cliqueSpec(1, func(s *grove.PodCliqueSpec) { s.PodSpec.OS = &corev1.PodOS{Name: name} })
	}
	startsAfter := func(names ...string) func(*grove.PodCliqueSet) {
		return all(startupType(grove.CliqueStartupTypeExplicit), cliqueSpec(1, func(s *grove.PodCliqueSpec) { s.StartsAfter = names }))
	}
	testCreate(t, mkPodCliqueSet, ValidatePodCliqueSet, map[string]createCase[grove.PodCliqueSet]{
		"Windows in any order":          {tweak: runsOn(corev1.Windows)},
		"Windows in stages":             {tweak: all(runsOn(corev1.Windows), startupInOrder(waitReady("router")))},
		"Windows at the barrier":        {tweak: all(runsOn(corev1.Windows), barrier("worker")), want: field.ErrorList{invalid(os1)}},
		"Windows at the barrier of all": {tweak: all(runsOn(corev1.Windows), barrier()), want: field.ErrorList{invalid(os1)}},
		"Windows beside the barrier":    {tweak: all(runsOn(corev1.Windows), barrier("router"))},
		"Windows after another":         {tweak: all(runsOn(corev1.Windows), startsAfter("router")), want: field.ErrorList{invalid(os1)}},
		"Windows after no other":        {tweak: all(runsOn(corev1.Windows), startsAfter())},
		"Windows second in order":       {tweak: all(runsOn(corev1.Windows), startupType(grove.CliqueStartupTypeInOrder)), want: field.ErrorList{invalid(os1)}},
		"Linux second in order":         {tweak: all(runsOn(corev1.Linux), startupType(grove.CliqueStartupTypeInOrder))},
		"Windows first in order":        {tweak: all(startupType(grove.CliqueStartupTypeInOrder), cliqueSpec(0, func(s *grove.PodCliqueSpec) { s.PodSpec.OS = &corev1.PodOS{Name: corev1.Windows} }))},
	})
}
