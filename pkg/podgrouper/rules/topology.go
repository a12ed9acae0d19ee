package rules

import "github.com/copse-dev/copse/pkg/podgrouper"

// Annotations of pod templates that cut pods into segments, each placed together.
const (
	segmentSize      = "kai.scheduler/segment-size"
	segmentRequired  = "kai.scheduler/segment-topology-required-placement"
	segmentPreferred = "kai.scheduler/segment-topology-preferred-placement"
)

// placement is what annotations of a part of a workload ask for.
func placement(annotations map[string]string) *podgrouper.Topology {
	return topology(annotations[podgrouper.TopologyAnnotation], annotations[podgrouper.RequiredPlacementAnnotation], annotations[podgrouper.PreferredPlacementAnnotation])
}

// topology is nil without a level, and without a name to look the level up in.
func topology(name, required, preferred string) *podgrouper.Topology {
	if name == "" || required == "" && preferred == "" {
		return nil
	}
	return &podgrouper.Topology{Name: name, Required: required, Preferred: preferred}
}
