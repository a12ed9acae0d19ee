package gang

// HighestPriority is the highest that Kubernetes' own scheduler takes for a group of pods
// (HighestUserDefinablePriority of Kubernetes 1.37). The classes that come with a cluster,
// system-cluster-critical and system-node-critical, are above it.
const HighestPriority int32 = 1_000_000_000
