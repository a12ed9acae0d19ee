package history

import (
	"slices"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
)

// checkStages holds I12 for startupPolicy InOrder: no pod of a clique is made before its
// stage was recorded as open in that attempt, and none is recorded before the clique that
// comes before it had reached its status (D20).
func checkStages(w *world, f *Findings) {
	for _, pod := range w.pods {
		set := pod.clique.set
		if set == nil {
			continue
		}
		template := gang.TemplateOf(setOf(set.revs[0]), cliqueOf(pod.clique.revs[0]))
		if template == nil || !gang.IsStaged(setOf(set.revs[0])) || setOf(set.revs[0]).Spec.Template.Cliques[0].Name == template.Name {
			continue
		}
		if !w.possibly(set, pod.revs[0], func(r *Revision) bool { return isOpenFor(r, pod, template.Name) }) {
			f.add("I12", pod.revs[0], set.revs, "pod %s of attempt %d is made before stage %s is open", pod.name, pod.attempt, template.Name)
		}
	}
	for _, set := range w.of(Set) {
		for i := 1; i < len(set.revs); i++ {
			checkOpening(w, f, set, set.revs[i-1], set.revs[i])
		}
	}
}

// isOpenFor says that a revision of a set opens a stage in the attempt of a pod, which for a
// member of a scaling group includes the attempts of its copy.
func isOpenFor(r *Revision, pod *podStory, stage string) bool {
	for _, replica := range setOf(r).Status.ReplicaStatuses {
		if replica.Index != pod.clique.replica || !slices.Contains(replica.OpenStages, stage) {
			continue
		}
		return replica.Attempt == pod.attempt || (pod.clique.group != nil && replica.Attempt <= pod.attempt)
	}
	return false
}

// checkOpening looks whether the stage before a stage that is opened had come that far in
// every PodClique that there was.
func checkOpening(w *world, f *Findings, set *story, before, after *Revision) {
	pcs := setOf(after)
	if !gang.IsStaged(pcs) {
		return
	}
	for _, replica := range pcs.Status.ReplicaStatuses {
		recorded := openStages(setOf(before), replica.Index, replica.Attempt)
		for i := 1; i < len(pcs.Spec.Template.Cliques); i++ {
			stage, earlier := pcs.Spec.Template.Cliques[i].Name, pcs.Spec.Template.Cliques[i-1].Name
			if !slices.Contains(replica.OpenStages, stage) || slices.Contains(recorded, stage) {
				continue
			}
			for _, clique := range w.cliquesOf(set) {
				template := gang.TemplateOf(pcs, cliqueOf(clique.revs[0]))
				if clique.replica != replica.Index || template == nil || template.Name != earlier || clique.before(after) == nil {
					continue
				}
				if !w.possibly(clique.story, after, func(r *Revision) bool { return gang.HasReached(pcs, earlier, cliqueOf(r), replica.Attempt) }) {
					f.add("I12", after, clique.revs, "stage %s of replica %d is opened before %s has reached its status", stage, replica.Index, clique.name)
				}
			}
		}
	}
}

func openStages(pcs *grovev1alpha1.PodCliqueSet, replica, attempt int32) []string {
	for _, status := range pcs.Status.ReplicaStatuses {
		if status.Index == replica && status.Attempt == attempt {
			return status.OpenStages
		}
	}
	return nil
}
