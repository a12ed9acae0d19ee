package v1alpha1

// SetDefaults_PodCliqueScalingGroup sets the defaults of a PodCliqueScalingGroup that
// are fixed constants. replicas has none: 0 is a group that is scaled to nothing.
func SetDefaults_PodCliqueScalingGroup(group *PodCliqueScalingGroup) {
	if group.Spec.WorkloadType == "" {
		group.Spec.WorkloadType = WorkloadTypeInference
	}
}
