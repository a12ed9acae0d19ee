package scheduling

import (
	corev1 "k8s.io/api/core/v1"
)

// Backends are the back ends of a cluster.
type Backends struct {
	// Others places the pods of schedulers that have no back end of their own.
	Others Backend
	// ByScheduler are back ends by the name that pods give their scheduler.
	ByScheduler map[string]Backend
}

// For is the back end of pods by the name of their scheduler; empty means Kubernetes' own.
func (b *Backends) For(schedulerName string) Backend {
	if schedulerName == "" {
		schedulerName = corev1.DefaultSchedulerName
	}
	if backend, ok := b.ByScheduler[schedulerName]; ok {
		return backend
	}
	return b.Others
}
