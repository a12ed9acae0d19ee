// Command kubernetes is a whole control plane in one binary: it acts as the
// program whose name it is called by (kube-apiserver, kubectl, etcd, ...).
//
// Each of these programs is about a hundred megabytes, and linking them is
// most of what a warm build costs. One binary is linked once; symbolic links
// give it its names.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	_ "time/tzdata" // CronJobs name time zones, and the machine may have no tzdata

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"

	_ "k8s.io/client-go/plugin/pkg/client/auth"           // kubectl's credential plugins
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client-go's metrics on /metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // kubernetes_build_info on /metrics

	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// programs maps a name to what runs under it. Nothing of a program may run
// before its entry is called: they share flags, feature gates and metrics.
func programs() map[string]func() {
	return map[string]func(){
		"etcd":                    func() { etcdmain.Main(os.Args) },
		"kube-apiserver":          server(apiserver.NewAPIServerCommand),
		"kube-controller-manager": server(controllermanager.NewControllerManagerCommand),
		"kube-scheduler":          server(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
		"kubectl":                 runKubectl,
		"kubelet":                 func() { os.Exit(cli.Run(kubelet.NewKubeletCommand(context.Background()))) },
	}
}

func main() {
	name := filepath.Base(os.Args[0])
	run, ok := programs()[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "%s: not a program of this binary; call it through a link named %s\n",
			name, strings.Join(slices.Sorted(maps.Keys(programs())), ", "))
		os.Exit(2)
	}
	run()
}

// server runs a component that serves until it is told to stop.
func server(command func() *cobra.Command) func() {
	return func() { os.Exit(cli.Run(command())) }
}

// runKubectl reads -v before anything else: plugins and the user's kuberc file
// are looked up while the command tree is built, before flags are parsed.
func runKubectl() {
	if _, err := logs.GlogSetter(kubectl.GetLogVerbosity(os.Args)); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
}
