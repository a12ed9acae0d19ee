package validation

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

// Changes of a training set are in TestValidatePodCliqueSetUpdate.
func TestValidatePodCliqueSetTraining(t *testing.T) {
	mkTraining := func(tweaks ...func(*grove.PodCliqueSet)) *grove.PodCliqueSet {
		return mkPodCliqueSet(append([]func(*grove.PodCliqueSet){training}, tweaks...)...)
	}
	testCreate(t, mkTraining, ValidatePodCliqueSet, map[string]createCase[grove.PodCliqueSet]{
		"valid":                        {},
		"no trainingSpec":              {tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.TrainingSpec = nil }},
		"empty trainingSpec":           {tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.TrainingSpec = &grove.TrainingSpec{} }},
		"maxRestarts 0":                {tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.TrainingSpec.MaxRestarts = ptr.To[int32](0) }},
		"terminationDelay above 0":     {tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.TerminationDelay = delay(time.Minute) }},
		"no terminationDelay":          {tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.TerminationDelay = nil }},
		"restartPolicy Never":          {tweak: podSpec(func(s *corev1.PodSpec) { s.RestartPolicy = corev1.RestartPolicyNever })},
		"restartPolicy OnFailure":      {tweak: podSpec(func(s *corev1.PodSpec) { s.RestartPolicy = corev1.RestartPolicyOnFailure })},
		"minAvailable below replicas":  {tweak: cliqueSpec(0, func(s *grove.PodCliqueSpec) { s.Replicas = 8 })},
		"scaling group of several":     {tweak: all(withGroup("decode", "worker"), group(0, func(g *grove.PodCliqueScalingGroupConfig) { g.Replicas = ptr.To[int32](4) }))},
		"a clique waits for Succeeded": {tweak: startupInOrder(grove.StartupPolicyRule{TargetCliques: []string{"router"}, WaitForCliquesStatus: grove.CliqueStatusSucceeded})},

		"replicas are at least 1": {
			tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.Replicas = 0 },
			want:  field.ErrorList{invalid("spec.replicas")},
		},
		"maxRestarts is not negative": {
			tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.TrainingSpec.MaxRestarts = ptr.To[int32](-1) },
			want:  field.ErrorList{invalid("spec.trainingSpec.maxRestarts")},
		},
		"maxRuntime is not 0": {
			tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.TrainingSpec.MaxRuntime = delay(0) },
			want:  field.ErrorList{invalid("spec.trainingSpec.maxRuntime")},
		},
		"maxRuntime is not negative": {
			tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.TrainingSpec.MaxRuntime = delay(-time.Second) },
			want:  field.ErrorList{invalid("spec.trainingSpec.maxRuntime")},
		},
		"terminationDelay is not negative": {
			tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.TerminationDelay = delay(-time.Second) },
			want:  field.ErrorList{invalid("spec.template.terminationDelay")},
		},
		"restartPolicy Always is rejected": {
			tweak: podSpec(func(s *corev1.PodSpec) { s.RestartPolicy = corev1.RestartPolicyAlways }),
			want:  field.ErrorList{unsupported(podSpec0 + ".restartPolicy")},
		},
		"container restartPolicy Always is rejected": {
			tweak: podSpec(func(s *corev1.PodSpec) { s.Containers[0].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways) }),
			want:  field.ErrorList{forbidden(podSpec0 + ".containers[0].restartPolicy")},
		},
		"container restartPolicy OnFailure": {tweak: podSpec(func(s *corev1.PodSpec) {
			s.Containers[0].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyOnFailure)
		})},
		"a sidecar always restarts": {tweak: podSpec(func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{{Name: "sidecar", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
		})},
		"autoScalingConfig is rejected": {
			tweak: cliqueSpec(1, func(s *grove.PodCliqueSpec) { s.AutoScalingConfig = &grove.AutoScalingConfig{MaxReplicas: 1} }),
			want:  field.ErrorList{forbidden(clique1 + ".spec.autoScalingConfig")},
		},
		"scaleConfig is rejected": {
			tweak: all(withGroup("decode", "worker"), group(0, func(g *grove.PodCliqueScalingGroupConfig) {
				g.ScaleConfig = &grove.AutoScalingConfig{MaxReplicas: 1}
			})),
			want: field.ErrorList{forbidden(group0 + ".scaleConfig")},
		},
		"trainingSpec needs Training": {
			tweak: func(pcs *grove.PodCliqueSet) {
				pcs.Spec.WorkloadType = grove.WorkloadTypeInference
				pcs.Spec.Template.TerminationDelay = nil
			},
			want: field.ErrorList{forbidden("spec.trainingSpec")},
		},
	})
}
