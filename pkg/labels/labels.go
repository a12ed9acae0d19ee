// Package labels holds the keys of the labels, annotations and finalizers that Copse
// puts on objects, and the label sets of each kind of object. The keys are Grove's.
// It makes no decision: nothing is looked up, adopted or deleted by a label.
package labels

import "strconv"

// Labels that every managed object carries.
const (
	// AppName is the name of the object, for people.
	AppName = "app.kubernetes.io/name"
	// ManagedBy says who manages the object.
	ManagedBy = "app.kubernetes.io/managed-by"
	// PartOf is the name of the PodCliqueSet.
	PartOf = "app.kubernetes.io/part-of"
	// Component says what the object is for.
	Component = "app.kubernetes.io/component"

	// ManagedByValue is Grove's value of ManagedBy, which selectors in the field use.
	ManagedByValue = "grove-operator"
)

// Values of Component.
const (
	ComponentHeadlessService       = "pcs-headless-service"
	ComponentScalingGroup          = "pcs-podcliquescalinggroup"
	ComponentPodGang               = "podgang"
	ComponentPodClique             = "pcs-podclique"
	ComponentScalingGroupPodClique = "pcsg-podclique"
	ComponentStartGate             = "pcs-startgate"
	ComponentAutoscaler            = "pcs-hpa"
	ComponentResourceClaim         = "resource-claim"
)

// Domain is the beginning of the keys that are Grove's, and so the controllers' alone.
const Domain = "grove.io/"

// Labels that say where an object is in its PodCliqueSet.
const (
	// PodClique is the name of the PodClique of a pod.
	PodClique = "grove.io/podclique"
	// PodGang is the name of the PodGang of a pod or PodClique.
	PodGang = "grove.io/podgang"
	// BasePodGang is the name of the base PodGang; only on members of scaled gangs.
	BasePodGang = "grove.io/base-podgang"
	// ReplicaIndex is the index of the PodCliqueSet's replica.
	ReplicaIndex = "grove.io/podcliqueset-replica-index"
	// ScalingGroup is the name of the PodCliqueScalingGroup.
	ScalingGroup = "grove.io/podcliquescalinggroup"
	// ScalingGroupReplicaIndex is the index of the copy of the scaling group.
	ScalingGroupReplicaIndex = "grove.io/podcliquescalinggroup-replica-index"
	// ScalingGroupFirstPod is on the first pod of the first clique of each copy of a scaling
	// group alone: one pod stands for a copy where pods are counted.
	ScalingGroupFirstPod = "grove.io/podcliquescalinggroup-first-pod"
	// PodIndex is the index of a pod in its PodClique.
	PodIndex = "grove.io/podclique-pod-index"
	// PodTemplateHash is the hash of the pod template that a pod was made from.
	PodTemplateHash = "grove.io/pod-template-hash"
	// SchedulerName is the scheduler of a PodGang.
	SchedulerName = "grove.io/scheduler-name"
	// RestartAttempt is the attempt that a pod, PodGang or group belongs to.
	RestartAttempt = "grove.io/restart-attempt"
)

// Annotations.
const (
	// GenerationHash is the hash of the set's templates that a PodClique was made from.
	GenerationHash = "grove.io/podcliqueset-generation-hash"
	// TopologyName is the name by which a PodGang's scheduler knows the topology of its
	// constraints; only on PodGangs that have some.
	TopologyName = "grove.io/topology-name"
	// AllocationSeen is on ResourceClaims that pods share: the first pod for which the claim has
	// been allocated, by its UID.
	AllocationSeen = "grove.io/allocation-seen"
	// FabricGroup names a group of pods, on sets, cliques and scaling groups, that share a
	// memory fabric between nodes; "none" takes a part out of its set's.
	FabricGroup = "grove.io/mnnvl-group"
)

// Finalizers, set by the API server when an object is created.
const (
	PodCliqueSetFinalizer          = "grove.io/podcliqueset.grove.io"
	PodCliqueFinalizer             = "grove.io/podclique.grove.io"
	PodCliqueScalingGroupFinalizer = "grove.io/podcliquescalinggroup.grove.io"
)

// Managed returns the labels of a managed object: name is the object's, set the
// PodCliqueSet's.
func Managed(name, set, component string) map[string]string {
	return map[string]string{
		AppName:   name,
		ManagedBy: ManagedByValue,
		PartOf:    set,
		Component: component,
	}
}

// ForReplica returns the labels of a managed object of one replica of a PodCliqueSet.
func ForReplica(name, set, component string, replica int32) map[string]string {
	labels := Managed(name, set, component)
	labels[ReplicaIndex] = Index(replica)
	return labels
}

// IsManaged says that labels are of an object that is managed here. The controllers' cache holds
// no other pods.
func IsManaged(all map[string]string) bool {
	return all[ManagedBy] == ManagedByValue
}

// Index renders an index or attempt as a label value.
func Index(index int32) string {
	return strconv.FormatInt(int64(index), 10)
}

// ParseIndex reads an index or attempt from a label value; ok is false unless the
// value is one that Index renders.
func ParseIndex(value string) (index int32, ok bool) {
	n, err := strconv.ParseUint(value, 10, 31)
	if err != nil || (value[0] == '0' && value != "0") {
		return 0, false
	}
	return int32(n), true
}
