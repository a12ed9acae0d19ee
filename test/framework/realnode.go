package framework

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// loadTimeout bounds the loading of an image of a few megabytes.
const loadTimeout = time.Minute

// RealNode is a node with a kubelet and containers, see hack/cluster. Pods go there
// that select its label and tolerate its taint, both type=kubelet.
type RealNode struct {
	Name string `json:"name"`
	// Address is where pods reach the machine, and where they are reached from.
	Address string `json:"address"`
	// APIHost and APIPort are where pods reach kube-apiserver, unless the component
	// PodGateway is stopped. Each container finds them in its environment.
	APIHost string `json:"apiHost"`
	APIPort int    `json:"apiPort"`
	// Image is that of the test program hack/cluster/cmd/testpod.
	Image string `json:"image"`
}

// PodGateway is the component through which pods reach kube-apiserver. While it is
// stopped they do not, and the kubelet does.
const PodGateway = "pod-gateway"

// RunWithRealNode is Run for tests whose containers are real. Where the machine lacks
// what that needs, each test is skipped when it asks for its namespace, and says so.
func RunWithRealNode(m *testing.M, set func(*Cluster), flags ...string) int {
	missing, err := missingForRealNode()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ask what a real node needs:", err)
		return 1
	}
	if missing != "" {
		fmt.Fprintln(os.Stderr, "SKIPPED: a real node needs what this machine lacks:", missing)
		set(&Cluster{missing: missing})
		return m.Run()
	}
	return Run(m, set, append(flags, "--real-node")...)
}

// missingForRealNode asks the cluster tool what the machine lacks, and returns its words.
func missingForRealNode() (string, error) {
	root, err := findRoot()
	if err != nil {
		return "", err
	}
	out, err := exec.Command(filepath.Join(root, "bin", "cluster"), "preflight").CombinedOutput()
	var failed *exec.ExitError
	switch {
	case err == nil:
		return "", nil
	case errors.As(err, &failed) && failed.ExitCode() == 1:
		lines := strings.TrimPrefix(strings.TrimSpace(string(out)), "cluster: ")
		return strings.ReplaceAll(lines, "\n", "; "), nil
	default:
		return "", fmt.Errorf("%w: run 'make build' first\n%s", err, out)
	}
}

// skipWithoutRealNode skips a test for which the cluster was not started.
func (c *Cluster) skipWithoutRealNode(t *testing.T) {
	t.Helper()
	if c.missing != "" {
		t.Skip("SKIPPED: a real node needs what this machine lacks:", c.missing)
	}
}

// LoadImage brings the images of an archive, or of a folder with an OCI layout, to the
// real node, for containers with imagePullPolicy Never. The flags go to the cluster tool,
// such as --base-name for a layout whose images have a tag alone.
func (c *Cluster) LoadImage(t *testing.T, path string, flags ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), loadTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(c.bin, "cluster"), append([]string{"image", "load", path, "--dir", c.dir}, flags...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("load the image %s: %v\n%s", path, err, out)
	}
}

// Exec runs the test program in a container, with steps as arguments, and returns what
// it says.
func (n *Namespace) Exec(pod *corev1.Pod, container string, steps ...string) (string, error) {
	return n.TryKubectl(append([]string{"exec", pod.Name, "-c", container, "--", "/testpod"}, steps...)...)
}
