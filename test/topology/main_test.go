// Package topology places gangs by the topology of their cluster, on one whose scheduler looks
// at it: Kubernetes has that switched off.
package topology

import (
	"os"
	"testing"

	"github.com/copse-dev/copse/test/framework"
)

// cluster is shared by the tests of this package; each works in a namespace of its own, and
// with nodes of its own.
var cluster *framework.Cluster

func TestMain(m *testing.M) {
	os.Exit(framework.Run(m, func(c *framework.Cluster) { cluster = c }, "--nodes=1",
		"--component-args=kube-apiserver=--feature-gates=TopologyAwareWorkloadScheduling=true",
		"--component-args=kube-scheduler=--feature-gates=TopologyAwareWorkloadScheduling=true"))
}
