package naming

// Names inside a pod that Copse uses itself, and that a template may not.
const (
	// BarrierContainer is the init container that holds a pod until every pod of its gang
	// has started (D21).
	BarrierContainer = "group-scheduling-init"
	// OrderContainer is the init container that holds a pod until the cliques before its
	// own are there (D20).
	OrderContainer = "grove-initc"
	// BarrierVolume is the volume in which the barrier container looks for its signal.
	BarrierVolume = "group-scheduling"
	// TokenVolume is the identity of the container that waits; no other mounts it (D22).
	TokenVolume = "start-gate-token"
	// PendingGate is the scheduling gate that holds a pod until its gang is complete.
	PendingGate = "grove.io/podgang-pending-creation"
)
