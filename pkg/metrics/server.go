package metrics

import "github.com/prometheus/client_golang/prometheus"

// Server are the API server's own metrics.
type Server struct {
	refusals *prometheus.CounterVec
}

// NewServer returns the metrics, registered with a registry.
func NewServer(registry prometheus.Registerer) (*Server, error) {
	m := &Server{
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "copse_status_transitions_refused_total",
			Help: "Writes of a status that were refused because such a transition cannot happen, by resource and by the first field that is wrong. A controller that causes any has a defect.",
		}, []string{"resource", "field"}),
	}
	return m, registry.Register(m.refusals)
}

// StatusRefused counts a refused write of a status.
func (m *Server) StatusRefused(resource, field string) {
	m.refusals.WithLabelValues(resource, field).Inc()
}
