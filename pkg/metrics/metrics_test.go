package metrics

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestMetrics(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m, err := New(registry)
	if err != nil {
		t.Fatal(err)
	}
	m.Decision("ReplicaRestarting")
	m.Decision("ReplicaRestarting")
	m.DecisionDelay("ReplicaRestarting", 300*time.Millisecond)
	// A failure that is known to the second may lie ahead.
	m.DecisionDelay("ReplicaRestarting", -time.Second)
	m.Recovered(3 * time.Second)
	m.PodGroupMade("Default")
	m.PodNotGrouped("DaemonSet")
	if err := m.CountPhases(func() map[Phase]int {
		return map[Phase]int{
			{Kind: "PodCliqueSet", WorkloadType: "Training", Phase: "Running"}: 2,
			{Kind: "PodGang", Phase: "Pending"}:                                3,
		}
	}); err != nil {
		t.Fatal(err)
	}
	want := `
# HELP copse_decisions_total Restarts, terminations, failures and successes that were recorded, by the reason of the event that tells of them.
# TYPE copse_decisions_total counter
copse_decisions_total{reason="ReplicaRestarting"} 2
# HELP copse_pod_grouper_exempt_pods_total Looks at pods of namespaces that are grouped that found them to be in no group, by the reason.
# TYPE copse_pod_grouper_exempt_pods_total counter
copse_pod_grouper_exempt_pods_total{reason="DaemonSet"} 1
# HELP copse_pod_grouper_groups_total PodGroups that the pod grouper has made, by the rule that decided.
# TYPE copse_pod_grouper_groups_total counter
copse_pod_grouper_groups_total{rule="Default"} 1
# HELP copse_podcliquesets PodCliqueSets by workload type and phase.
# TYPE copse_podcliquesets gauge
copse_podcliquesets{phase="Running",workload_type="Training"} 2
# HELP copse_podgangs PodGangs by phase.
# TYPE copse_podgangs gauge
copse_podgangs{phase="Pending"} 3
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "copse_decisions_total", "copse_pod_grouper_exempt_pods_total", "copse_pod_grouper_groups_total", "copse_podcliquesets", "copse_podgangs"); err != nil {
		t.Error(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]float64{}
	for _, family := range families {
		if h := family.GetMetric()[0].GetHistogram(); h != nil {
			sums[family.GetName()] = h.GetSampleSum()
		}
	}
	if sums["copse_decision_delay_seconds"] != 0.3 || sums["copse_restart_recovery_seconds"] != 3 {
		t.Errorf("sums of times are %v", sums)
	}
	if _, err := New(registry); err == nil {
		t.Error("the same metrics were registered twice")
	}
}
