package gang

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

// deadline is when something is due that may happen no sooner than a while after a
// recorded moment. Times in objects are whole seconds, rounded down, so up to a second of
// the while had not begun at the moment that is recorded. With nothing to wait for, it is
// that moment.
func deadline(recorded metav1.Time, while time.Duration) time.Time {
	if while <= 0 {
		return recorded.Time
	}
	return recorded.Truncate(time.Second).Add(time.Second + while)
}

// RuntimeDeadline is when a set has run for as long as it may, over restarts and downtime;
// zero when it may run for ever or has not started.
func RuntimeDeadline(pcs *grovev1alpha1.PodCliqueSet) time.Time {
	training := pcs.Spec.TrainingSpec
	if training == nil || training.MaxRuntime == nil || pcs.Status.StartTime == nil {
		return time.Time{}
	}
	return deadline(*pcs.Status.StartTime, training.MaxRuntime.Duration)
}

// TerminationDelay is how long a breach of a clique may last before its gang is
// terminated: the scaling group's own, if it has one, else the set's. Nil means that
// gang termination is off (seed 001); in Training there is always one (D1).
func TerminationDelay(pcs *grovev1alpha1.PodCliqueSet, clique *grovev1alpha1.PodClique) *time.Duration {
	var group *grovev1alpha1.PodCliqueScalingGroupConfig
	if template := TemplateOf(pcs, clique); template != nil && clique.Labels[labels.ScalingGroup] != "" {
		group = groupOf(pcs, template.Name)
	}
	return terminationDelay(pcs, group)
}

// GroupTerminationDelay is that of the copies of a scaling group.
func GroupTerminationDelay(pcs *grovev1alpha1.PodCliqueSet, group *grovev1alpha1.PodCliqueScalingGroup) *time.Duration {
	if len(group.Spec.CliqueNames) == 0 {
		return nil
	}
	return terminationDelay(pcs, groupOf(pcs, group.Spec.CliqueNames[0]))
}

func terminationDelay(pcs *grovev1alpha1.PodCliqueSet, group *grovev1alpha1.PodCliqueScalingGroupConfig) *time.Duration {
	delay := pcs.Spec.Template.TerminationDelay
	if delay == nil {
		if pcs.Spec.WorkloadType == grovev1alpha1.WorkloadTypeTraining {
			return new(time.Duration)
		}
		return nil
	}
	if group != nil && group.TerminationDelay != nil {
		delay = group.TerminationDelay
	}
	return &delay.Duration
}

// groupOf is the scaling group that a clique of the template is in, or nil.
func groupOf(pcs *grovev1alpha1.PodCliqueSet, clique string) *grovev1alpha1.PodCliqueScalingGroupConfig {
	for i := range pcs.Spec.Template.PodCliqueScalingGroups {
		group := &pcs.Spec.Template.PodCliqueScalingGroups[i]
		for _, name := range group.CliqueNames {
			if name == clique {
				return group
			}
		}
	}
	return nil
}
