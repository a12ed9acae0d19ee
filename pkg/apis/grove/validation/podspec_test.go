package validation

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

func TestValidatePodSpec(t *testing.T) {
	env := func(names ...string) func(*grove.PodCliqueSet) {
		return podSpec(func(s *corev1.PodSpec) {
			for _, name := range names {
				s.Containers[0].Env = append(s.Containers[0].Env, corev1.EnvVar{Name: name})
			}
		})
	}
	volumes := func(names ...string) func(*grove.PodCliqueSet) {
		return podSpec(func(s *corev1.PodSpec) {
			for _, name := range names {
				s.Volumes = append(s.Volumes, corev1.Volume{Name: name})
			}
		})
	}
	testCreate(t, mkPodCliqueSet, ValidatePodCliqueSet, map[string]createCase[grove.PodCliqueSet]{
		"pod has a container": {
			tweak: podSpec(func(s *corev1.PodSpec) { s.Containers = nil }),
			want:  field.ErrorList{required(podSpec0 + ".containers")},
		},
		"container name is required": {
			tweak: podSpec(func(s *corev1.PodSpec) { s.Containers[0].Name = "" }),
			want:  field.ErrorList{required(podSpec0 + ".containers[0].name")},
		},
		"container name is a DNS label": {
			tweak: podSpec(func(s *corev1.PodSpec) { s.Containers[0].Name = "Main" }),
			want:  field.ErrorList{invalid(podSpec0 + ".containers[0].name")},
		},
		"container names are unique": {
			tweak: podSpec(func(s *corev1.PodSpec) { s.Containers = append(s.Containers, s.Containers[0]) }),
			want:  field.ErrorList{duplicate(podSpec0 + ".containers[1].name")},
		},
		"init containers share the names of containers": {
			tweak: podSpec(func(s *corev1.PodSpec) { s.InitContainers = []corev1.Container{{Name: "main"}} }),
			want:  field.ErrorList{duplicate(podSpec0 + ".containers[0].name")},
		},
		"init container name is required": {
			tweak: podSpec(func(s *corev1.PodSpec) { s.InitContainers = make([]corev1.Container, 1) }),
			want:  field.ErrorList{required(podSpec0 + ".initContainers[0].name")},
		},
		"restartPolicy is known": {
			tweak: podSpec(func(s *corev1.PodSpec) { s.RestartPolicy = "Sometimes" }),
			want:  field.ErrorList{unsupported(podSpec0 + ".restartPolicy")},
		},
		"restartPolicy may be empty":                {tweak: podSpec(func(s *corev1.PodSpec) { s.RestartPolicy = "" })},
		"restartPolicy Always is fine in Inference": {tweak: podSpec(func(s *corev1.PodSpec) { s.RestartPolicy = corev1.RestartPolicyAlways })},
		"nodeName is for the scheduler": {
			tweak: podSpec(func(s *corev1.PodSpec) { s.NodeName = "node" }),
			want:  field.ErrorList{forbidden(podSpec0 + ".nodeName")},
		},
		"schedulingGroup is for the controller": {
			tweak: podSpec(func(s *corev1.PodSpec) { s.SchedulingGroup = &corev1.PodSchedulingGroup{} }),
			want:  field.ErrorList{forbidden(podSpec0 + ".schedulingGroup")},
		},
		"container name has at most 63 characters": {
			tweak: podSpec(func(s *corev1.PodSpec) { s.Containers[0].Name = strings.Repeat("a", 64) }),
			want:  field.ErrorList{tooLong(podSpec0 + ".containers[0].name")},
		},
		"container name group-scheduling-init is reserved": {
			tweak: podSpec(func(s *corev1.PodSpec) { s.Containers[0].Name = "group-scheduling-init" }),
			want:  field.ErrorList{invalid(podSpec0 + ".containers[0].name")},
		},
		"init container name group-scheduling-init is reserved": {
			tweak: podSpec(func(s *corev1.PodSpec) { s.InitContainers = []corev1.Container{{Name: "group-scheduling-init"}} }),
			want:  field.ErrorList{invalid(podSpec0 + ".initContainers[0].name")},
		},
		"init container name grove-initc is reserved": {
			tweak: podSpec(func(s *corev1.PodSpec) { s.InitContainers = []corev1.Container{{Name: "other"}, {Name: "grove-initc"}} }),
			want:  field.ErrorList{invalid(podSpec0 + ".initContainers[1].name")},
		},
		"environment variables":                       {tweak: env("A", "b.c", "GROVE_PCS_NAME")},
		"name of an environment variable is required": {tweak: env("A", ""), want: field.ErrorList{required(podSpec0 + ".containers[0].env[1].name")}},
		"name of an environment variable is legal":    {tweak: env("A=B"), want: field.ErrorList{invalid(podSpec0 + ".containers[0].env[0].name")}},
		"environment variables are unique":            {tweak: env("A", "B", "A"), want: field.ErrorList{duplicate(podSpec0 + ".containers[0].env[2].name")}},
		"environment variables of an init container": {
			tweak: podSpec(func(s *corev1.PodSpec) {
				s.InitContainers = []corev1.Container{{Name: "init", Env: []corev1.EnvVar{{}}}}
			}),
			want: field.ErrorList{required(podSpec0 + ".initContainers[0].env[0].name")},
		},
		"volumes":                 {tweak: volumes("data", "group")},
		"volume name is required": {tweak: volumes(""), want: field.ErrorList{required(podSpec0 + ".volumes[0].name")}},
		"volume names are unique": {tweak: volumes("data", "data"), want: field.ErrorList{duplicate(podSpec0 + ".volumes[1].name")}},
		"a volume that the waiter has too would make every pod invalid": {
			tweak: volumes("start-gate-token"), want: field.ErrorList{invalid(podSpec0 + ".volumes[0].name")},
		},
		"volume name group-scheduling is reserved": {tweak: volumes("group-scheduling"), want: field.ErrorList{invalid(podSpec0 + ".volumes[0].name")}},
		"ephemeral containers are for running pods": {
			tweak: podSpec(func(s *corev1.PodSpec) { s.EphemeralContainers = make([]corev1.EphemeralContainer, 1) }),
			want:  field.ErrorList{forbidden(podSpec0 + ".ephemeralContainers")},
		},
		"topologySpreadConstraints are no way to place a gang": {
			tweak: podSpec(func(s *corev1.PodSpec) { s.TopologySpreadConstraints = make([]corev1.TopologySpreadConstraint, 1) }),
			want:  field.ErrorList{forbidden(podSpec0 + ".topologySpreadConstraints")},
		},
		"scheduling gates of others": {tweak: podSpec(func(s *corev1.PodSpec) { s.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/quota"}} })},
		"scheduling gate of the controller is reserved": {
			tweak: podSpec(func(s *corev1.PodSpec) {
				s.SchedulingGates = []corev1.PodSchedulingGate{{Name: "grove.io/podgang-pending-creation"}}
			}),
			want: field.ErrorList{invalid(podSpec0 + ".schedulingGates[0].name")},
		},
		"scheduling gates are unique": {
			tweak: podSpec(func(s *corev1.PodSpec) { s.SchedulingGates = []corev1.PodSchedulingGate{{Name: "a"}, {Name: "a"}} }),
			want:  field.ErrorList{duplicate(podSpec0 + ".schedulingGates[1].name")},
		},
		"a pod of every clique is checked": {
			tweak: cliqueSpec(1, func(s *grove.PodCliqueSpec) { s.PodSpec.NodeName = "node" }),
			want:  field.ErrorList{forbidden(clique1 + ".spec.podSpec.nodeName")},
		},
	})
}

func TestValidateOneGang(t *testing.T) {
	const pod1 = clique1 + ".spec.podSpec"
	both := func(tweak func(*corev1.PodSpec)) func(*grove.PodCliqueSet) {
		return all(podSpec(tweak), cliqueSpec(1, func(s *grove.PodCliqueSpec) { tweak(&s.PodSpec) }))
	}
	second := func(tweak func(*corev1.PodSpec)) func(*grove.PodCliqueSet) {
		return cliqueSpec(1, func(s *grove.PodCliqueSpec) { tweak(&s.PodSpec) })
	}
	scheduler := func(name string) func(*corev1.PodSpec) { return func(s *corev1.PodSpec) { s.SchedulerName = name } }
	class := func(name string) func(*corev1.PodSpec) { return func(s *corev1.PodSpec) { s.PriorityClassName = name } }
	preemption := func(policy corev1.PreemptionPolicy) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.PreemptionPolicy = ptr.To(policy) }
	}
	testCreate(t, mkPodCliqueSet, ValidatePodCliqueSet, map[string]createCase[grove.PodCliqueSet]{
		"another scheduler for all":                 {tweak: both(scheduler("kai-scheduler"))},
		"the default scheduler by name and without": {tweak: second(scheduler("default-scheduler"))},
		"one scheduler places a set":                {tweak: second(scheduler("kai-scheduler")), want: field.ErrorList{invalid(pod1 + ".schedulerName")}},
		"one priority for all":                      {tweak: both(class("high"))},
		"a gang has one priority":                   {tweak: second(class("high")), want: field.ErrorList{invalid(pod1 + ".priorityClassName")}},
		"the set's priority is that of all": {tweak: all(second(class("high")), func(pcs *grove.PodCliqueSet) {
			pcs.Spec.Template.PriorityClassName = "low"
		})},
		"priorities of another scheduler are its own":   {tweak: all(both(scheduler("kai-scheduler")), second(class("high")))},
		"priorities of stages may differ":               {tweak: all(startupInOrder(grove.StartupPolicyRule{TargetCliques: []string{"router"}, WaitForCliquesStatus: grove.CliqueStatusReady}), second(class("high")))},
		"schedulers of stages may not":                  {tweak: all(startupInOrder(grove.StartupPolicyRule{TargetCliques: []string{"router"}, WaitForCliquesStatus: grove.CliqueStatusReady}), second(scheduler("kai-scheduler"))), want: field.ErrorList{invalid(pod1 + ".schedulerName")}},
		"one preemption policy for all":                 {tweak: both(preemption(corev1.PreemptNever))},
		"a gang has one preemption policy":              {tweak: second(preemption(corev1.PreemptNever)), want: field.ErrorList{invalid(pod1 + ".preemptionPolicy")}},
		"a gang has one preemption policy with a class": {tweak: all(second(preemption(corev1.PreemptNever)), func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.PriorityClassName = "low" }), want: field.ErrorList{invalid(pod1 + ".preemptionPolicy")}},
	})
}
