package bench

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/copse-dev/copse/cmd/start-gate/app"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	copseclient "github.com/copse-dev/copse/pkg/generated/clientset/versioned"
	"github.com/copse-dev/copse/test/framework"
)

var waiters = flag.Int("bench.waiters", 512, "pods that wait at one gate")

// counter counts the lines with a text.
type counter struct {
	text  string
	count *atomic.Int64
}

func (c counter) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(c.text)) {
		c.count.Add(1)
	}
	return len(line), nil
}

// All pods of a gang wait at one gate, each with a connection and a token of its own, and
// the gate opens with one write. The waiters are those of the pods, in one process.
func TestReleaseOfAGang(t *testing.T) {
	ns := cluster.Namespace(t, framework.Unrecorded("the gate is made by hand"))
	address, err := url.Parse(cluster.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", address.Hostname())
	t.Setenv("KUBERNETES_SERVICE_PORT", address.Port())
	account := serviceAccount(t, ns)

	gates := cluster.Copse.GroveV1alpha1().StartGates(ns.Name)
	gate, err := gates.Create(t.Context(), &grovev1alpha1.StartGate{ObjectMeta: metav1.ObjectMeta{Name: "job-0"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	gate.Status.Cliques = []grovev1alpha1.StartGateClique{{Name: "job-0-worker"}}
	if gate, err = gates.UpdateStatus(t.Context(), gate, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	before := serverMemory(t)

	var waiting atomic.Int64
	type end struct {
		code int
		at   time.Time
	}
	ends := make(chan end, *waiters)
	for range *waiters {
		go func() {
			code := app.Main(t.Context(), []string{
				"--namespace=" + ns.Name, "--gate=job-0", "--podclique=job-0-worker", "--attempt=0",
				"--file=" + filepath.Join(account, "started"), "--service-account=" + account,
			}, io.Discard, counter{text: "entry of attempt 0, not open", count: &waiting})
			ends <- end{code: code, at: time.Now()}
		}()
	}
	ns.Eventually(2*time.Minute, func(context.Context) error {
		if got := waiting.Load(); got != int64(*waiters) {
			return fmt.Errorf("%d of %d wait", got, *waiters)
		}
		return nil
	})
	during := serverMemory(t)

	gate.Status.Cliques[0].Open = true
	began := time.Now()
	if _, err := gates.UpdateStatus(t.Context(), gate, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	written := time.Since(began)
	var took []time.Duration
	for range *waiters {
		e := <-ends
		if e.code != 0 {
			t.Fatalf("a waiter ended with %d", e.code)
		}
		took = append(took, e.at.Sub(began))
	}
	slices.Sort(took)
	t.Logf("%d waiters: the write took %s; released after %s at p50, the last after %s; the API server grew by %.1f MB, %.0f KB for each",
		*waiters, written.Round(time.Millisecond), took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond),
		(during-before)/1e6, (during-before)/1e3/float64(*waiters))
}

// serviceAccount returns a folder with what a pod is given of its service account.
func serviceAccount(t *testing.T, ns *framework.Namespace) string {
	t.Helper()
	var token string
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		issued, err := cluster.Kube.CoreV1().ServiceAccounts(ns.Name).CreateToken(ctx, "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err == nil {
			token = issued.Status.Token
		}
		return err
	})
	authority := cluster.Config.CAData
	if len(authority) == 0 {
		var err error
		if authority, err = os.ReadFile(cluster.Config.CAFile); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	for name, content := range map[string][]byte{"token": []byte(token), "ca.crt": authority} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// serverMemory is what copse-apiserver has in memory, in bytes.
func serverMemory(t *testing.T) float64 {
	t.Helper()
	config := rest.CopyConfig(cluster.Config)
	config.Host = cluster.Components["copse-apiserver"].URL
	config.TLSClientConfig.Insecure, config.TLSClientConfig.CAData, config.TLSClientConfig.CAFile = true, nil, ""
	client, err := copseclient.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := client.Discovery().RESTClient().Get().AbsPath("/metrics").Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(metrics)) {
		var bytes float64
		if _, err := fmt.Sscanf(line, "process_resident_memory_bytes %g", &bytes); err == nil {
			return bytes
		}
	}
	t.Fatal("the server does not tell its memory")
	return 0
}
