package history

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// checkTrainingSpec holds I13: what a training job consists of never changes, and
// nothing scales it.
func checkTrainingSpec(w *world, f *Findings) {
	for _, s := range w.all {
		var spec func(*Revision) any
		switch s.kind {
		case Set:
			spec = func(r *Revision) any { return fixedSetSpec(setOf(r).Spec) }
		case Clique:
			spec = func(r *Revision) any { return fixedCliqueSpec(cliqueOf(r).Spec) }
		case Group:
			spec = func(r *Revision) any { return groupOf(r).Spec }
		default:
			continue
		}
		for i, rev := range s.revs {
			if !isOfTraining(rev) {
				continue
			}
			if isScaled(rev) {
				f.add("I13", rev, nil, "%s %s is to be scaled, in Training", s.kind, s.name)
			}
			if i > 0 && !apiequality.Semantic.DeepEqual(spec(s.revs[i-1]), spec(rev)) {
				f.add("I13", rev, s.revs[i-1:i], "the spec of %s %s changes, in Training", s.kind, s.name)
			}
		}
	}
}

func isOfTraining(r *Revision) bool {
	const training = grovev1alpha1.WorkloadTypeTraining
	switch obj := r.Object.(type) {
	case *grovev1alpha1.PodCliqueSet:
		return obj.Spec.WorkloadType == training
	case *grovev1alpha1.PodClique:
		return obj.Spec.WorkloadType == training
	case *grovev1alpha1.PodCliqueScalingGroup:
		return obj.Spec.WorkloadType == training
	}
	return false
}

func isScaled(r *Revision) bool {
	switch obj := r.Object.(type) {
	case *grovev1alpha1.PodCliqueSet:
		for _, group := range obj.Spec.Template.PodCliqueScalingGroups {
			if group.ScaleConfig != nil {
				return true
			}
		}
		for _, clique := range obj.Spec.Template.Cliques {
			if clique.Spec.AutoScalingConfig != nil {
				return true
			}
		}
	case *grovev1alpha1.PodClique:
		return obj.Spec.AutoScalingConfig != nil
	}
	return false
}

// fixedSetSpec is a spec without what may change: budgets, delays, the Service, and what
// is for people.
func fixedSetSpec(in grovev1alpha1.PodCliqueSetSpec) grovev1alpha1.PodCliqueSetSpec {
	out := *in.DeepCopy()
	out.TrainingSpec, out.UpdateStrategy = nil, nil
	out.Template.TerminationDelay, out.Template.HeadlessServiceConfig = nil, nil
	for i := range out.Template.PodCliqueScalingGroups {
		out.Template.PodCliqueScalingGroups[i].TerminationDelay = nil
		out.Template.PodCliqueScalingGroups[i].Annotations = nil
	}
	return out
}

func fixedCliqueSpec(in grovev1alpha1.PodCliqueSpec) grovev1alpha1.PodCliqueSpec {
	in.Attempt = 0
	return in
}
