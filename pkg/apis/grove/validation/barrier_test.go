package validation

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

func barrier(targets ...string) func(*grove.PodCliqueSet) {
	return func(pcs *grove.PodCliqueSet) {
		pcs.Spec.GroupSchedulingConfig = &grove.GroupSchedulingConfig{TargetCliques: targets}
	}
}

func TestValidateBarrier(t *testing.T) {
	const targets = "spec.groupSchedulingConfig.targetCliques"
	timeout := func(seconds int32) func(*grove.PodCliqueSet) {
		return all(barrier(), func(pcs *grove.PodCliqueSet) { pcs.Spec.GroupSchedulingConfig.TimeoutAfterSeconds = &seconds })
	}
	inOrder := startupInOrder(grove.StartupPolicyRule{TargetCliques: []string{"router"}, WaitForCliquesStatus: grove.CliqueStatusReady})
	tolerant := cliqueSpec(1, func(s *grove.PodCliqueSpec) { s.Replicas = 3 })
	scaled := cliqueSpec(1, func(s *grove.PodCliqueSpec) { s.AutoScalingConfig = &grove.AutoScalingConfig{MaxReplicas: 3} })
	testCreate(t, mkPodCliqueSet, ValidatePodCliqueSet, map[string]createCase[grove.PodCliqueSet]{
		"all cliques":            {tweak: barrier()},
		"one clique":             {tweak: barrier("worker")},
		"both cliques":           {tweak: barrier("worker", "router")},
		"a timeout":              {tweak: timeout(1)},
		"timeout is not 0":       {tweak: timeout(0), want: field.ErrorList{invalid("spec.groupSchedulingConfig.timeoutAfterSeconds")}},
		"timeout is positive":    {tweak: timeout(-1), want: field.ErrorList{invalid("spec.groupSchedulingConfig.timeoutAfterSeconds")}},
		"a target is known":      {tweak: barrier("worker", "nobody"), want: field.ErrorList{notFound(targets + "[1]")}},
		"a target has a name":    {tweak: barrier(""), want: field.ErrorList{notFound(targets + "[0]")}},
		"a target is named once": {tweak: barrier("worker", "worker"), want: field.ErrorList{duplicate(targets + "[1]")}},

		"a target has minAvailable of replicas":             {tweak: all(tolerant, barrier("worker")), want: field.ErrorList{invalid(clique1 + ".spec.minAvailable")}},
		"without targets all have minAvailable of replicas": {tweak: all(tolerant, barrier()), want: field.ErrorList{invalid(clique1 + ".spec.minAvailable")}},
		"a clique that is no target may have less":          {tweak: all(tolerant, barrier("router"))},
		"a target without minAvailable":                     {tweak: all(barrier(), cliqueSpec(1, func(s *grove.PodCliqueSpec) { s.Replicas, s.MinAvailable = 3, nil }))},
		"a target has no autoscaling":                       {tweak: all(scaled, barrier("worker")), want: field.ErrorList{forbidden(clique1 + ".spec.autoScalingConfig")}},
		"a clique that is no target may have autoscaling":   {tweak: all(scaled, barrier("router"))},
		"a target's scaling group may have autoscaling": {tweak: all(withGroup("decode", "worker"), barrier(), group(0, func(g *grove.PodCliqueScalingGroupConfig) {
			g.Replicas, g.ScaleConfig = ptr.To[int32](3), &grove.AutoScalingConfig{MaxReplicas: 3}
		}))},

		"startupPolicy InOrder with one target":      {tweak: all(inOrder, barrier("worker"))},
		"startupPolicy InOrder excludes two targets": {tweak: all(inOrder, barrier("worker", "router")), want: field.ErrorList{forbidden(targets)}},
		"startupPolicy InOrder excludes all cliques": {tweak: all(inOrder, barrier()), want: field.ErrorList{forbidden(targets)}},
		"startupPolicy AnyOrder with two targets": {tweak: all(barrier(), func(pcs *grove.PodCliqueSet) {
			pcs.Spec.StartupPolicy = &grove.StartupPolicy{StartupPolicyOrder: grove.StartupPolicyAnyOrder}
		})},
		"cliqueStartupType InOrder with one target":          {tweak: all(startupType(grove.CliqueStartupTypeInOrder), barrier("router"))},
		"cliqueStartupType InOrder excludes two targets":     {tweak: all(startupType(grove.CliqueStartupTypeInOrder), barrier("router", "worker")), want: field.ErrorList{forbidden(targets)}},
		"Explicit without an order among the targets":        {tweak: all(explicit(nil, []string{"a"}, []string{"a"}), barrier("b", "c"))},
		"a target does not start after another":              {tweak: all(explicit(nil, []string{"a"}), barrier()), want: field.ErrorList{forbidden(targets)}},
		"a target does not start after another in two steps": {tweak: all(explicit(nil, []string{"a"}, []string{"b"}), barrier("a", "c")), want: field.ErrorList{forbidden(targets)}},
		"in AnyOrder startsAfter is no order":                {tweak: all(explicit(nil, []string{"a"}), startupType(grove.CliqueStartupTypeAnyOrder), barrier())},
	})
}
