// Package podspec renders the pod of an index of a PodClique: Grove's names, labels,
// host name and environment around the clique's own pod spec. It decides nothing, and
// it knows no scheduler: the back ends of pkg/scheduling add what they need.
package podspec

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
)

// Environment variables that every container gets, with Grove's names.
const (
	EnvSetName         = "GROVE_PCS_NAME"
	EnvSetIndex        = "GROVE_PCS_INDEX"
	EnvCliqueName      = "GROVE_PCLQ_NAME"
	EnvHeadlessService = "GROVE_HEADLESS_SERVICE"
	EnvPodIndex        = "GROVE_PCLQ_POD_INDEX"
	EnvGroupName       = "GROVE_PCSG_NAME"
	EnvGroupIndex      = "GROVE_PCSG_INDEX"
	EnvGroupPods       = "GROVE_PCSG_TEMPLATE_NUM_PODS"
	// EnvGroupPodIndex is not Grove's: the rank of a pod among those of its copy.
	EnvGroupPodIndex = "GROVE_PCSG_POD_INDEX"
)

// IsOwnVariable says whether an environment variable is one of those that every container
// gets, or those of a scaling group.
func IsOwnVariable(name string) bool {
	switch name {
	case EnvSetName, EnvSetIndex, EnvCliqueName, EnvHeadlessService, EnvPodIndex, EnvGroupName, EnvGroupIndex, EnvGroupPods, EnvGroupPodIndex:
		return true
	}
	return false
}

// Context is what a pod takes from the set around its clique.
type Context struct {
	// Set is the name of the PodCliqueSet, and Replica the index of its replica.
	Set     string
	Replica int32
	// GroupPods is how many pods the template gives to one copy of the clique's scaling
	// group; 0 for a standalone clique.
	GroupPods int32
	// GroupOffset is how many of them are in the cliques that the group names before the
	// pod's.
	GroupOffset int32
	// First says that the clique is the first that its group names.
	First bool
	// PriorityClass is the set's, for all its pods.
	PriorityClass string
	// ClusterDomain is the domain of the cluster's DNS.
	ClusterDomain string
	// Claims are the ResourceClaims that the pod shares with others.
	Claims gang.PodClaims
	// Wait is what the pod waits for, and Waiter how.
	Wait   Wait
	Waiter Waiter
}

// ContextOf reads the context of a clique from its set. The replica comes from the
// clique's label, which the controller wrote.
func ContextOf(pcs *grovev1alpha1.PodCliqueSet, clique *grovev1alpha1.PodClique, clusterDomain string) Context {
	replica, _ := labels.ParseIndex(clique.Labels[labels.ReplicaIndex])
	c := Context{Set: pcs.Name, Replica: replica, PriorityClass: pcs.Spec.Template.PriorityClassName, ClusterDomain: clusterDomain}
	c.Claims = gang.ClaimsOf(pcs, clique)
	if template := gang.TemplateOf(pcs, clique); template != nil {
		c.Wait = Wait{Container: gang.WaitContainer(pcs, template.Name), Timeout: gang.WaitTimeout(pcs, template.Name)}
	}
	group := clique.Labels[labels.ScalingGroup]
	if group == "" {
		return c
	}
	for _, config := range pcs.Spec.Template.PodCliqueScalingGroups {
		if naming.ScalingGroup(pcs.Name, replica, config.Name) != group {
			continue
		}
		own := gang.TemplateOf(pcs, clique)
		for _, name := range config.CliqueNames {
			if own != nil && own.Name == name {
				c.GroupOffset, c.First = c.GroupPods, c.GroupPods == 0
			}
			for i := range pcs.Spec.Template.Cliques {
				if member := &pcs.Spec.Template.Cliques[i]; member.Name == name {
					c.GroupPods += member.Spec.Replicas
				}
			}
		}
	}
	return c
}

// Render returns the pod of an index of a clique in the clique's attempt.
func Render(clique *grovev1alpha1.PodClique, index int32, c Context) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:            naming.Pod(clique.Name, clique.UID, index, clique.Spec.Attempt),
			Namespace:       clique.Namespace,
			Labels:          podLabels(clique, index),
			Annotations:     podAnnotations(clique),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(clique, grovev1alpha1.SchemeGroupVersion.WithKind("PodClique"))},
		},
		Spec: *clique.Spec.PodSpec.DeepCopy(),
	}
	if c.First && index == 0 {
		pod.Labels[labels.ScalingGroupFirstPod] = "true"
	}
	spec := &pod.Spec
	spec.Hostname = naming.Hostname(clique.Name, index)
	spec.Subdomain = naming.Replica(c.Set, c.Replica)
	if c.PriorityClass != "" {
		spec.PriorityClassName = c.PriorityClass
	}
	env := environment(clique, index, c)
	for i := range spec.InitContainers {
		spec.InitContainers[i].Env = withEnvironment(env, spec.InitContainers[i].Env)
	}
	for i := range spec.Containers {
		spec.Containers[i].Env = withEnvironment(env, spec.Containers[i].Env)
	}
	addClaims(spec, c.Claims.Of(index))
	addWaiter(spec, clique, c)
	return pod
}

// addClaims lets all containers of the user use the claims that the pod shares. The waiter uses
// no device.
func addClaims(spec *corev1.PodSpec, names []string) {
	for _, name := range names {
		spec.ResourceClaims = append(spec.ResourceClaims, corev1.PodResourceClaim{Name: name, ResourceClaimName: &name})
		for i := range spec.InitContainers {
			spec.InitContainers[i].Resources.Claims = append(spec.InitContainers[i].Resources.Claims, corev1.ResourceClaim{Name: name})
		}
		for i := range spec.Containers {
			spec.Containers[i].Resources.Claims = append(spec.Containers[i].Resources.Claims, corev1.ResourceClaim{Name: name})
		}
	}
}

// podLabels are the clique's own, without those that say what the clique is, and those
// that say which pod of the clique this is.
func podLabels(clique *grovev1alpha1.PodClique, index int32) map[string]string {
	out := map[string]string{}
	maps.Copy(out, clique.Labels)
	out[labels.PodClique] = clique.Name
	out[labels.PodIndex] = labels.Index(index)
	out[labels.RestartAttempt] = labels.Index(clique.Spec.Attempt)
	return out
}

func podAnnotations(clique *grovev1alpha1.PodClique) map[string]string {
	out := maps.Clone(clique.Annotations)
	delete(out, labels.GenerationHash)
	return out
}

func environment(clique *grovev1alpha1.PodClique, index int32, c Context) []corev1.EnvVar {
	env := []corev1.EnvVar{
		{Name: EnvSetName, Value: c.Set},
		{Name: EnvSetIndex, Value: labels.Index(c.Replica)},
		{Name: EnvCliqueName, Value: clique.Name},
		{Name: EnvHeadlessService, Value: naming.Replica(c.Set, c.Replica) + "." + clique.Namespace + ".svc." + c.ClusterDomain},
		{Name: EnvPodIndex, Value: labels.Index(index)},
	}
	if group := clique.Labels[labels.ScalingGroup]; group != "" {
		env = append(env,
			corev1.EnvVar{Name: EnvGroupName, Value: group},
			corev1.EnvVar{Name: EnvGroupIndex, Value: clique.Labels[labels.ScalingGroupReplicaIndex]},
			corev1.EnvVar{Name: EnvGroupPods, Value: labels.Index(c.GroupPods)},
			corev1.EnvVar{Name: EnvGroupPodIndex, Value: labels.Index(c.GroupOffset + index)},
		)
	}
	return env
}

// withEnvironment puts ours first, so that the user's variables can refer to them, and
// lets ours win over a user's of the same name.
func withEnvironment(ours, users []corev1.EnvVar) []corev1.EnvVar {
	out := slices.Clone(ours)
	for _, variable := range users {
		if !slices.ContainsFunc(ours, func(o corev1.EnvVar) bool { return o.Name == variable.Name }) {
			out = append(out, variable)
		}
	}
	return out
}
