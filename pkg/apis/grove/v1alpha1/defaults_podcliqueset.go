package v1alpha1

import "k8s.io/utils/ptr"

// DefaultTerminationGracePeriodSeconds is Grove's default for the pods of a clique.
const DefaultTerminationGracePeriodSeconds int64 = 30

// SetDefaults_PodCliqueSet sets the defaults that are fixed constants. It runs on
// every read from etcd too, so a default that depends on another field, on a flag
// or on the former object is set in the strategy instead (D15).
func SetDefaults_PodCliqueSet(pcs *PodCliqueSet) {
	spec := &pcs.Spec
	if spec.WorkloadType == "" {
		spec.WorkloadType = WorkloadTypeInference
	}
	if spec.UpdateStrategy != nil && spec.UpdateStrategy.Type == "" {
		spec.UpdateStrategy.Type = UpdateStrategyRollingRecreate
	}
	if spec.StartupPolicy != nil {
		setDefaultsStartupPolicy(spec.StartupPolicy)
	}
	template := &spec.Template
	if template.StartupType == nil {
		template.StartupType = ptr.To(CliqueStartupTypeAnyOrder)
	}
	if template.HeadlessServiceConfig == nil {
		template.HeadlessServiceConfig = &HeadlessServiceConfig{}
	}
	if template.HeadlessServiceConfig.PublishNotReadyAddresses == nil {
		template.HeadlessServiceConfig.PublishNotReadyAddresses = ptr.To(true)
	}
	for i := range template.Cliques {
		clique := &template.Cliques[i].Spec
		if clique.Replicas == 0 {
			clique.Replicas = 1
		}
		if clique.PodSpec.TerminationGracePeriodSeconds == nil {
			clique.PodSpec.TerminationGracePeriodSeconds = ptr.To(DefaultTerminationGracePeriodSeconds)
		}
	}
	for i := range template.PodCliqueScalingGroups {
		if template.PodCliqueScalingGroups[i].Replicas == nil {
			template.PodCliqueScalingGroups[i].Replicas = ptr.To[int32](1)
		}
	}
}

func setDefaultsStartupPolicy(policy *StartupPolicy) {
	if policy.StartupPolicyOrder == "" {
		policy.StartupPolicyOrder = StartupPolicyAnyOrder
	}
	for i := range policy.Rules {
		if policy.Rules[i].WaitForCliquesStatus == "" {
			policy.Rules[i].WaitForCliquesStatus = CliqueStatusReady
		}
	}
}
