// Package framework starts a real cluster with Copse for a package of tests, and gives
// tests what they need of it: clients, kubectl, namespaces of their own, and power over
// the processes. The cluster is that of hack/cluster; nothing in it is mocked but the
// nodes, which KWOK plays. RunWithRealNode adds a node that is real as well.
package framework

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	copseclient "github.com/copse-dev/copse/pkg/generated/clientset/versioned"
)

// startTimeout bounds the start of a cluster on a machine that is busy with others.
const startTimeout = 3 * time.Minute

// Cluster is a running cluster with Copse.
type Cluster struct {
	// Config connects as an administrator, without a limit of requests of its own.
	Config *rest.Config
	// Kube is a client of the cluster's own kinds, and Copse one of Copse's.
	Kube  kubernetes.Interface
	Copse copseclient.Interface
	// Components are the processes by name.
	Components map[string]Component
	// RealNode is the node with containers, if the cluster has one.
	RealNode RealNode
	// Unrecorded says why no namespace is recorded; empty records all.
	Unrecorded string

	// missing is what the machine lacks for the cluster that was asked for: there is none.
	missing string
	bin     string
	dir     string
	process *exec.Cmd
	stdin   io.Closer
}

// Component is a process of the cluster, as hack/cluster describes it in cluster.json.
type Component struct {
	URL     string `json:"url"`
	Metrics string `json:"metrics"`
	Log     string `json:"log"`
	// Kubeconfig is what it connects to the cluster with.
	Kubeconfig string `json:"kubeconfig"`
}

// Run starts a cluster, runs the tests of a package with it, and stops it. The flags
// go to the cluster tool. It is called from TestMain and returns the exit code.
func Run(m *testing.M, set func(*Cluster), flags ...string) int {
	c, err := start(flags...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the cluster:", err)
		return 1
	}
	defer c.stop()
	set(c)
	return m.Run()
}

// Root is the repository's top folder.
func (c *Cluster) Root() string {
	return filepath.Dir(c.bin)
}

// findRoot finds the folder with go.mod above the package under test.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("the tests run outside of the repository")
		}
		dir = filepath.Dir(dir)
	}
}

func start(flags ...string) (*Cluster, error) {
	root, err := findRoot()
	if err != nil {
		return nil, err
	}
	bin := filepath.Join(root, "bin")
	for _, name := range []string{"cluster", "copse-apiserver", "copse-controller-manager"} {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			return nil, fmt.Errorf("%w: run 'make build' first", err)
		}
	}
	dir, err := os.MkdirTemp("", "copse-test-")
	if err != nil {
		return nil, err
	}
	// The tool ends with its standard input, and everything it started with it: a test
	// that is killed leaves nothing behind.
	args := []string{
		"run", "--dir", dir, "--copse", "--until-stdin-closes",
		// A killed controller manager cannot give its Lease back: do not wait long for it.
		"--copse-manager-args=--leader-election-lease-duration=2s",
		"--copse-manager-args=--leader-election-renew-deadline=1500ms",
		"--copse-manager-args=--leader-election-retry-period=300ms",
	}
	cmd := exec.Command(filepath.Join(bin, "cluster"), append(args, flags...)...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &Cluster{bin: bin, dir: dir, process: cmd, stdin: stdin}
	log := &tail{}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		scanner := bufio.NewScanner(output)
		for scanner.Scan() {
			log.add(scanner.Text())
		}
	}()
	if err := c.waitReady(ended); err != nil {
		c.stop()
		return nil, fmt.Errorf("%w\n%s", err, log)
	}
	if err := c.connect(); err != nil {
		c.stop()
		return nil, err
	}
	if err := c.waitServed(); err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

// waitServed waits until both groups are served through the aggregation layer: it finds
// the server for each of them by itself.
func (c *Cluster) waitServed() error {
	err := wait.PollUntilContextTimeout(context.Background(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, grove := c.Copse.GroveV1alpha1().PodCliqueSets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: 1})
		_, scheduler := c.Copse.SchedulerV1alpha1().PodGangs(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: 1})
		return grove == nil && scheduler == nil, nil
	})
	if err != nil {
		return fmt.Errorf("the groups are not served: %w", err)
	}
	return nil
}

func (c *Cluster) waitReady(ended <-chan struct{}) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(startTimeout)
	for {
		select {
		case <-ended:
			return errors.New("the cluster tool has ended")
		case <-deadline:
			return fmt.Errorf("the cluster is not ready after %s", startTimeout)
		case <-ticker.C:
			if _, err := os.Stat(filepath.Join(c.dir, "ready")); err == nil {
				return nil
			}
		}
	}
}

func (c *Cluster) connect() error {
	text, err := os.ReadFile(filepath.Join(c.dir, "cluster.json"))
	if err != nil {
		return err
	}
	var described struct {
		Components map[string]Component `json:"components"`
		RealNode   RealNode             `json:"realNode"`
	}
	if err := json.Unmarshal(text, &described); err != nil {
		return err
	}
	c.Components, c.RealNode = described.Components, described.RealNode
	if c.Config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig()); err != nil {
		return err
	}
	c.Config.QPS = -1
	if c.Kube, err = kubernetes.NewForConfig(c.Config); err != nil {
		return err
	}
	c.Copse, err = copseclient.NewForConfig(c.Config)
	return err
}

// Kubeconfig is the administrator's kubeconfig file.
func (c *Cluster) Kubeconfig() string {
	return filepath.Join(c.dir, "kubeconfig")
}

func (c *Cluster) stop() {
	_ = c.stdin.Close()
	_ = c.process.Wait()
	if os.Getenv("COPSE_KEEP_LOGS") != "" {
		fmt.Fprintln(os.Stderr, "logs are kept in", filepath.Join(c.dir, "logs"))
		return
	}
	_ = os.RemoveAll(c.dir)
}

// Kill ends a process with SIGKILL. It is started again by the cluster tool.
func (c *Cluster) Kill(t *testing.T, component string) {
	t.Helper()
	c.tool(t, "kill", component)
}

// Stop ends a process, which stays down until Start.
func (c *Cluster) Stop(t *testing.T, component string) {
	t.Helper()
	c.tool(t, "stop", component)
}

// Start starts a stopped process and waits until it can do its work.
func (c *Cluster) Start(t *testing.T, component string) {
	t.Helper()
	c.tool(t, "start", component)
}

// Begin starts a stopped process and does not wait until it can do its work.
func (c *Cluster) Begin(t *testing.T, component string) {
	t.Helper()
	c.tool(t, "start", component, "--wait=false")
}

// Data is the folder of a process's data, such as that of an etcd.
func (c *Cluster) Data(component string) string {
	return filepath.Join(c.dir, "data", component)
}

// Certs is the folder of the cluster's keys and certificates.
func (c *Cluster) Certs() string {
	return filepath.Join(c.dir, "certs")
}

// Direct connects to a component past the aggregation layer, as the cluster's
// administrator.
func (c *Cluster) Direct(component string) *rest.Config {
	config := rest.CopyConfig(c.Config)
	config.Host = c.Components[component].URL
	config.TLSClientConfig.Insecure, config.TLSClientConfig.CAData, config.TLSClientConfig.CAFile = true, nil, ""
	return config
}

// PID is the id of the process that a component is now.
func (c *Cluster) PID(t *testing.T, component string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(c.bin, "cluster"), "status", "--dir", c.dir).Output()
	if err != nil {
		t.Fatalf("cluster status: %v", err)
	}
	for _, line := range strings.Split(string(out), "\n") {
		// The columns are component, port and process.
		if columns := strings.Fields(line); len(columns) > 2 && columns[0] == component {
			if pid, err := strconv.Atoi(columns[2]); err == nil {
				return pid
			}
		}
	}
	t.Fatalf("%s is not running:\n%s", component, out)
	return 0
}

// Log is what a process has written since the cluster started.
func (c *Cluster) Log(t *testing.T, component string) string {
	t.Helper()
	text, err := os.ReadFile(c.Components[component].Log)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (c *Cluster) tool(t *testing.T, verb, component string, flags ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args := append([]string{verb, component, "--dir", c.dir}, flags...)
	out, err := exec.CommandContext(ctx, filepath.Join(c.bin, "cluster"), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("cluster %s %s: %v\n%s", verb, component, err, out)
	}
}

// tail keeps the last lines of an output.
type tail struct {
	lines []string
}

func (l *tail) add(line string) {
	const kept = 40
	l.lines = append(l.lines, line)
	if len(l.lines) > kept {
		l.lines = l.lines[1:]
	}
}

func (l *tail) String() string {
	return strings.Join(l.lines, "\n")
}
