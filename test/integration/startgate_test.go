package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/test/framework"
)

// podClique is the clique that waits at the gates of these tests.
const podClique = "job-0-worker"

// waiterProcess is bin/start-gate, run as a pod runs it: with the token of a service
// account that nobody has given any role.
type waiterProcess struct {
	ns      *framework.Namespace
	t       *testing.T
	command *exec.Cmd
	folder  string
	ended   chan struct{}

	mu     sync.Mutex
	output bytes.Buffer
}

func (w *waiterProcess) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.output.Write(text)
}

func (w *waiterProcess) log() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.output.String()
}

// file is where it looks for the second signal.
func (w *waiterProcess) file() string {
	return filepath.Join(w.folder, "group-scheduling", "started")
}

// startWaiter starts a waiter for an attempt of the gate job-0. The address is where it
// finds the API.
func startWaiter(t *testing.T, ns *framework.Namespace, address string, attempt int, flags ...string) *waiterProcess {
	t.Helper()
	w := &waiterProcess{ns: ns, t: t, folder: t.TempDir(), ended: make(chan struct{})}
	var token string
	// The namespace gets its service account a moment after it was made.
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		issued, err := cluster.Kube.CoreV1().ServiceAccounts(ns.Name).CreateToken(ctx, "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err == nil {
			token = issued.Status.Token
		}
		return err
	})
	authority := cluster.Config.CAData
	var err error
	if len(authority) == 0 {
		if authority, err = os.ReadFile(cluster.Config.CAFile); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string][]byte{"token": []byte(token), "ca.crt": authority} {
		if err := os.WriteFile(filepath.Join(w.folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	w.command = exec.Command(filepath.Join(cluster.Root(), "bin", "start-gate"), append([]string{
		"--namespace=" + ns.Name, "--gate=job-0", "--podclique=" + podClique, fmt.Sprintf("--attempt=%d", attempt),
		"--file=" + w.file(), "--service-account=" + w.folder,
	}, flags...)...)
	w.command.Env = []string{"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port}
	w.command.Stdout, w.command.Stderr = w, w
	if err := w.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(w.ended)
		_ = w.command.Wait()
	}()
	t.Cleanup(func() {
		_ = w.command.Process.Kill()
		<-w.ended
		if t.Failed() {
			t.Logf("the waiter says:\n%s", w.log())
		}
	})
	return w
}

// kubernetes is the address of kube-apiserver.
func kubernetes(t *testing.T) string {
	t.Helper()
	address, err := url.Parse(cluster.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	return address.Host
}

// says waits until the waiter has written a text: it has then seen what the text speaks of.
func (w *waiterProcess) says(text string) {
	w.t.Helper()
	w.ns.Eventually(time.Minute, func(context.Context) error {
		if !strings.Contains(w.log(), text) {
			return fmt.Errorf("the waiter does not say %q", text)
		}
		return nil
	})
}

// isWaiting fails the test if the waiter ends within a moment.
func (w *waiterProcess) isWaiting() {
	w.t.Helper()
	select {
	case <-w.ended:
		w.t.Fatalf("the waiter has ended with %d", w.command.ProcessState.ExitCode())
	case <-time.After(500 * time.Millisecond):
	}
}

// ends waits for the end.
func (w *waiterProcess) ends(code int, within time.Duration) {
	w.t.Helper()
	began := time.Now()
	select {
	case <-w.ended:
	case <-time.After(within):
		w.t.Fatalf("the waiter has not ended within %s", within)
	}
	if got := w.command.ProcessState.ExitCode(); got != code {
		w.t.Fatalf("the waiter has ended with %d, want %d", got, code)
	}
	w.t.Logf("it ended with %d after %s, and has used %s of CPU", code, time.Since(began).Round(time.Millisecond), w.command.ProcessState.UserTime()+w.command.ProcessState.SystemTime())
}

// writeGate makes the gate job-0 say something, through the API as the controllers do.
func writeGate(t *testing.T, ns *framework.Namespace, cliques ...grovev1alpha1.StartGateClique) {
	t.Helper()
	gates := cluster.Copse.GroveV1alpha1().StartGates(ns.Name)
	err := retry.OnError(retry.DefaultBackoff, func(error) bool { return true }, func() error {
		gate, err := gates.Get(t.Context(), "job-0", metav1.GetOptions{})
		if err != nil {
			return err
		}
		gate.Status.Cliques = cliques
		_, err = gates.UpdateStatus(t.Context(), gate, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func makeGate(t *testing.T, ns *framework.Namespace) {
	t.Helper()
	gate := &grovev1alpha1.StartGate{ObjectMeta: metav1.ObjectMeta{Name: "job-0"}}
	if _, err := cluster.Copse.GroveV1alpha1().StartGates(ns.Name).Create(t.Context(), gate, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestAWaiterPassesWhenItsOwnAttemptOpens(t *testing.T) {
	ns := cluster.Namespace(t)
	w := startWaiter(t, ns, kubernetes(t), 1, "--timeout=1h")
	w.says("waiting for gate " + ns.Name + "/job-0 to open for PodClique job-0-worker, attempt 1")
	w.isWaiting()
	makeGate(t, ns)
	w.says("the gate has no entry of this PodClique")
	writeGate(t, ns, grovev1alpha1.StartGateClique{Name: "job-0-other", Attempt: 1, Open: true}, grovev1alpha1.StartGateClique{Name: podClique, Open: true})
	w.says("the gate has entry of attempt 0, open")
	w.isWaiting()
	writeGate(t, ns, grovev1alpha1.StartGateClique{Name: podClique, Attempt: 1})
	w.says("the gate has entry of attempt 1, not open")
	w.isWaiting()
	late := startWaiter(t, ns, kubernetes(t), 0)
	late.says("the gate has entry of attempt 1, not open; this pod is of an earlier attempt")
	writeGate(t, ns, grovev1alpha1.StartGateClique{Name: podClique, Attempt: 1, Open: true})
	w.ends(0, time.Second)
	late.says("the gate has entry of attempt 1, open; this pod is of an earlier attempt")
	late.isWaiting()
	// A replacement finds the gate open.
	startWaiter(t, ns, kubernetes(t), 1).ends(0, 5*time.Second)
	if err := late.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	late.ends(128+15, time.Second)
}

// A gate can be as large as a set can. The waiter's limit is a few tens of megabytes, and
// what it takes counts in every pod of a gang.
func TestAWaiterNeedsLittleMemory(t *testing.T) {
	ns := cluster.Namespace(t)
	makeGate(t, ns)
	now := metav1.Now()
	var cliques []grovev1alpha1.StartGateClique
	for i := range 1000 {
		cliques = append(cliques, grovev1alpha1.StartGateClique{Name: fmt.Sprintf("job-0-a-clique-with-a-name-that-is-as-long-as-it-can-be-%d", i), Attempt: 1, Open: true, Since: &now, FirstStarted: &now})
	}
	w := startWaiter(t, ns, kubernetes(t), 1)
	w.says("the gate has no entry")
	writeGate(t, ns, append(cliques, grovev1alpha1.StartGateClique{Name: podClique, Attempt: 1})...)
	w.says("the gate has entry of attempt 1, not open")
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.command.Process.Pid))
	if err != nil {
		t.Skipf("nothing tells what it takes: %v", err)
	}
	peak := 0
	for line := range strings.Lines(string(status)) {
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &peak); err == nil {
			break
		}
	}
	t.Logf("it took %d kB at most", peak)
	if peak == 0 || peak > 24<<10 {
		t.Errorf("it took %d kB", peak)
	}
}

func TestAWaiterFailsWhenItsOwnAttemptExpires(t *testing.T) {
	ns := cluster.Namespace(t)
	makeGate(t, ns)
	writeGate(t, ns, grovev1alpha1.StartGateClique{Name: podClique, Expired: true})
	next := startWaiter(t, ns, kubernetes(t), 1, "--timeout=1m")
	next.says("the gate has entry of attempt 0, expired")
	next.isWaiting()
	writeGate(t, ns, grovev1alpha1.StartGateClique{Name: podClique, Attempt: 1, Expired: true})
	next.ends(1, time.Second)
	next.says("level=ERROR msg=\"gate " + ns.Name + "/job-0 expired for PodClique job-0-worker, attempt 1")
}

// Either server may die while pods wait; both of those who come back are found.
func TestAWaiterOutlivesTheServers(t *testing.T) {
	for _, component := range []string{"copse-apiserver", "kube-apiserver"} {
		t.Run(component, func(t *testing.T) {
			ns := cluster.Namespace(t)
			makeGate(t, ns)
			w := startWaiter(t, ns, kubernetes(t), 0, "--timeout=10m")
			w.says("the gate has no entry")
			cluster.Outage(t, component, 0, func() {
				w.says("the gate cannot be read, and is tried again until it can")
			})
			writeGate(t, ns, grovev1alpha1.StartGateClique{Name: podClique, Open: true})
			w.ends(0, 20*time.Second)
			w.says("the gate can be read again")
		})
	}
}

func TestAWaiterPassesByTheFileWithoutTheAPI(t *testing.T) {
	ns := cluster.Namespace(t)
	// Nobody listens where it looks.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	w := startWaiter(t, ns, address, 2, "--timeout=1h")
	w.says("connection refused")
	w.isWaiting()
	if err := os.Mkdir(filepath.Dir(w.file()), 0o755); err != nil {
		t.Fatal(err)
	}
	replace(t, w.file(), []byte("job-0-worker 1\njob-0-worker-2 2\n"))
	w.isWaiting()
	w.isWaiting()
	w.isWaiting() // for longer than it takes to look at the file
	replace(t, w.file(), []byte("job-0-worker 2\njob-0-worker-2 2\n"))
	w.ends(0, 2*time.Second)
	w.says("the gate is open")
}

// The role for service accounts watches gates, and allows nothing else.
func TestServiceAccountsWatchStartGatesAlone(t *testing.T) {
	ns := cluster.Namespace(t)
	makeGate(t, ns)
	as := "--as=system:serviceaccount:" + ns.Name + ":default"
	ns.Kubectl("auth", "can-i", as, "watch", "startgates.grove.io")
	for _, forbidden := range [][]string{
		{"get", "startgates.grove.io"}, {"list", "startgates.grove.io"},
		{"update", "startgates.grove.io"}, {"patch", "startgates.grove.io", "--subresource=status"}, {"create", "startgates.grove.io"}, {"delete", "startgates.grove.io"},
		{"get", "podcliquesets.grove.io"}, {"get", "podcliques.grove.io"}, {"get", "pods"}, {"get", "secrets"},
	} {
		out, err := ns.TryKubectl(append([]string{"auth", "can-i", as}, forbidden...)...)
		if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || !strings.Contains(out, "no") {
			t.Errorf("a service account may %v: %s, error %v", forbidden, out, err)
		}
	}
}
