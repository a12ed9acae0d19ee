package bootstrap

import (
	"fmt"
	"os"
	"os/exec"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/copse-dev/copse/hack/cluster/internal/components"
	"github.com/copse-dev/copse/hack/cluster/internal/realnode"
	"github.com/copse-dev/copse/hack/cluster/internal/state"
)

// Options is what a cluster consists of.
type Options struct {
	// Dir is the state folder.
	Dir state.Dir
	// BinDir is the folder of the programs.
	BinDir string
	// KWOK plays the kubelets of Nodes nodes, which have these Resources.
	KWOK      bool
	Nodes     int
	Resources corev1.ResourceList
	// RealNode is whether there is a node with containers as well.
	RealNode bool
	// Copse is installed from the manifests in the folder Overlay.
	Copse   bool
	Overlay string
	// ExtraArgs by component are added to its flags.
	ExtraArgs map[string][]string
	// Verbosity is the level of the logs.
	Verbosity int
}

// Validate finds mistakes that would show late or far from their cause.
func (o Options) Validate() error {
	if o.Nodes < 0 {
		return fmt.Errorf("%d nodes: cannot be negative", o.Nodes)
	}
	names := components.Names(o.parts())
	known := map[string]bool{}
	for _, name := range names {
		known[name] = true
	}
	for name := range o.ExtraArgs {
		if !known[name] {
			return fmt.Errorf("arguments for %q, which is not among %q", name, names)
		}
	}
	if err := o.validateRealNode(); err != nil {
		return err
	}
	for _, name := range names {
		program, err := o.program(name)
		if err != nil {
			return err
		}
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%s is missing: hack/cluster/build.sh builds Kubernetes and KWOK, make build builds Copse", program)
		}
	}
	if o.Copse {
		if _, err := os.Stat(o.Overlay); err != nil {
			return fmt.Errorf("copse's manifests: %w", err)
		}
	}
	return nil
}

// validateRealNode looks for what the machine and the cluster lack for a real
// node.
func (o Options) validateRealNode() error {
	previous, err := o.Dir.Load()
	if err != nil {
		return err
	}
	if !o.RealNode {
		if previous.RealNode.Exists() {
			return fmt.Errorf("the cluster in %s has a real node: start it with --real-node, or remove it and start a new one", o.Dir)
		}
		return nil
	}
	if previous.Dir != "" && !previous.RealNode.Exists() {
		return fmt.Errorf("the cluster in %s was made without a real node, and its addresses cannot be changed: remove it and start a new one", o.Dir)
	}
	if missing := realnode.Preflight(); missing != nil {
		return fmt.Errorf("a real node needs what this machine lacks: %s", strings.ReplaceAll(missing.Error(), "\n", "; "))
	}
	return realnode.CheckDir(o.Dir)
}

func (o Options) parts() components.Parts {
	return components.Parts{KWOK: o.KWOK, RealNode: o.RealNode, Copse: o.Copse}
}

func (o Options) program(name string) (string, error) {
	c, err := components.New(name, components.Config{BinDir: o.BinDir})
	return c.Path, err
}
