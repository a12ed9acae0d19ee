package metrics

import "github.com/prometheus/client_golang/prometheus"

// Phase is what gangs and sets are counted by.
type Phase struct {
	// Kind is PodCliqueSet or PodGang.
	Kind string
	// WorkloadType is that of a PodCliqueSet, empty for a PodGang.
	WorkloadType string
	// Phase as their status tells it; empty before the first status.
	Phase string
}

// CountPhases adds gauges of how many sets and gangs are in which phase. They are counted
// when somebody asks, from what count returns.
func (m *Metrics) CountPhases(count func() map[Phase]int) error {
	return m.registry.Register(&phases{
		count: count,
		sets:  prometheus.NewDesc("copse_podcliquesets", "PodCliqueSets by workload type and phase.", []string{"workload_type", "phase"}, nil),
		gangs: prometheus.NewDesc("copse_podgangs", "PodGangs by phase.", []string{"phase"}, nil),
	})
}

type phases struct {
	count       func() map[Phase]int
	sets, gangs *prometheus.Desc
}

func (p *phases) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- p.sets
	descriptions <- p.gangs
}

func (p *phases) Collect(out chan<- prometheus.Metric) {
	for phase, n := range p.count() {
		if phase.Kind == "PodCliqueSet" {
			out <- prometheus.MustNewConstMetric(p.sets, prometheus.GaugeValue, float64(n), phase.WorkloadType, phase.Phase)
			continue
		}
		out <- prometheus.MustNewConstMetric(p.gangs, prometheus.GaugeValue, float64(n), phase.Phase)
	}
}
