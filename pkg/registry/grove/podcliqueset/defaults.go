package podcliqueset

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

// Defaults are the defaults that depend on other fields, on flags or on the old object
// (D15). Those that are constants are in pkg/apis/grove/v1alpha1.
type Defaults struct {
	// TerminationDelay is given to new inference sets that name none. Nil leaves gang
	// termination off (D1).
	TerminationDelay *metav1.Duration
}

func (d Defaults) forCreate(pcs *grove.PodCliqueSet) {
	if pcs.Spec.WorkloadType != grove.WorkloadTypeTraining && pcs.Spec.Template.TerminationDelay == nil && d.TerminationDelay != nil {
		pcs.Spec.Template.TerminationDelay = ptr.To(*d.TerminationDelay)
	}
	setDefaults(&pcs.Spec)
}

// forUpdate fills what is absent and immutable from the old object, so that applying a
// manifest again with other replicas does not move a default that depends on them.
func (d Defaults) forUpdate(pcs, old *grove.PodCliqueSet) {
	if pcs.Spec.StartupPolicy != nil && old.Spec.StartupPolicy != nil && len(pcs.Spec.StartupPolicy.Rules) == 0 {
		pcs.Spec.StartupPolicy.Rules = old.Spec.StartupPolicy.Rules
	}
	template := &pcs.Spec.Template
	for i := range template.Cliques {
		clique := &template.Cliques[i]
		before := old.Spec.Template.Clique(clique.Name)
		if before == nil {
			continue
		}
		if clique.Spec.MinAvailable == nil {
			clique.Spec.MinAvailable = before.Spec.MinAvailable
		}
		// Pods of a training set are immutable.
		if pod := &clique.Spec.PodSpec; pod.RestartPolicy == "" && old.Spec.WorkloadType == grove.WorkloadTypeTraining {
			pod.RestartPolicy = before.Spec.PodSpec.RestartPolicy
		}
	}
	for i := range template.PodCliqueScalingGroups {
		group := &template.PodCliqueScalingGroups[i]
		if before := old.Spec.Template.ScalingGroup(group.Name); before != nil && group.MinAvailable == nil {
			group.MinAvailable = before.MinAvailable
		}
	}
	setDefaults(&pcs.Spec)
}

func setDefaults(spec *grove.PodCliqueSetSpec) {
	training := spec.WorkloadType == grove.WorkloadTypeTraining
	template := &spec.Template
	if training && template.TerminationDelay == nil {
		template.TerminationDelay = &metav1.Duration{Duration: 0 * time.Second}
	}
	for i := range template.Cliques {
		clique := &template.Cliques[i].Spec
		if clique.PodSpec.RestartPolicy == "" {
			clique.PodSpec.RestartPolicy = corev1.RestartPolicyAlways
			if training {
				clique.PodSpec.RestartPolicy = corev1.RestartPolicyNever
			}
		}
		if clique.MinAvailable == nil {
			clique.MinAvailable = ptr.To(clique.Replicas)
		}
		setScaleDefaults(clique.AutoScalingConfig, clique.Replicas)
	}
	for i := range template.PodCliqueScalingGroups {
		group := &template.PodCliqueScalingGroups[i]
		replicas := ptr.Deref(group.Replicas, 1)
		if group.MinAvailable == nil {
			group.MinAvailable = ptr.To[int32](1)
			if training {
				group.MinAvailable = ptr.To(replicas)
			}
		}
		setScaleDefaults(group.ScaleConfig, replicas)
	}
	setStartupDefaults(spec)
}

func setScaleDefaults(config *grove.AutoScalingConfig, replicas int32) {
	if config != nil && config.MinReplicas == nil {
		config.MinReplicas = ptr.To(replicas)
	}
}

// setStartupDefaults makes every clique but the last wait to be Ready (seed 003).
func setStartupDefaults(spec *grove.PodCliqueSetSpec) {
	policy := spec.StartupPolicy
	if policy == nil || policy.StartupPolicyOrder != grove.StartupPolicyInOrder || len(policy.Rules) > 0 || len(spec.Template.Cliques) < 2 {
		return
	}
	rule := grove.StartupPolicyRule{WaitForCliquesStatus: grove.CliqueStatusReady}
	for _, clique := range spec.Template.Cliques[:len(spec.Template.Cliques)-1] {
		rule.TargetCliques = append(rule.TargetCliques, clique.Name)
	}
	policy.Rules = []grove.StartupPolicyRule{rule}
}
