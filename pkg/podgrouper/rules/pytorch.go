package rules

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/fields"
)

const (
	pytorchSpecs  = "pytorchReplicaSpecs"
	pytorchMaster = "master"
	pytorchWorker = "worker"
)

// PyTorchJob groups the pods of a PyTorch job, with a subgroup for the master and one for
// the workers, which an annotation cuts into segments that are placed together.
type PyTorchJob struct{}

// Name of the rule.
func (PyTorchJob) Name() string { return "PyTorchJob" }

// Kinds that it groups the pods of.
func (PyTorchJob) Kinds() []schema.GroupKind {
	return []schema.GroupKind{{Group: "kubeflow.org", Kind: "PyTorchJob"}}
}

// Identify says in which subgroup a pod is, by the labels that the operator puts on it.
func (PyTorchJob) Identify(in podgrouper.Input) (podgrouper.Membership, error) {
	membership := podgrouper.Membership{PriorityClassName: podgrouper.TrainPriorityClass}
	role := strings.ToLower(in.Pod.Labels[kubeflowReplicaType])
	switch role {
	case pytorchMaster:
		membership.SubGroup = pytorchMaster
	case pytorchWorker:
		size := segmentOf(in.Annotation(segmentSize))
		if size == 0 {
			membership.SubGroup = pytorchWorker
			break
		}
		index := parseCount(in.Pod.Labels[kubeflowReplicaIndex])
		if index == nil {
			membership.Notes = append(membership.Notes, missingLabel(kubeflowReplicaIndex, "its segment"))
			break
		}
		membership.SubGroup = segmentName(*index / size)
	default:
		membership.Notes = append(membership.Notes, missingLabel(kubeflowReplicaType, "its subgroup"))
	}
	return membership, nil
}

// Describe counts master and workers.
func (PyTorchJob) Describe(_ context.Context, in podgrouper.Input, owner fields.Fields, _ client.Reader) (podgrouper.Shape, error) {
	byType, total := replicasOf(owner, pytorchSpecs)
	needed := minAvailable(owner, or(owner.Count("spec", "elasticPolicy", "minReplicas"), total))
	minimum, notes := atMost(needed, total)
	shape := podgrouper.Shape{MinMember: minimum, AtOnce: &total, Notes: notes}
	masters, workers := byType["Master"], byType["Worker"]
	if masters > 0 {
		shape.SubGroups = append(shape.SubGroups, podgrouper.SubGroup{Name: pytorchMaster, MinMember: ptr.To(min(masters, *minimum))})
	}
	neededWorkers := min(workers, max(0, *minimum-masters))
	template := owner.At("spec", pytorchSpecs, "Worker", "template").Strings("metadata", "annotations")
	size := segmentOf(asked(in, template, segmentSize))
	if size == 0 || workers == 0 {
		if value := asked(in, template, segmentSize); value != "" && size == 0 {
			shape.Notes = append(shape.Notes, podgrouper.Note{
				Reason:  podgrouper.ReasonInvalidOverride,
				Message: fmt.Sprintf("annotation %s %q is passed over: must be a whole number from 1 to 2147483647", segmentSize, value),
			})
		}
		if workers > 0 {
			shape.SubGroups = append(shape.SubGroups, podgrouper.SubGroup{Name: pytorchWorker, MinMember: &neededWorkers})
		}
		return shape, nil
	}
	segments := (workers + size - 1) / size
	if segments > podgrouper.MaxSubGroups-2 {
		owner.Report(field.TooMany(owner.Path("spec", pytorchSpecs, "Worker", "replicas"), int(segments), podgrouper.MaxSubGroups-2))
		return shape, nil
	}
	shape.MinMember, shape.MinSubGroup = nil, ptr.To(int64(len(shape.SubGroups)+1))
	// Each of them: those of an elastic job that are not needed ask for no pods.
	shape.SubGroups = append(shape.SubGroups, podgrouper.SubGroup{Name: pytorchWorker, MinSubGroup: &segments})
	place, more := podgrouper.ReadTopology(asked(in, template, podgrouper.TopologyAnnotation), asked(in, template, segmentRequired), asked(in, template, segmentPreferred))
	shape.Notes = append(shape.Notes, more...)
	for i := range segments {
		shape.SubGroups = append(shape.SubGroups, podgrouper.SubGroup{
			Name: segmentName(i), Parent: pytorchWorker, Topology: place,
			MinMember: ptr.To(min(size, max(0, neededWorkers-i*size))),
		})
	}
	return shape, nil
}

// asked is what the job's owners, or else the template of its workers ask for: what Identify
// sees on a worker, whichever pod is at hand.
func asked(in podgrouper.Input, template map[string]string, key string) string {
	in.Pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: template}}
	return in.Annotation(key)
}

// segmentOf is the size of segments; 0 for none.
func segmentOf(annotation string) int64 {
	return or(parseCount(annotation), 0)
}

func segmentName(index int64) string {
	return fmt.Sprintf("%s-%d", pytorchWorker, index)
}

func missingLabel(key, what string) podgrouper.Note {
	return podgrouper.Note{Reason: podgrouper.ReasonMissingLabel, Message: fmt.Sprintf("the pod has no label %s that says what %s is", key, what)}
}
