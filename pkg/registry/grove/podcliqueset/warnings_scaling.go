package podcliqueset

import (
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

// countsPods tells of metrics by which an autoscaler asks for too many copies of a scaling
// group. For all but averages that are not the pods' own it multiplies by how many pods there
// are, and what it scales are copies.
func countsPods(pcs *grove.PodCliqueSet) []string {
	var out []string
	template := &pcs.Spec.Template
	for i := range template.PodCliqueScalingGroups {
		group := &template.PodCliqueScalingGroups[i]
		pods := podsPerCopy(template, group)
		if group.ScaleConfig == nil || pods < 2 {
			continue
		}
		path := field.NewPath("spec", "template", "podCliqueScalingGroups").Index(i).Child("scaleConfig", "metrics")
		warn := func(path *field.Path) {
			out = append(out, fmt.Sprintf("%s: the autoscaler takes the %d pods of a copy for %d copies, and asks for that many times too much: use averageValue of an External or Object metric", path, pods, pods))
		}
		if len(group.ScaleConfig.Metrics) == 0 {
			warn(path)
		}
		for j := range group.ScaleConfig.Metrics {
			if !isPerCopy(&group.ScaleConfig.Metrics[j]) {
				warn(path.Index(j))
			}
		}
	}
	return out
}

// isPerCopy says that an autoscaler divides a metric by the size of what it scales.
func isPerCopy(metric *autoscalingv2.MetricSpec) bool {
	switch {
	case metric.Object != nil:
		return metric.Object.Target.AverageValue != nil
	case metric.External != nil:
		return metric.External.Target.AverageValue != nil
	}
	return false
}

func podsPerCopy(template *grove.PodCliqueSetTemplateSpec, group *grove.PodCliqueScalingGroupConfig) int32 {
	var pods int32
	for _, name := range group.CliqueNames {
		for i := range template.Cliques {
			if template.Cliques[i].Name == name {
				pods += template.Cliques[i].Spec.Replicas
			}
		}
	}
	return pods
}
