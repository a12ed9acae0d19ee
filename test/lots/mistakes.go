package lots

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// mistake makes a set such that it has to be refused. It says which field is wrong, and
// whether the set is such that the mistake can be made in it.
type mistake struct {
	name string
	make func(*draw) (field string, made bool)
}

// mistakes are those after which a set could never start, or nobody could say when.
func mistakes() []mistake {
	return []mistake{
		{"cliques start after each other", circle},
		{"a clique starts after itself", func(d *draw) (string, bool) {
			clique := d.clique()
			return d.startAfter(clique, clique.Name)
		}},
		{"a clique starts after one that there is not", func(d *draw) (string, bool) { return d.startAfter(d.clique(), "nobody") }},
		{"two orders", twoOrders},
		{"pods of Inference shall succeed", func(d *draw) (string, bool) {
			if !d.isStaged() || d.isTraining() || len(d.set.Spec.StartupPolicy.Rules) == 0 {
				return "", false
			}
			d.set.Spec.StartupPolicy.Rules[0].WaitForCliquesStatus = grovev1alpha1.CliqueStatusSucceeded
			return "spec.startupPolicy.rules[0].waitForCliquesStatus", true
		}},
		{"a rule names the last clique", func(d *draw) (string, bool) {
			names := d.names()
			return d.addRule(names[len(names)-1])
		}},
		{"a rule names nobody", func(d *draw) (string, bool) { return d.addRule("nobody") }},
		{"a clique has two rules", func(d *draw) (string, bool) { return d.addRule(d.names()[0]) }},
		{"a clique has no rule", func(d *draw) (string, bool) {
			if !d.isStaged() || len(d.set.Spec.StartupPolicy.Rules) < 2 {
				return "", false
			}
			d.set.Spec.StartupPolicy.Rules = d.set.Spec.StartupPolicy.Rules[1:]
			return "spec.startupPolicy.rules", true
		}},
		{"the barrier counts on more pods than there may be", func(d *draw) (string, bool) {
			i := d.IntN(len(d.template().Cliques))
			clique := &d.template().Cliques[i]
			if d.set.Spec.GroupSchedulingConfig == nil || clique.Spec.Replicas == 1 {
				return "", false
			}
			d.set.Spec.GroupSchedulingConfig.TargetCliques = []string{clique.Name}
			clique.Spec.MinAvailable = ptr.To(clique.Spec.Replicas - 1)
			return fmt.Sprintf("spec.template.cliques[%d].spec.minAvailable", i), true
		}},
		{"one target of the barrier waits for another", waitAmongTargets},
		{"a target that there is not", func(d *draw) (string, bool) {
			if d.set.Spec.GroupSchedulingConfig == nil {
				return "", false
			}
			d.set.Spec.GroupSchedulingConfig.TargetCliques = []string{"nobody"}
			return "spec.groupSchedulingConfig.targetCliques[0]", true
		}},
		{"a barrier without time", func(d *draw) (string, bool) {
			if d.set.Spec.GroupSchedulingConfig == nil {
				return "", false
			}
			d.set.Spec.GroupSchedulingConfig.TimeoutAfterSeconds = ptr.To[int32](0)
			return "spec.groupSchedulingConfig.timeoutAfterSeconds", true
		}},
		{"a minimum that cannot be reached", func(d *draw) (string, bool) {
			i := d.IntN(len(d.template().Cliques))
			d.template().Cliques[i].Spec.MinAvailable = ptr.To(d.template().Cliques[i].Spec.Replicas + 1)
			return fmt.Sprintf("spec.template.cliques[%d].spec.minAvailable", i), true
		}},
		{"a minimum of nothing", func(d *draw) (string, bool) {
			i := d.IntN(len(d.template().Cliques))
			d.template().Cliques[i].Spec.MinAvailable = ptr.To[int32](0)
			return fmt.Sprintf("spec.template.cliques[%d].spec.minAvailable", i), true
		}},
		{"more copies are needed than there are", func(d *draw) (string, bool) {
			groups := d.template().PodCliqueScalingGroups
			if len(groups) == 0 {
				return "", false
			}
			groups[0].MinAvailable = ptr.To(ptr.Deref(groups[0].Replicas, 1) + 1)
			return "spec.template.podCliqueScalingGroups[0].minAvailable", true
		}},
		{"pods of Training that never finish", func(d *draw) (string, bool) {
			i := d.IntN(len(d.template().Cliques))
			d.template().Cliques[i].Spec.PodSpec.RestartPolicy = corev1.RestartPolicyAlways
			return fmt.Sprintf("spec.template.cliques[%d].spec.podSpec.restartPolicy", i), d.isTraining()
		}},
	}
}

func (d *draw) isStaged() bool {
	policy := d.set.Spec.StartupPolicy
	return policy != nil && policy.StartupPolicyOrder == grovev1alpha1.StartupPolicyInOrder
}

func (d *draw) isExplicit() bool {
	return ptr.Deref(d.template().StartupType, "") == grovev1alpha1.CliqueStartupTypeExplicit
}

// startAfter lets a clique start after one more.
func (d *draw) startAfter(clique *grovev1alpha1.PodCliqueTemplateSpec, other string) (string, bool) {
	if !d.isExplicit() || slices.Contains(clique.Spec.StartsAfter, other) {
		return "", false
	}
	clique.Spec.StartsAfter = append(clique.Spec.StartsAfter, other)
	i := slices.Index(d.names(), clique.Name)
	return fmt.Sprintf("spec.template.cliques[%d].spec.startsAfter[%d]", i, len(clique.Spec.StartsAfter)-1), true
}

// circle lets some of the cliques, in any order, start after each other.
func circle(d *draw) (string, bool) {
	order := d.Perm(len(d.template().Cliques))
	if !d.isExplicit() || len(order) < 2 {
		return "", false
	}
	order = order[:2+d.IntN(len(order)-1)]
	for place, i := range order {
		next := d.template().Cliques[order[(place+1)%len(order)]].Name
		if clique := &d.template().Cliques[i]; !slices.Contains(clique.Spec.StartsAfter, next) {
			clique.Spec.StartsAfter = append(clique.Spec.StartsAfter, next)
		}
	}
	return "spec.template.cliques", true
}

func twoOrders(d *draw) (string, bool) {
	if !d.isStaged() {
		return "", false
	}
	d.template().StartupType = ptr.To(grovev1alpha1.CliqueStartupTypeInOrder)
	return "spec.startupPolicy.startupPolicyOrder", true
}

// addRule adds a rule to those of a set that says something of each clique.
func (d *draw) addRule(clique string) (string, bool) {
	if !d.isStaged() || len(d.set.Spec.StartupPolicy.Rules) == 0 {
		return "", false
	}
	policy := d.set.Spec.StartupPolicy
	policy.Rules = append(policy.Rules, grovev1alpha1.StartupPolicyRule{TargetCliques: []string{clique}, WaitForCliquesStatus: grovev1alpha1.CliqueStatusReady})
	return fmt.Sprintf("spec.startupPolicy.rules[%d].targetCliques[0]", len(policy.Rules)-1), true
}

// waitAmongTargets makes targets of two cliques of which one waits for the other.
func waitAmongTargets(d *draw) (string, bool) {
	if d.set.Spec.GroupSchedulingConfig == nil {
		return "", false
	}
	for _, i := range d.Perm(len(d.template().Cliques)) {
		for j := range d.template().Cliques {
			one, other := &d.template().Cliques[i], &d.template().Cliques[j]
			if i == j || !d.isOrdered(one.Name, []string{other.Name}) {
				continue
			}
			one.Spec.MinAvailable, other.Spec.MinAvailable = nil, nil
			d.set.Spec.GroupSchedulingConfig.TargetCliques = []string{one.Name, other.Name}
			return "spec.groupSchedulingConfig.targetCliques", true
		}
	}
	return "", false
}
