package kubelet

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/test/framework"
)

// Init containers come first, and a pod counts when its probe says so: both over HTTP, as
// a model server is asked, and by a command in the container.
func TestInferenceCountsPodsThatTheirProbesCallReady(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	server := runs("server", "fail-unless=/weights/model", "listen=8080", "wait-term")
	server.ReadinessProbe = probe("fail-unless=/warm")
	server.StartupProbe = &corev1.Probe{
		PeriodSeconds:    1,
		FailureThreshold: 30,
		ProbeHandler:     corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(8080)}},
	}
	fetch := runs("fetch", "await=/weights/go", "touch=/weights/model")
	for _, container := range []*corev1.Container{&server, &fetch} {
		container.VolumeMounts = []corev1.VolumeMount{{Name: "weights", MountPath: "/weights"}}
	}
	pod := onRealNode(server)
	pod.InitContainers = []corev1.Container{fetch}
	pod.Volumes = []corev1.Volume{{Name: "weights", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	apply(t, ns, set(grovev1alpha1.WorkloadTypeInference, 2, pod))

	// D18: a pod whose init containers run counts as one that runs, not as available.
	pods := ns.WaitForPods(2, patience, func(pod *corev1.Pod) bool {
		init := pod.Status.InitContainerStatuses
		return len(init) == 1 && init[0].State.Running != nil
	})
	ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetRunning, patience)
	waitForCounts(ns, counts{ready: 0, running: 2, replicas: 0})

	for i := range pods {
		letGo(t, ns, &pods[i], "fetch", "/weights/go")
	}
	pods = ns.WaitForPods(2, patience, func(pod *corev1.Pod) bool {
		main := pod.Status.ContainerStatuses
		return len(main) == 1 && main[0].Started != nil && *main[0].Started
	})
	waitForCounts(ns, counts{ready: 0, running: 2, replicas: 0})

	letGo(t, ns, &pods[0], "server", "/warm")
	waitForCounts(ns, counts{ready: 1, running: 2, replicas: 0})
	letGo(t, ns, &pods[1], "server", "/warm")
	waitForCounts(ns, counts{ready: 2, running: 2, replicas: 1})

	// And back.
	if out, err := ns.Exec(&pods[0], "server", "remove=/warm"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	waitForCounts(ns, counts{ready: 1, running: 2, replicas: 0})
}

// counts are the numbers of the clique's pods, and of available replicas of the set.
type counts struct{ ready, running, replicas int32 }

func waitForCounts(ns *framework.Namespace, want counts) {
	ns.Eventually(patience, func(context.Context) error {
		clique, pcs := ns.PodClique("job-0-worker").Status, ns.Set("job").Status
		if got := (counts{clique.ReadyReplicas, clique.RunningReplicas, pcs.AvailableReplicas}); got != want {
			return fmt.Errorf("counts are %+v, want %+v", got, want)
		}
		return nil
	})
}
