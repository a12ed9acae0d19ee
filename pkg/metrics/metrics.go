// Package metrics holds the metrics that are Copse's own: Metrics of the
// controller-manager, whose work queues, reconciles and clients are measured by
// controller-runtime, and Server of the API server, whose requests and storage are
// measured by the generic server.
package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the controller-manager's own metrics.
type Metrics struct {
	registry  prometheus.Registerer
	decisions *prometheus.CounterVec
	delay     *prometheus.HistogramVec
	recovery  prometheus.Histogram
	grouping  grouping
}

// New returns the metrics, registered with a registry.
func New(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		registry: registry,
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "copse_decisions_total",
			Help: "Restarts, terminations, failures and successes that were recorded, by the reason of the event that tells of them.",
		}, []string{"reason"}),
		delay: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "copse_decision_delay_seconds",
			Help:    "Time from when the end of an attempt was due, by a failure or the end of its delay, to the recorded decision. Failures are known to the second.",
			Buckets: []float64{.1, .25, .5, 1, 2, 5, 10, 30, 60, 300},
		}, []string{"reason"}),
		recovery: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "copse_restart_recovery_seconds",
			Help:    "Time from the decision to restart replicas to all of them being available again.",
			Buckets: prometheus.ExponentialBuckets(0.5, 2, 13),
		}),
		grouping: newGrouping(),
	}
	for _, collector := range []prometheus.Collector{m.decisions, m.delay, m.recovery, m.grouping.made, m.grouping.notGrouped} {
		if err := registry.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Decision counts a recorded decision.
func (m *Metrics) Decision(reason string) {
	m.decisions.WithLabelValues(reason).Inc()
}

// DecisionDelay observes how long after it was due an attempt was ended.
func (m *Metrics) DecisionDelay(reason string, delay time.Duration) {
	m.delay.WithLabelValues(reason).Observe(max(delay, 0).Seconds())
}

// Recovered observes how long restarted replicas took to be available again.
func (m *Metrics) Recovered(took time.Duration) {
	m.recovery.Observe(max(took, 0).Seconds())
}
