package kubelet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/naming"
	"github.com/copse-dev/copse/test/framework"
)

// gateImage is the one that the controller manager of this package's cluster is told of.
const gateImage = "example.com/start-gate:1"

// loadGate brings the waiter to the node.
func loadGate(t *testing.T) {
	t.Helper()
	program, err := os.ReadFile(filepath.Join(cluster.Root(), "bin", "start-gate"))
	if err != nil {
		t.Fatal(err)
	}
	cluster.LoadImage(t, writeLayout(t, gateImage, program, "--help"))
}

// asRestricted makes a container what the profile restricted asks for, with resources as a
// quota asks for them.
func asRestricted(container corev1.Container) corev1.Container {
	container.SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false), RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](1000),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	all := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
	container.Resources = corev1.ResourceRequirements{Requests: all, Limits: all}
	return container
}

// heldSet is a set of a leader, whose own init container waits for a file, and of workers
// that start with it.
func heldSet(workers int32, timeout *int32) *grovev1alpha1.PodCliqueSet {
	pcs := set(grovev1alpha1.WorkloadTypeTraining, workers, onRealNode(asRestricted(runs("main", "exit=0"))))
	leader := *pcs.Spec.Template.Cliques[0].DeepCopy()
	leader.Name, leader.Spec.RoleName, leader.Spec.Replicas = "leader", "leader", 1
	prepare := asRestricted(runs("prepare", "await=/scratch/go"))
	prepare.VolumeMounts = []corev1.VolumeMount{{Name: "work", MountPath: "/scratch"}}
	leader.Spec.PodSpec.InitContainers = []corev1.Container{prepare}
	leader.Spec.PodSpec.Volumes = []corev1.Volume{{Name: "work", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	pcs.Spec.Template.Cliques = append(pcs.Spec.Template.Cliques, leader)
	for i := range pcs.Spec.Template.Cliques {
		pcs.Spec.Template.Cliques[i].Spec.PodSpec.AutomountServiceAccountToken = ptr.To(false)
	}
	pcs.Spec.GroupSchedulingConfig = &grovev1alpha1.GroupSchedulingConfig{TimeoutAfterSeconds: timeout}
	return pcs
}

func runsIn(statuses []corev1.ContainerStatus, name string) bool {
	for _, status := range statuses {
		if status.Name == name {
			return status.State.Running != nil
		}
	}
	return false
}

// waitHeld waits until the workers are at the barrier and the leader prepares, and returns
// the leader. No main container has started by then, nor does one in a while.
func waitHeld(t *testing.T, ns *framework.Namespace, gang int) *corev1.Pod {
	t.Helper()
	pods := ns.WaitForPods(gang, patience, func(pod *corev1.Pod) bool {
		return runsIn(pod.Status.InitContainerStatuses, naming.BarrierContainer) || runsIn(pod.Status.InitContainerStatuses, "prepare")
	})
	ns.Never(3*time.Second, func(ctx context.Context) error {
		now, err := ns.Pods(ctx)
		for i := range now {
			for _, status := range now[i].Status.ContainerStatuses {
				if status.State.Waiting == nil {
					err = errors.Join(err, fmt.Errorf("the main container of %s has started", now[i].Name))
				}
			}
		}
		return err
	})
	for i := range pods {
		if runsIn(pods[i].Status.InitContainerStatuses, "prepare") {
			return &pods[i]
		}
	}
	t.Fatal("there is no leader")
	return nil
}

// A main container does not start before all pods of the gang have: in a namespace that
// enforces the profile restricted and has a quota, for a service account without a token.
func TestTheBarrierHoldsMainContainersBack(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Anywhere().Kubectl("label", "namespace", ns.Name, "pod-security.kubernetes.io/enforce=restricted")
	ns.Apply(`{apiVersion: v1, kind: ResourceQuota, metadata: {name: all}, spec: {hard: {requests.cpu: "2", limits.cpu: "2", requests.memory: 2Gi, limits.memory: 2Gi}}}`)
	loadGate(t)
	apply(t, ns, heldSet(2, ptr.To[int32](600)))
	leader := waitHeld(t, ns, 3)
	for _, pod := range ns.WaitForPods(3, patience, func(*corev1.Pod) bool { return true }) {
		if pod.Status.QOSClass != corev1.PodQOSGuaranteed {
			t.Errorf("pod %s is %s", pod.Name, pod.Status.QOSClass)
		}
	}
	letGo(t, ns, leader, "prepare", "/scratch/go")
	ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetSucceeded, patience)
}

// Pods that cannot reach the API learn from the mounted ConfigMap that they may start; later
// than those that watch.
func TestPodsThatAreCutOffStartByTheConfigMap(t *testing.T) {
	const gang = 8
	loadGate(t)
	watching, reading := cluster.Namespace(t), cluster.Namespace(t)
	release := func(ns *framework.Namespace, before func()) time.Duration {
		apply(t, ns, heldSet(gang-1, nil))
		leader := waitHeld(t, ns, gang)
		before()
		return timeRelease(t, ns, gang, func() { letGo(t, ns, leader, "prepare", "/scratch/go") })
	}
	byWatch := release(watching, func() {})
	watching.WaitForPhase("job", grovev1alpha1.PodCliqueSetSucceeded, patience)
	defer cluster.Start(t, framework.PodGateway)
	byFile := release(reading, func() { cluster.Stop(t, framework.PodGateway) })
	reading.WaitForPhase("job", grovev1alpha1.PodCliqueSetSucceeded, patience)
	t.Logf("from the last of %d pods at the barrier until the last main container has started: %s by watching the StartGate, %s by the mounted ConfigMap",
		gang, byWatch.Round(time.Millisecond), byFile.Round(time.Millisecond))
}

// timeRelease lets the last pod come to the barrier, and returns how long after that all
// main containers of a gang have started, as the kubelet tells both.
func timeRelease(t *testing.T, ns *framework.Namespace, gang int, letLast func()) time.Duration {
	t.Helper()
	watcher, err := cluster.Kube.CoreV1().Pods(ns.Name).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	letLast()
	atBarrier, started := map[string]bool{}, map[string]bool{}
	var complete time.Time
	timeout := time.After(patience)
	for len(started) < gang {
		select {
		case event := <-watcher.ResultChan():
			pod, is := event.Object.(*corev1.Pod)
			if !is {
				t.Fatalf("the watch says %v", event.Object)
			}
			for _, status := range pod.Status.InitContainerStatuses {
				if status.Name == naming.BarrierContainer && status.State.Waiting == nil {
					atBarrier[pod.Name] = true
				}
			}
			for _, status := range pod.Status.ContainerStatuses {
				if status.State.Waiting == nil {
					started[pod.Name] = true
				}
			}
			if complete.IsZero() && len(atBarrier) == gang {
				complete = time.Now()
			}
		case <-timeout:
			t.Fatalf("%d pods are at the barrier, and %d have started", len(atBarrier), len(started))
		}
	}
	return time.Since(complete)
}

// A barrier that expires ends the attempt: the waiters exit with 1, and in the next attempt
// all start.
func TestABarrierThatExpiresIsRestarted(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	loadGate(t)
	// Long enough for two containers one after the other on a busy machine.
	pcs := heldSet(2, ptr.To[int32](15))
	pcs.Spec.TrainingSpec = &grovev1alpha1.TrainingSpec{MaxRestarts: ptr.To[int32](1)}
	pcs.Spec.Template.Cliques[1].Spec.PodSpec.InitContainers[0].Args = []string{"when=" + attemptVariable + ":0", "await=/scratch/go"}
	apply(t, ns, pcs)
	if done := ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetSucceeded, patience); done.Status.RestartCount != 1 {
		t.Errorf("restartCount is %d", done.Status.RestartCount)
	}
}
