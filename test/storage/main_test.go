// Package storage swaps etcds, records and definitions under a running server, and sees
// that no pod is deleted for it (D25). It has a cluster of its own: clients that have seen
// revisions of one etcd wait for them on another.
package storage

import (
	"os"
	"testing"

	"github.com/copse-dev/copse/test/framework"
)

// cluster is shared by the tests of this package, which run one after the other.
var cluster *framework.Cluster

func TestMain(m *testing.M) {
	os.Exit(framework.Run(m, func(c *framework.Cluster) { cluster = c }, "--nodes=2"))
}
