package framework

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
)

// writableWithin bounds how long kube-apiserver takes to find a server that is back.
const writableWithin = time.Minute

// Outage ends a process as a crash would, lets down see that it is gone, and starts it
// again when it was down for long enough.
func (c *Cluster) Outage(t *testing.T, component string, during time.Duration, down func()) {
	t.Helper()
	c.tool(t, "stop", component, "--grace=1ms")
	over := time.After(during)
	down()
	<-over
	c.Start(t, component)
	if component == "etcd" || component == "kube-apiserver" {
		c.reviveNodes(t)
	}
}

// reviveNodes starts KWOK anew once nodes and pods can be written again. A kubelet tries
// again what fails; KWOK v0.8 does not when a connection breaks, and so loses heartbeats
// and pods that it should have ended. A node would then be NotReady a minute later.
func (c *Cluster) reviveNodes(t *testing.T) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, writableWithin, true, func(ctx context.Context) (bool, error) {
		last = c.writeNodeAndPod(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("the cluster cannot be written to within %s: %v", writableWithin, last)
	}
	c.Kill(t, "kwok")
}

// writeNodeAndPod changes nothing that stays. Each kind has a connection of its own to etcd.
func (c *Cluster) writeNodeAndPod(ctx context.Context) error {
	pods := c.Kube.CoreV1().Pods(metav1.NamespaceDefault)
	pod, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"},
		Spec: corev1.PodSpec{
			SchedulingGates: []corev1.PodSchedulingGate{{Name: "example.com/never"}},
			Containers:      []corev1.Container{{Name: "main", Image: "example.com/probe"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
		return err
	}
	nodes, err := c.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil || len(nodes.Items) == 0 {
		return err
	}
	for _, annotation := range []string{`"now"`, "null"} {
		patch := []byte(`{"metadata":{"annotations":{"example.com/written":` + annotation + `}}}`)
		if _, err := c.Kube.CoreV1().Nodes().Patch(ctx, nodes.Items[0].Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	return nil
}
