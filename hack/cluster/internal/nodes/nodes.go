package nodes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/copse-dev/copse/hack/cluster/internal/components"
)

// parallelism bounds the requests that are under way at once.
const parallelism = 8

// New returns count nodes, node-0 and up, in two zones in turn.
func New(count int, resources corev1.ResourceList) []*corev1.Node {
	nodes := make([]*corev1.Node, count)
	for i := range nodes {
		name := fmt.Sprintf("node-%d", i)
		nodes[i] = &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: name,
				Labels: map[string]string{
					components.NodeLabelKey:  components.NodeLabelValue,
					corev1.LabelHostname:     name,
					corev1.LabelTopologyZone: []string{"zone-a", "zone-b"}[i%2],
					corev1.LabelArchStable:   "amd64",
					corev1.LabelOSStable:     "linux",
				},
			},
			Status: corev1.NodeStatus{
				Capacity:    resources.DeepCopy(),
				Allocatable: resources.DeepCopy(),
				Addresses: []corev1.NodeAddress{
					// It only looks like one: a pod's host address comes from here.
					{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("172.16.%d.%d", i/250, i%250+1)},
					{Type: corev1.NodeHostName, Address: name},
				},
			},
		}
	}
	return nodes
}

// Create creates the nodes that do not exist.
func Create(ctx context.Context, client kubernetes.Interface, nodes []*corev1.Node) error {
	failures := make([]error, len(nodes))
	slots := make(chan struct{}, parallelism)
	var created sync.WaitGroup
	for i, node := range nodes {
		slots <- struct{}{}
		created.Go(func() {
			defer func() { <-slots }()
			_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
			if err != nil && !apierrors.IsAlreadyExists(err) {
				failures[i] = fmt.Errorf("node %s: %w", node.Name, err)
			}
		})
	}
	created.Wait()
	return errors.Join(failures...)
}

// WaitReady returns when at least count nodes take pods, of those whose label
// for the type has that value.
func WaitReady(ctx context.Context, client kubernetes.Interface, value string, count int) error {
	for {
		list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{
			LabelSelector: components.NodeLabelKey + "=" + value,
		})
		ready := 0
		if err == nil {
			for i := range list.Items {
				if takesPods(&list.Items[i]) {
					ready++
				}
			}
			if ready >= count {
				return nil
			}
			err = fmt.Errorf("%d of %d nodes are ready", ready, count)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// takesPods returns whether a node is ready and without the taint that every
// node has until the controller manager has seen it ready. That of its own type
// a real node always has.
func takesPods(node *corev1.Node) bool {
	if node.Spec.Unschedulable || slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Key != components.NodeLabelKey
	}) {
		return false
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
