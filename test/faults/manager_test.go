package faults

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
)

// manager is a controller manager that is started again whenever it ends.
type manager struct {
	gateway *gateway
	log     *os.File

	mu      sync.Mutex
	process *os.Process
	lives   int
	over    bool
	ended   chan struct{}
}

// startManager runs the controller manager behind a gateway, in place of the one of the
// cluster, until the test ends.
func startManager(t *testing.T, g *gateway) *manager {
	t.Helper()
	cluster.Stop(t, "copse-controller-manager")
	log, err := os.Create(filepath.Join(t.TempDir(), "manager.log"))
	if err != nil {
		t.Fatal(err)
	}
	m := &manager{gateway: g, log: log, ended: make(chan struct{})}
	go m.run()
	t.Cleanup(func() {
		m.end()
		if t.Failed() {
			t.Logf("the last lines of the controller manager:\n%s", m.lastLines(t))
		}
		_ = log.Close()
	})
	return m
}

// run starts a life after the other. The thread stays the same, for the kernel kills the
// process with the thread that made it: no manager outlives the test.
func (m *manager) run() {
	runtime.LockOSThread()
	defer close(m.ended)
	for {
		cmd := exec.Command(filepath.Join(cluster.Root(), "bin", "copse-controller-manager"),
			"--kubeconfig="+m.gateway.kubeconfig, "--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0")
		cmd.Stdout, cmd.Stderr = m.log, m.log
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		m.mu.Lock()
		if m.over || cmd.Start() != nil {
			m.mu.Unlock()
			return
		}
		m.process = cmd.Process
		m.lives++
		m.mu.Unlock()
		_ = cmd.Wait()
	}
}

// kill ends the process with SIGKILL. The next life begins at once.
func (m *manager) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.process != nil {
		_ = m.process.Kill()
	}
}

func (m *manager) end() {
	m.mu.Lock()
	m.over = true
	m.mu.Unlock()
	m.kill()
	<-m.ended
}

// deaths is how often the process has been started anew.
func (m *manager) deaths() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return max(m.lives-1, 0)
}

func (m *manager) lastLines(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(m.log.Name())
	if err != nil {
		return err.Error()
	}
	const most = 6000
	return string(text[max(0, len(text)-most):])
}
