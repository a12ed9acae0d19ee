// Package metrics holds the metrics of the controller-manager that are Copse's own;
// work queues, reconciles and clients are measured by controller-runtime.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var decisions = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "copse_decisions_total",
	Help: "Decisions about PodCliqueSets that were recorded, by the reason of the event that tells of them.",
}, []string{"reason"})

// Register adds the metrics to the registry that the manager serves.
func Register() error {
	return metrics.Registry.Register(decisions)
}

// Decision counts a recorded decision.
func Decision(reason string) {
	decisions.WithLabelValues(reason).Inc()
}
