package podcliqueset

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/labels"
)

// inertFields tells of fields of a valid set that nothing acts on, so that nobody relies
// on what does not happen.
func inertFields(pcs *grove.PodCliqueSet) []string {
	var out []string
	inert := func(path *field.Path, meaning string) {
		out = append(out, fmt.Sprintf("%s: accepted, but nothing acts on it yet: %s", path, meaning))
	}
	spec, path := &pcs.Spec, field.NewPath("spec")
	if spec.UpdateStrategy != nil && spec.WorkloadType == grove.WorkloadTypeTraining {
		out = append(out, fmt.Sprintf("%s: says nothing in Training, where the template does not change", path.Child("updateStrategy")))
	}

	template, templatePath := &spec.Template, path.Child("template")
	if onFabric(pcs.Annotations) {
		inert(field.NewPath("metadata", "annotations").Key(labels.FabricGroup), "no ComputeDomain is made")
	}
	for i := range template.Cliques {
		clique, cliquePath := &template.Cliques[i], templatePath.Child("cliques").Index(i)
		if onFabric(clique.Annotations) {
			inert(cliquePath.Child("annotations").Key(labels.FabricGroup), "no ComputeDomain is made")
		}
	}
	for i := range template.PodCliqueScalingGroups {
		group, groupPath := &template.PodCliqueScalingGroups[i], templatePath.Child("podCliqueScalingGroups").Index(i)
		if onFabric(group.Annotations) {
			inert(groupPath.Child("annotations").Key(labels.FabricGroup), "no ComputeDomain is made")
		}
	}
	return out
}

// untoldSchedulers tells of schedulers that are not told of gangs, so that nobody takes half a
// gang that runs for a mistake.
func untoldSchedulers(pcs *grove.PodCliqueSet) []string {
	var out []string
	for i := range pcs.Spec.Template.Cliques {
		scheduler := pcs.Spec.Template.Cliques[i].Spec.PodSpec.SchedulerName
		if isToldOfGangs(scheduler) {
			continue
		}
		out = append(out, fmt.Sprintf("%s: the pods of a gang are held until all exist, then scheduler %q places them one by one, unless the controller-manager takes it for KAI",
			field.NewPath("spec", "template", "cliques").Index(i).Child("spec", "podSpec", "schedulerName"), scheduler))
	}
	return out
}

// isToldOfGangs says that a scheduler has a back end under the name that it has by default.
func isToldOfGangs(scheduler string) bool {
	return scheduler == "" || scheduler == corev1.DefaultSchedulerName || scheduler == "kai-scheduler"
}

// onFabric says that annotations ask for a memory fabric between nodes.
func onFabric(annotations map[string]string) bool {
	group := annotations[labels.FabricGroup]
	return group != "" && group != "none"
}
