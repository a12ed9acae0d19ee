// Package scheduling is the interface between gangs and the scheduler that places
// them. A back end knows its scheduler's own group object; it decides nothing about
// when pods are made or go, which is for pkg/gang.
package scheduling

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
)

// Backend schedules gangs with one kind of scheduler.
type Backend interface {
	// Name of the back end.
	Name() string
	// Topology says what the scheduler does about topology constraints.
	Topology() gang.TopologySupport
	// PreparePod makes a pod that is about to be created a member of a gang in the
	// gang's current attempt.
	PreparePod(pod *corev1.Pod, podGang *schedulerv1alpha1.PodGang)
	// PrepareSurplus does what is due for a pod of the gang's cliques that is about to be created
	// and that the gang does not need: one above its clique's minimum.
	PrepareSurplus(pod *corev1.Pod, podGang *schedulerv1alpha1.PodGang)
	// Sync brings the scheduler's own group object in line with a gang, of which so many
	// members are needed at once, and removes those of earlier attempts. It writes nothing when
	// nothing has changed.
	Sync(ctx context.Context, podGang *schedulerv1alpha1.PodGang, needed gang.Needed) error
	// Observe says what the scheduler makes of a gang in the gang's current attempt.
	Observe(ctx context.Context, podGang *schedulerv1alpha1.PodGang) (Observation, error)
}

// Observation is what a scheduler makes of a gang.
type Observation struct {
	// Scheduled says that the gang was scheduled once in this attempt.
	Scheduled bool
	// Untold says that the scheduler does not tell whether a gang is scheduled: it counts as
	// scheduled once all of it has a node.
	Untold bool
	// AllOrNothing says that a scheduler that does not tell places gangs as a whole all the same.
	AllOrNothing bool
	// Why says why it is not scheduled, the first reason being the one that counts most;
	// empty when the scheduler has not said anything.
	Why []schedulerv1alpha1.UnschedulableExplanation
	// Gated is how many of its pods are held by a scheduling gate, whoever has put it there.
	Gated int32
}
