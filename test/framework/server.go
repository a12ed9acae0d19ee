package framework

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	copseclient "github.com/copse-dev/copse/pkg/generated/clientset/versioned"
)

// serverReadyWithin bounds how long a server takes to start on a machine that is busy.
const serverReadyWithin = time.Minute

// Server is a copse-apiserver that a test starts beside the cluster's own, with flags of
// its own. The aggregation layer does not know it: it is reached directly.
type Server struct {
	// Config connects to it as an administrator.
	Config *rest.Config
	// Copse is a client of it.
	Copse copseclient.Interface

	process *exec.Cmd
	log     string
}

// StartServer starts a server with the permissions of the cluster's own, and does not wait
// for it. The flags say where it stores; it ends with the test.
func (c *Cluster) StartServer(t *testing.T, flags ...string) *Server {
	t.Helper()
	port := FreePort(t)
	config := rest.CopyConfig(c.Config)
	config.Host = fmt.Sprintf("https://127.0.0.1:%d", port)
	config.TLSClientConfig.Insecure, config.TLSClientConfig.CAData, config.TLSClientConfig.CAFile = true, nil, ""
	client, err := copseclient.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := c.Components["copse-apiserver"].Kubeconfig
	args := append([]string{
		fmt.Sprintf("--secure-port=%d", port), "--bind-address=127.0.0.1", "--cert-dir=" + t.TempDir(),
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
	}, flags...)
	s := &Server{Config: config, Copse: client}
	s.process, s.log = c.StartProcess(t, "copse-apiserver", args...)
	return s
}

// StartProcess runs one of the programs in bin until the test is over, and returns where
// its log is. When the test fails, the end of the log is told.
func (c *Cluster) StartProcess(t *testing.T, program string, args ...string) (process *exec.Cmd, log string) {
	t.Helper()
	log = filepath.Join(t.TempDir(), program+".log")
	file, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	process = exec.Command(filepath.Join(c.bin, program), args...)
	process.Stdout, process.Stderr = file, file
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
		_ = file.Close()
		if text, err := os.ReadFile(log); err == nil && t.Failed() {
			t.Logf("the end of the log of %s:\n%s", program, text[max(0, len(text)-4000):])
		}
	})
	return process, log
}

// FreePort is a port of this machine that nothing listens on.
func FreePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}

// WaitReady waits until the server can answer.
func (s *Server) WaitReady(t *testing.T) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, serverReadyWithin, true, func(ctx context.Context) (bool, error) {
		last = s.Copse.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("the server is not ready within %s: %v", serverReadyWithin, last)
	}
}

// Kill ends the server as a crash would.
func (s *Server) Kill(t *testing.T) {
	t.Helper()
	if err := s.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.process.Wait()
}
