// Package integration tests the API as clients see it: through kubectl and the
// aggregation layer of a real cluster. What controllers make of an object is tested in e2e.
package integration

import (
	"os"
	"testing"

	"github.com/copse-dev/copse/test/framework"
)

// cluster is shared by the tests of this package; each works in a namespace of its own.
var cluster *framework.Cluster

func TestMain(m *testing.M) {
	os.Exit(framework.Run(m, func(c *framework.Cluster) {
		cluster = c
		// The invariants are the controllers', and these tests write like one.
		c.Unrecorded = "objects are made and changed by hand"
	}))
}
