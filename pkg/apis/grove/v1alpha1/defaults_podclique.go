package v1alpha1

// SetDefaults_PodClique sets the defaults of a PodClique that are fixed constants.
// replicas has none: 0 is a clique that is scaled to nothing.
func SetDefaults_PodClique(clique *PodClique) {
	if clique.Spec.WorkloadType == "" {
		clique.Spec.WorkloadType = WorkloadTypeInference
	}
}
