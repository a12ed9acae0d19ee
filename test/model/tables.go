package model

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/grove"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/apis/grove/validation"
)

// table numbers objects: equal ones have the same number, so that a state can hold a
// number and still stand for the whole object. Objects in a table are never changed.
type table[T any] struct {
	numbers map[string]uint16
	objects []*T
}

func (t *table[T]) number(obj *T) (uint16, error) {
	key, err := json.Marshal(obj)
	if err != nil {
		return 0, err
	}
	if n, known := t.numbers[string(key)]; known {
		return n, nil
	}
	if len(t.objects) > 0xffff {
		return 0, fmt.Errorf("more than %d different %T", 0xffff, obj)
	}
	if t.numbers == nil {
		t.numbers = map[string]uint16{}
	}
	n := uint16(len(t.objects))
	t.numbers[string(key)] = n
	t.objects = append(t.objects, obj)
	return n, nil
}

// plainSet is a set without what no decision depends on: texts and mere counts. Else
// states would differ by them alone.
func plainSet(pcs *grovev1alpha1.PodCliqueSet) *grovev1alpha1.PodCliqueSet {
	out := pcs.DeepCopy()
	status := &out.Status
	status.ObservedGeneration, status.HPAPodSelector = nil, nil
	status.Replicas, status.UpdatedReplicas, status.AvailableReplicas = 0, 0, 0
	status.SucceededReplicas, status.Pods, status.AvailablePods = 0, 0, 0
	for i := range status.ReplicaStatuses {
		status.ReplicaStatuses[i].WaitingFor = nil
		status.ReplicaStatuses[i].Phase = ""
	}
	for i := range status.Conditions {
		status.Conditions[i].Message, status.Conditions[i].ObservedGeneration = "", 0
	}
	return out
}

// plainClique is a clique without what no decision depends on.
func plainClique(clique *grovev1alpha1.PodClique) *grovev1alpha1.PodClique {
	out := clique.DeepCopy()
	status := &out.Status
	status.ObservedGeneration = nil
	// Whether one runs decides, not how many do.
	status.RunningReplicas = min(status.RunningReplicas, 1)
	status.UpdatedReplicas, status.ScheduledReplicas, status.ScheduleGatedReplicas = status.Replicas, 0, 0
	meta.RemoveStatusCondition(&status.Conditions, grovev1alpha1.ConditionTypePodCliqueScheduled)
	for i := range status.Conditions {
		status.Conditions[i].Message, status.Conditions[i].ObservedGeneration = "", 0
	}
	for i := range status.FailedIndexes {
		status.FailedIndexes[i].Message = ""
	}
	return out
}

// update is a write: from one version to another.
type update struct {
	clique     bool
	base, next uint16
}

// vetClique asks the server's validation about a write of a status, as it is decided on: with
// what the table leaves out. What it has against it is kept for the write.
func (m *Model) vetClique(base, next uint16, written *grovev1alpha1.PodClique) error {
	before, after := &grove.PodClique{}, &grove.PodClique{}
	if err := grovev1alpha1.Convert_v1alpha1_PodClique_To_grove_PodClique(m.cliques.objects[base].DeepCopy(), before, nil); err != nil {
		return err
	}
	if err := grovev1alpha1.Convert_v1alpha1_PodClique_To_grove_PodClique(written.DeepCopy(), after, nil); err != nil {
		return err
	}
	m.refuse(update{clique: true, base: base, next: next}, validation.ValidatePodCliqueStatusUpdate(after, before))
	return nil
}

func (m *Model) vetSet(base, next uint16, written *grovev1alpha1.PodCliqueSet) error {
	before, after := &grove.PodCliqueSet{}, &grove.PodCliqueSet{}
	if err := grovev1alpha1.Convert_v1alpha1_PodCliqueSet_To_grove_PodCliqueSet(m.sets.objects[base].DeepCopy(), before, nil); err != nil {
		return err
	}
	if err := grovev1alpha1.Convert_v1alpha1_PodCliqueSet_To_grove_PodCliqueSet(written.DeepCopy(), after, nil); err != nil {
		return err
	}
	m.refuse(update{base: base, next: next}, validation.ValidatePodCliqueSetStatusUpdate(after, before))
	return nil
}

func (m *Model) refuse(u update, errs field.ErrorList) {
	if err := errs.ToAggregate(); err != nil && !m.config.SkipValidation {
		m.refusals[u] = err.Error()
	}
}
