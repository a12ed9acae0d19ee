package podgrouper

// Labels and annotations by which people steer how their pods are grouped. Where KAI has
// one it is KAI's, so that workloads need no change.
const (
	// QueueLabel names the queue; the key can be configured.
	QueueLabel = "kai.scheduler/queue"
	// ProjectLabel names the project, whose queue in a node pool is "<project>-<pool>".
	ProjectLabel = "project"
	// NodePoolLabel names the node pool; the key can be configured.
	NodePoolLabel = "kai.scheduler/node-pool"
	// PriorityClassLabel names the PriorityClass.
	PriorityClassLabel = "priorityClassName"
	// PreemptibilityLabel is "preemptible" or "non-preemptible".
	PreemptibilityLabel = "kai.scheduler/preemptibility"
	// MinMemberAnnotation is how many pods have to be scheduled together.
	MinMemberAnnotation = "scheduler.grove.io/min-member"
	// TopologyAnnotation names the topology whose levels the other two name.
	TopologyAnnotation = "kai.scheduler/topology"
	// RequiredPlacementAnnotation is the level that the pods of a group must share.
	RequiredPlacementAnnotation = "kai.scheduler/topology-required-placement"
	// PreferredPlacementAnnotation is the level that they should share.
	PreferredPlacementAnnotation = "kai.scheduler/topology-preferred-placement"
	// SkipAnnotation set to "true" on a pod or any of its owners leaves the pod alone.
	SkipAnnotation = "scheduler.grove.io/skip-pod-grouper"
	// KAISkipAnnotation is KAI's word for it.
	KAISkipAnnotation = "kai.scheduler/skip-podgrouper"
)

// NamespaceLabel set to NamespaceEnabled on a namespace has its pods grouped.
const (
	NamespaceLabel   = "scheduler.grove.io/pod-grouper"
	NamespaceEnabled = "enabled"
)

// Annotations and labels of pods that are in a group.
const (
	// SubGroupLabel is the subgroup of a pod in its group, KAI's word as well.
	SubGroupLabel = "kai.scheduler/subgroup-name"
	// PodGroupAnnotation names the group of a pod.
	PodGroupAnnotation = "pod-group-name"
	// GroupedByAnnotation says who put a pod into its group. A pod with a group and without
	// this was put there by its user.
	GroupedByAnnotation = "scheduler.grove.io/grouped-by"
	// GroupedByValue is the value of GroupedByAnnotation.
	GroupedByValue = "pod-grouper"
	// MadeAsAnnotation of a PodGroup that the pod grouper made is its name. A copy by another
	// name is its user's.
	MadeAsAnnotation = "scheduler.grove.io/made-as"
)

// PriorityClasses of workloads that ask for none (seed 004).
const (
	TrainPriorityClass     = "train"
	BuildPriorityClass     = "build"
	InferencePriorityClass = "inference"
)

// Keys are the keys that an installation may choose.
type Keys struct {
	// Queue is the key of the label that names the queue; empty for QueueLabel.
	Queue string
	// NodePool is the key of the label, and of the node selector, that names the node pool;
	// empty for NodePoolLabel.
	NodePool string
}

// QueueKey is the key of the label that names the queue.
func (k Keys) QueueKey() string {
	if k.Queue == "" {
		return QueueLabel
	}
	return k.Queue
}

// NodePoolKey is the key of the label, and of the node selector, that names the node pool.
func (k Keys) NodePoolKey() string {
	if k.NodePool == "" {
		return NodePoolLabel
	}
	return k.NodePool
}
