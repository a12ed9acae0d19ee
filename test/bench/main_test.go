// Package bench measures what depends on the machine, as ratios within one run where it
// can: the time from a fault to the recorded decision and to all replacements, and how
// exactly restarts are counted when many gangs fail at once. It runs on a real control
// plane with simulated nodes, by `make bench`, and prints its figures; only what must hold
// on every machine fails it.
package bench

import (
	"os"
	"testing"

	"github.com/copse-dev/copse/test/framework"
)

// cluster is shared by the benchmarks of this package, which run one after the other.
var cluster *framework.Cluster

func TestMain(m *testing.M) {
	os.Exit(framework.Run(m, func(c *framework.Cluster) { cluster = c }, "--nodes=12"))
}
