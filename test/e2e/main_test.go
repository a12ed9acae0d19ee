// Package e2e runs workloads from their manifests to their ends on a real control
// plane: what a user sees, with kubectl and with the generated clients.
package e2e

import (
	"os"
	"testing"

	"github.com/copse-dev/copse/test/framework"
)

// cluster is shared by the tests of this package; each works in a namespace of its own.
var cluster *framework.Cluster

func TestMain(m *testing.M) {
	os.Exit(framework.Run(m, func(c *framework.Cluster) { cluster = c }, "--nodes=12"))
}
