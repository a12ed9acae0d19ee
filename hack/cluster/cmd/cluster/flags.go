package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/copse-dev/copse/hack/cluster/internal/bootstrap"
	"github.com/copse-dev/copse/hack/cluster/internal/components"
	"github.com/copse-dev/copse/hack/cluster/internal/nodes"
	"github.com/copse-dev/copse/hack/cluster/internal/state"
)

// dirFlag is the flag that all commands have.
type dirFlag struct {
	path string
}

func (f *dirFlag) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.path, "dir", "", "state folder of the cluster; it is created, and removed by down")
	// It can only fail for a flag that does not exist.
	_ = cmd.MarkFlagRequired("dir")
}

func (f *dirFlag) dir() (state.Dir, error) {
	return state.NewDir(f.path)
}

// clusterFlags say what a cluster consists of.
type clusterFlags struct {
	dirFlag
	binDir        string
	kwok          bool
	nodes         int
	resources     string
	realNode      bool
	copse         bool
	overlay       string
	apiserverArgs []string
	managerArgs   []string
	componentArgs []string
	verbosity     int
}

func (f *clusterFlags) addTo(cmd *cobra.Command) {
	f.add(cmd)
	fs := cmd.Flags()
	fs.StringVar(&f.binDir, "bin-dir", "", "folder of the programs (default: the folder of this one)")
	fs.BoolVar(&f.kwok, "kwok", true, "play nodes and pods with KWOK; without it there are no nodes")
	fs.IntVar(&f.nodes, "nodes", 4, "number of nodes")
	fs.StringVar(&f.resources, "node-resources", "cpu=32,memory=256Gi,pods=110,nvidia.com/gpu=8", "what each node has to give")
	fs.BoolVar(&f.realNode, "real-node", false, "add a node with a kubelet and containers; needs root, containerd, runc and CNI plugins")
	fs.BoolVar(&f.copse, "copse", false, "install Copse and run it")
	fs.StringVar(&f.overlay, "copse-overlay", "", "kustomization that installs Copse (default: artifacts/overlays/local next to the folder of the programs)")
	fs.StringArrayVar(&f.apiserverArgs, "copse-apiserver-args", nil, "another flag of copse-apiserver; repeatable")
	fs.StringArrayVar(&f.managerArgs, "copse-manager-args", nil, "another flag of copse-controller-manager; repeatable")
	fs.StringArrayVar(&f.componentArgs, "component-args", nil, "another flag of any component, as COMPONENT=FLAG; repeatable")
	fs.IntVar(&f.verbosity, "verbosity", 1, "level of the logs, 0 to 10")
}

func (f *clusterFlags) options() (bootstrap.Options, error) {
	o := bootstrap.Options{
		BinDir:    f.binDir,
		KWOK:      f.kwok,
		Nodes:     f.nodes,
		RealNode:  f.realNode,
		Copse:     f.copse,
		Overlay:   f.overlay,
		Verbosity: f.verbosity,
	}
	var err error
	if o.Dir, err = f.dir(); err != nil {
		return o, err
	}
	if o.BinDir == "" {
		self, err := os.Executable()
		if err != nil {
			return o, err
		}
		o.BinDir = filepath.Dir(self)
	}
	if o.BinDir, err = filepath.Abs(o.BinDir); err != nil {
		return o, err
	}
	if o.Overlay == "" {
		o.Overlay = filepath.Join(o.BinDir, "..", "artifacts", "overlays", "local")
	}
	if o.Resources, err = nodes.ParseResources(f.resources); err != nil {
		return o, fmt.Errorf("--node-resources: %w", err)
	}
	o.ExtraArgs, err = f.extraArgs()
	return o, err
}

// extraArgs collects additional flags by component.
func (f *clusterFlags) extraArgs() (map[string][]string, error) {
	extra := map[string][]string{}
	if len(f.apiserverArgs) > 0 {
		extra[components.CopseAPIServer] = f.apiserverArgs
	}
	if len(f.managerArgs) > 0 {
		extra[components.CopseControllerManager] = f.managerArgs
	}
	for _, arg := range f.componentArgs {
		name, value, found := strings.Cut(arg, "=")
		if !found {
			return nil, fmt.Errorf("--component-args: %q is not of the form COMPONENT=FLAG", arg)
		}
		extra[name] = append(extra[name], value)
	}
	return extra, nil
}

// changed returns the flags that the command was called with, as arguments for
// another command that has the same ones. Not among them are those named.
func changed(fs *pflag.FlagSet, except ...string) []string {
	skip := map[string]bool{}
	for _, name := range except {
		skip[name] = true
	}
	var args []string
	fs.Visit(func(flag *pflag.Flag) {
		if skip[flag.Name] {
			return
		}
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			args = append(args, "--"+flag.Name+"="+value)
		}
	})
	return args
}
