package bootstrap

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/copse-dev/copse/hack/cluster/internal/components"
	"github.com/copse-dev/copse/hack/cluster/internal/nodes"
)

// startNodes creates the nodes and waits until they take pods.
func (c *cluster) startNodes(ctx context.Context) error {
	if c.options.Nodes == 0 {
		return nil
	}
	began := time.Now()
	if err := nodes.Create(ctx, c.client, nodes.New(c.options.Nodes, c.options.Resources)); err != nil {
		return err
	}
	if err := nodes.WaitReady(ctx, c.client, components.NodeLabelValue, c.options.Nodes); err != nil {
		return err
	}
	c.report("%d nodes are ready after %.1f s", c.options.Nodes, time.Since(began).Seconds())
	return nil
}

// awaitServiceAccount waits for what every pod needs: kube-apiserver refuses
// pods in a namespace without a default service account.
func (c *cluster) awaitServiceAccount(ctx context.Context) error {
	for {
		_, err := c.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the default service account: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
