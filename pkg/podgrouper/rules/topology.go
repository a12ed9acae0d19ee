package rules

import "github.com/copse-dev/copse/pkg/podgrouper"

// Annotations of pod templates that cut pods into segments, each placed together.
const (
	segmentSize      = "kai.scheduler/segment-size"
	segmentRequired  = "kai.scheduler/segment-topology-required-placement"
	segmentPreferred = "kai.scheduler/segment-topology-preferred-placement"
)

// placement is what the annotations of a part of a workload ask for. What cannot be followed
// is added to the notes.
func placement(annotations map[string]string, notes *[]podgrouper.Note) *podgrouper.Topology {
	place, more := podgrouper.ReadTopology(annotations[podgrouper.TopologyAnnotation], annotations[podgrouper.RequiredPlacementAnnotation], annotations[podgrouper.PreferredPlacementAnnotation])
	*notes = append(*notes, more...)
	return place
}
