package kubelet

import (
	"os"
	"testing"

	"github.com/copse-dev/copse/test/framework"
)

// cluster is shared by the tests of this package; each works in a namespace of its own.
var cluster *framework.Cluster

func TestMain(m *testing.M) {
	os.Exit(framework.RunWithRealNode(m, func(c *framework.Cluster) { cluster = c }, "--nodes=2"))
}
