// Package sharing runs gangs that share claims, on a cluster whose scheduler has to wait before
// each request: so the events of what it has written come to it before its next request.
package sharing

import (
	"os"
	"testing"

	"github.com/copse-dev/copse/test/framework"
)

// cluster is shared by the tests of this package; each works in a namespace of its own.
var cluster *framework.Cluster

func TestMain(m *testing.M) {
	os.Exit(framework.Run(m, func(c *framework.Cluster) { cluster = c }, "--nodes=4",
		"--component-args=kube-scheduler=--kube-api-qps=20",
		"--component-args=kube-scheduler=--kube-api-burst=1"))
}
