// Package plain runs sets on a cluster that schedules no gangs, as every cluster is where
// nobody has switched them on, and with topology switched off.
package plain

import (
	"os"
	"testing"

	"github.com/copse-dev/copse/test/framework"
)

// cluster is shared by the tests of this package; each works in a namespace of its own.
var cluster *framework.Cluster

func TestMain(m *testing.M) {
	os.Exit(framework.Run(m, func(c *framework.Cluster) { cluster = c }, "--nodes=2",
		"--copse-manager-args=--topology-aware-scheduling=false",
		"--component-args=kube-apiserver=--feature-gates=GenericWorkload=false",
		"--component-args=kube-apiserver=--runtime-config=scheduling.k8s.io/v1beta1=false",
		"--component-args=kube-scheduler=--feature-gates=GenericWorkload=false",
		"--component-args=kube-controller-manager=--feature-gates=GenericWorkload=false"))
}
