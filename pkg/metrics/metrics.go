// Package metrics holds the metrics that are Copse's own: Metrics of the
// controller-manager, whose work queues, reconciles and clients are measured by
// controller-runtime, and Server of the API server, whose requests and storage are
// measured by the generic server.
package metrics

import "github.com/prometheus/client_golang/prometheus"

// Metrics are the controller-manager's own metrics.
type Metrics struct {
	decisions *prometheus.CounterVec
}

// New returns the metrics, registered with a registry.
func New(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "copse_decisions_total",
			Help: "Decisions about PodCliqueSets that were recorded, by the reason of the event that tells of them.",
		}, []string{"reason"}),
	}
	return m, registry.Register(m.decisions)
}

// Decision counts a recorded decision.
func (m *Metrics) Decision(reason string) {
	m.decisions.WithLabelValues(reason).Inc()
}
