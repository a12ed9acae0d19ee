package kubelet

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/copse-dev/copse/test/framework"
)

// What tests of waiting containers rely on: a pod reaches kube-apiserver as any client in
// a cluster does, can be cut off from it, and then still sees a mounted ConfigMap change.
func TestPodsReachTheAPIAndCanBeCutOff(t *testing.T) {
	ns := cluster.Namespace(t)
	ctx := t.Context()
	configMaps := cluster.Kube.CoreV1().ConfigMaps(ns.Name)
	gate, err := configMaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "gate"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	container := runs("main", "get=/version", "await=/gate/started", "print=/gate/started")
	container.VolumeMounts = []corev1.VolumeMount{{Name: "gate", MountPath: "/gate"}}
	spec := onRealNode(container)
	spec.RestartPolicy = corev1.RestartPolicyNever
	spec.Volumes = []corev1.Volume{{Name: "gate", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "gate"}},
	}}}
	pod, err := cluster.Kube.CoreV1().Pods(ns.Name).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "client"}, Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ns.WaitForPods(1, patience, framework.IsReady)
	ns.Eventually(patience, func(context.Context) error {
		_, err := ns.Exec(pod, "main", "get=/version")
		return err
	})

	cluster.Stop(t, framework.PodGateway)
	defer cluster.Start(t, framework.PodGateway)
	if out, err := ns.Exec(pod, "main", "get=/version"); err == nil {
		t.Errorf("a pod that is cut off is answered: %s", out)
	}
	gate.Data = map[string]string{"started": "job-0-worker 0\n"}
	if _, err := configMaps.Update(ctx, gate, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	ns.WaitForPods(1, patience, hasPhase(corev1.PodSucceeded))
	if log := ns.Kubectl("logs", pod.Name); !strings.HasPrefix(log, "200 OK") || !strings.HasSuffix(log, "job-0-worker 0\n") {
		t.Errorf("the pod says %q", log)
	}
}

// Pods that do not ask for the real node do not go there.
func TestOtherPodsGoToOtherNodes(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	spec := onRealNode(runs("main", "exit=3"))
	spec.Tolerations, spec.NodeSelector = nil, nil
	_, err := cluster.Kube.CoreV1().Pods(ns.Name).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range ns.WaitForPods(1, patience, framework.IsReady) {
		if pod.Spec.NodeName == cluster.RealNode.Name {
			t.Errorf("it is on %s", pod.Spec.NodeName)
		}
	}
}
