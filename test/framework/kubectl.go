package framework

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// kubectlTimeout bounds one call, waits included.
const kubectlTimeout = 3 * time.Minute

// waitTimeout bounds each wait of kubectl.
const waitTimeout = "--timeout=90s"

// Kubectl runs the cluster's kubectl in a namespace and returns its output. It fails
// the test when kubectl fails.
func (n *Namespace) Kubectl(args ...string) string {
	n.t.Helper()
	out, stderr, err := n.kubectl("", args...)
	if err != nil {
		n.t.Fatalf("kubectl %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr)
	}
	return out
}

// WaitFor waits until an object exists and meets a condition ("condition=Ready",
// "jsonpath={.status.phase}=Running"). kubectl's own wait for a condition fails at once for
// an object that a controller has yet to make.
func (n *Namespace) WaitFor(object, condition string) {
	n.t.Helper()
	n.Kubectl("wait", object, "--for=create", waitTimeout)
	n.Kubectl("wait", object, "--for="+condition, waitTimeout)
}

// KubectlFails runs kubectl, which has to fail, and returns what it says.
func (n *Namespace) KubectlFails(args ...string) string {
	n.t.Helper()
	out, stderr, err := n.kubectl("", args...)
	if err == nil {
		n.t.Fatalf("kubectl %s succeeded:\n%s", strings.Join(args, " "), out)
	}
	return out + stderr
}

// Apply applies a manifest and returns what kubectl says, warnings included.
func (n *Namespace) Apply(manifest string, flags ...string) string {
	n.t.Helper()
	out, stderr, err := n.kubectl(manifest, append([]string{"apply", "-f", "-"}, flags...)...)
	if err != nil {
		n.t.Fatalf("kubectl apply: %v\n%s%s", err, out, stderr)
	}
	return out + stderr
}

// ApplyFails applies a manifest that has to be refused, and returns what kubectl says.
func (n *Namespace) ApplyFails(manifest string, flags ...string) string {
	n.t.Helper()
	out, stderr, err := n.kubectl(manifest, append([]string{"apply", "-f", "-"}, flags...)...)
	if err == nil {
		n.t.Fatalf("the manifest was accepted:\n%s", manifest)
	}
	return out + stderr
}

// TryKubectl runs kubectl, which may fail, and returns what it says.
func (n *Namespace) TryKubectl(args ...string) (string, error) {
	out, stderr, err := n.kubectl("", args...)
	return out + stderr, err
}

// TryApply applies a manifest, which may be refused, and returns what kubectl says.
func (n *Namespace) TryApply(manifest string, flags ...string) (string, error) {
	out, stderr, err := n.kubectl(manifest, append([]string{"apply", "-f", "-"}, flags...)...)
	return out + stderr, err
}

func (n *Namespace) kubectl(stdin string, args ...string) (string, string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), kubectlTimeout)
	defer cancel()
	n.History.UserDeletes(deletedNames(args)...)
	cmd := n.cluster.kubectlCommand(ctx, append(n.flags(), args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := cmd.Run()
	return out.String(), stderr.String(), err
}

// deletedNames are the names of what kubectl is about to delete, written "delete KIND NAME…"
// or "delete KIND/NAME…". A user who deletes a pod explains why it goes.
func deletedNames(args []string) []string {
	if len(args) == 0 || args[0] != "delete" {
		return nil
	}
	var names []string
	for _, arg := range args[1:] {
		if !strings.HasPrefix(arg, "-") {
			names = append(names, arg[strings.LastIndex(arg, "/")+1:])
		}
	}
	return names
}

// flags name the namespace, unless the manifests do.
func (n *Namespace) flags() []string {
	if n.Name == "" {
		return nil
	}
	return []string{"--namespace", n.Name}
}

func (c *Cluster) kubectlCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, "kubectl"), args...)
	// A cache of its own: caches of other clusters on the same port would mislead it.
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig(), "KUBECACHEDIR="+filepath.Join(c.dir, "kubectl-cache"))
	return cmd
}

// StartKubectl runs kubectl in the background, such as a watch, and returns what it has
// written so far whenever asked. It ends with the test.
func (n *Namespace) StartKubectl(args ...string) func() string {
	n.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := n.cluster.kubectlCommand(ctx, append(n.flags(), args...)...)
	path := filepath.Join(n.t.TempDir(), "output")
	file, err := os.Create(path)
	if err != nil {
		n.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = file, file
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
		_ = file.Close()
	})
	return func() string {
		text, err := os.ReadFile(path)
		if err != nil {
			n.t.Fatal(err)
		}
		return string(text)
	}
}
