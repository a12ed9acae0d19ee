// Package faults runs gangs of all kinds at once on a real control plane, and has the
// processes under them die: the controller manager at its writes, API servers and etcds
// for a while. Each gang has to come to the end that it would have come to anyway, along a
// history without a violation.
//
// The controller manager runs behind a gateway of the tests, which counts its writes and
// so says exactly when something happens. Nothing else is put between: the processes, what
// they say to each other and how they die are real. The package has a cluster of its own,
// for its faults hit everything in it.
package faults

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/copse-dev/copse/test/framework"
)

// deep tries faults at many more writes, and looks for a minute whether all is quiet.
var deep = flag.Bool("faults.deep", os.Getenv("FAULTS_DEEP") != "", "try faults at many writes")

// cluster is shared by the tests of this package, one of which runs at a time.
var cluster *framework.Cluster

func TestMain(m *testing.M) {
	os.Exit(framework.Run(m, func(c *framework.Cluster) { cluster = c }, "--nodes=8"))
}

// quiet is how long nothing is written in the end: in the deep tier for a minute, but only
// in some of the runs, for the sake of the others.
func quiet(chosen bool) framework.NamespaceOption {
	if *deep && chosen {
		return framework.Quiet(time.Minute)
	}
	return framework.Quiet(3 * time.Second)
}
