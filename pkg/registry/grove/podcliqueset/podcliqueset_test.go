package podcliqueset

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

// mkPodCliqueSet makes an inference set with the fixed defaults alone, as it is decoded:
// cliques router, of one pod, and worker, of three.
func mkPodCliqueSet(tweaks ...func(*grove.PodCliqueSet)) *grove.PodCliqueSet {
	pcs := &grove.PodCliqueSet{
		ObjectMeta: metav1.ObjectMeta{Name: "llm", Namespace: "ns"},
		Spec: grove.PodCliqueSetSpec{
			Replicas:     2,
			WorkloadType: grove.WorkloadTypeInference,
			Template: grove.PodCliqueSetTemplateSpec{
				StartupType:           ptr.To(grove.CliqueStartupTypeAnyOrder),
				HeadlessServiceConfig: &grove.HeadlessServiceConfig{PublishNotReadyAddresses: ptr.To(true)},
				Cliques:               []grove.PodCliqueTemplateSpec{mkClique("router", 1), mkClique("worker", 3)},
			},
		},
	}
	for _, tweak := range tweaks {
		tweak(pcs)
	}
	return pcs
}

func mkClique(name string, replicas int32) grove.PodCliqueTemplateSpec {
	return grove.PodCliqueTemplateSpec{
		Name:   name,
		Labels: map[string]string{"app": name},
		Spec: grove.PodCliqueSpec{
			RoleName: name,
			Replicas: replicas,
			PodSpec: corev1.PodSpec{Containers: []corev1.Container{{
				Name:      "main",
				Image:     "image",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}},
			}}},
		},
	}
}

func training(pcs *grove.PodCliqueSet) { pcs.Spec.WorkloadType = grove.WorkloadTypeTraining }

// withGroup puts the worker into a scaling group.
func withGroup(replicas, minAvailable *int32) func(*grove.PodCliqueSet) {
	return func(pcs *grove.PodCliqueSet) {
		pcs.Spec.Template.PodCliqueScalingGroups = []grove.PodCliqueScalingGroupConfig{{
			Name: "decode", CliqueNames: []string{"worker"}, Replicas: replicas, MinAvailable: minAvailable,
		}}
	}
}

func startup(order grove.StartupPolicyOrder, rules ...grove.StartupPolicyRule) func(*grove.PodCliqueSet) {
	return func(pcs *grove.PodCliqueSet) {
		pcs.Spec.StartupPolicy = &grove.StartupPolicy{StartupPolicyOrder: order, Rules: rules}
	}
}

// swap moves the first clique behind the second.
func swap(pcs *grove.PodCliqueSet) {
	cliques := pcs.Spec.Template.Cliques
	cliques[0], cliques[1] = cliques[1], cliques[0]
}

// all joins tweaks.
func all(tweaks ...func(*grove.PodCliqueSet)) func(*grove.PodCliqueSet) {
	return func(pcs *grove.PodCliqueSet) {
		for _, tweak := range tweaks {
			tweak(pcs)
		}
	}
}
