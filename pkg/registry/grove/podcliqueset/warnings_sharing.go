package podcliqueset

import (
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

// sharedByMany tells of claims that more pods are to use than may: those beyond are not
// scheduled. It also tells of templates for claims that nothing is made from.
func sharedByMany(pcs *grove.PodCliqueSet) []string {
	var out []string
	template, path := &pcs.Spec.Template, field.NewPath("spec", "template")
	names := sets.New[string]()
	look := func(sharing *grove.ResourceSharingSpec, path *field.Path, replicas, pods int64) {
		names.Insert(sharing.Name)
		if sharing.Scope == grove.ResourceSharingScopeAllReplicas {
			pods *= replicas
		}
		if pods > resourcev1.ResourceClaimReservedForMaxSize {
			out = append(out, fmt.Sprintf("%s: %d pods are to share a claim, which at most %d can: the others are not scheduled", path, pods, resourcev1.ResourceClaimReservedForMaxSize))
		}
	}
	for i := range template.ResourceSharing {
		sharing := &template.ResourceSharing[i]
		var pods int64
		for j := range template.Cliques {
			if clique := &template.Cliques[j]; takesPart(template, sharing.Filter, clique.Name) {
				pods += int64(clique.Spec.Replicas) * copiesOf(template, clique.Name)
			}
		}
		look(&sharing.ResourceSharingSpec, path.Child("resourceSharing").Index(i), int64(pcs.Spec.Replicas), pods)
	}
	for i := range template.PodCliqueScalingGroups {
		group := &template.PodCliqueScalingGroups[i]
		for j := range group.ResourceSharing {
			sharing := &group.ResourceSharing[j]
			var pods int64
			for _, name := range group.CliqueNames {
				if clique := template.Clique(name); clique != nil && (sharing.Filter == nil || slices.Contains(sharing.Filter.ChildCliqueNames, name)) {
					pods += int64(clique.Spec.Replicas)
				}
			}
			look(&sharing.ResourceSharingSpec, path.Child("podCliqueScalingGroups").Index(i).Child("resourceSharing").Index(j), int64(ptr.Deref(group.Replicas, 1)), pods)
		}
	}
	for i := range template.Cliques {
		clique := &template.Cliques[i]
		for j := range clique.ResourceSharing {
			look(&clique.ResourceSharing[j], path.Child("cliques").Index(i).Child("resourceSharing").Index(j), int64(clique.Spec.Replicas), 1)
		}
	}
	for i := range template.ResourceClaimTemplates {
		if !names.Has(template.ResourceClaimTemplates[i].Name) {
			out = append(out, fmt.Sprintf("%s: no claim is made from it: no resourceSharing names it", path.Child("resourceClaimTemplates").Index(i)))
		}
	}
	return out
}

// takesPart says that a clique, by itself or as one of its scaling group, shares what its set
// shares.
func takesPart(template *grove.PodCliqueSetTemplateSpec, filter *grove.PCSResourceSharingFilter, clique string) bool {
	if filter == nil || slices.Contains(filter.ChildCliqueNames, clique) {
		return true
	}
	return slices.ContainsFunc(filter.ChildScalingGroupNames, func(name string) bool {
		group := template.ScalingGroup(name)
		return group != nil && slices.Contains(group.CliqueNames, clique)
	})
}

// copiesOf is how often a clique is in a replica of its set.
func copiesOf(template *grove.PodCliqueSetTemplateSpec, clique string) int64 {
	for i := range template.PodCliqueScalingGroups {
		if group := &template.PodCliqueScalingGroups[i]; slices.Contains(group.CliqueNames, clique) {
			return int64(ptr.Deref(group.Replicas, 1))
		}
	}
	return 1
}
