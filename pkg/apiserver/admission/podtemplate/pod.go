package podtemplate

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/copse-dev/copse/pkg/apis/grove"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
	"github.com/copse-dev/copse/pkg/podspec"
)

// clusterDomain is in an environment variable alone, which no API server looks into.
const clusterDomain = "cluster.local"

// render returns the first pod of a clique, as the controller would make it but for what
// a clique that does not exist cannot give it: its owner.
func render(pcs *grove.PodCliqueSet, template *grove.PodCliqueTemplateSpec) *corev1.Pod {
	clique := &grovev1alpha1.PodClique{
		ObjectMeta: metav1.ObjectMeta{
			Name:        naming.StandaloneClique(pcs.Name, 0, template.Name),
			Namespace:   pcs.Namespace,
			Labels:      map[string]string{},
			Annotations: template.Annotations,
		},
		Spec: grovev1alpha1.PodCliqueSpec{PodSpec: template.Spec.PodSpec},
	}
	component := labels.ComponentPodClique
	if group := groupOf(&pcs.Spec.Template, template.Name); group != "" {
		component = labels.ComponentScalingGroupPodClique
		clique.Name = naming.MemberClique(pcs.Name, 0, group, 0, template.Name)
		clique.Labels[labels.ScalingGroup] = naming.ScalingGroup(pcs.Name, 0, group)
		clique.Labels[labels.ScalingGroupReplicaIndex] = labels.Index(0)
	}
	maps.Copy(clique.Labels, template.Labels)
	maps.Copy(clique.Labels, labels.ForReplica(clique.Name, pcs.Name, component, 0))
	pod := podspec.Render(clique, 0, podspec.Context{Set: pcs.Name, PriorityClass: pcs.Spec.Template.PriorityClassName, ClusterDomain: clusterDomain})
	pod.OwnerReferences = nil
	return pod
}

// groupOf names the scaling group of a clique; empty for a standalone clique.
func groupOf(template *grove.PodCliqueSetTemplateSpec, clique string) string {
	for i := range template.PodCliqueScalingGroups {
		for _, member := range template.PodCliqueScalingGroups[i].CliqueNames {
			if member == clique {
				return template.PodCliqueScalingGroups[i].Name
			}
		}
	}
	return ""
}
