package metrics

import "github.com/prometheus/client_golang/prometheus"

// grouping are the metrics of the pod grouper.
type grouping struct {
	made       *prometheus.CounterVec
	notGrouped *prometheus.CounterVec
}

func newGrouping() grouping {
	return grouping{
		made: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "copse_pod_grouper_groups_total",
			Help: "PodGroups that the pod grouper has made, by the rule that decided.",
		}, []string{"rule"}),
		notGrouped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "copse_pod_grouper_exempt_pods_total",
			Help: "Looks at pods of namespaces that are grouped that found them to be in no group, by the reason.",
		}, []string{"reason"}),
	}
}

// PodGroupMade counts a PodGroup that was made by a rule.
func (m *Metrics) PodGroupMade(rule string) {
	m.grouping.made.WithLabelValues(rule).Inc()
}

// PodNotGrouped counts a pod that is in no group, and why.
func (m *Metrics) PodNotGrouped(reason string) {
	m.grouping.notGrouped.WithLabelValues(reason).Inc()
}
