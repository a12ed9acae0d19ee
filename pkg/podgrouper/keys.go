package podgrouper

// Labels and annotations by which people steer how their pods are grouped. Where KAI has
// one it is KAI's, so that workloads need no change.
const (
	// QueueLabel names the queue.
	QueueLabel = "kai.scheduler/queue"
	// ProjectLabel names the project, whose queue in a node pool is "<project>-<pool>".
	ProjectLabel = "project"
	// NodePoolLabel names the node pool; so does a node selector of this key.
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
	// FirstPodsAnnotation of a PodGroup that the pod grouper made is how many pods the
	// subgroups have that come first, where others come later: a scheduler that counts pods
	// alone waits for these.
	FirstPodsAnnotation = "scheduler.grove.io/first-pods"
)

// PriorityClasses of workloads that ask for none (seed 004).
const (
	TrainPriorityClass     = "train"
	BuildPriorityClass     = "build"
	InferencePriorityClass = "inference"
)

// DefaultQueue is KAI's own queue of workloads that name none: it places no group without a
// queue.
const DefaultQueue = "default-queue"
