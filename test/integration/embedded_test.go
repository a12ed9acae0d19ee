package integration

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	copseclient "github.com/copse-dev/copse/pkg/generated/clientset/versioned"
)

// One binary is enough to start with: the server runs on an etcd of its own, and what
// it stored outlives its being killed.
func TestTheServerRunsOnItsEmbeddedEtcd(t *testing.T) {
	ns := cluster.Namespace(t)
	ns.Kubectl("create", "role", "storage-guard", "--verb=get,create,update", "--resource=configmaps")
	ns.Kubectl("create", "role", "storage-guard-events", "--verb=create", "--resource=events.events.k8s.io")
	for _, role := range []string{"storage-guard", "storage-guard-events"} {
		ns.Kubectl("create", "rolebinding", role, "--role="+role, "--serviceaccount="+systemNamespace+":copse-apiserver")
	}
	dir := t.TempDir()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	_ = listener.Close()
	config := rest.CopyConfig(cluster.Config)
	config.Host = fmt.Sprintf("https://127.0.0.1:%d", port)
	config.TLSClientConfig.Insecure, config.TLSClientConfig.CAData, config.TLSClientConfig.CAFile = true, nil, ""
	client, err := copseclient.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	readiness := func(ctx context.Context) error {
		return client.Discovery().RESTClient().Get().MaxRetries(0).AbsPath("/readyz/storage-guard").Do(ctx).Error()
	}
	start := func(data string) *exec.Cmd {
		kubeconfig := cluster.Components["copse-apiserver"].Kubeconfig
		cmd := exec.Command(filepath.Join(cluster.Root(), "bin", "copse-apiserver"), "--data-dir", filepath.Join(dir, data), "--cert-dir", filepath.Join(dir, "certs"),
			fmt.Sprintf("--secure-port=%d", port), "--bind-address=127.0.0.1",
			// A record of its own: that of the cluster's server is of another etcd.
			"--storage-guard-namespace="+ns.Name,
			"--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig)
		log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			_ = log.Close()
		})
		return cmd
	}
	waitReady := func() {
		t.Helper()
		ns.Eventually(time.Minute, func(ctx context.Context) error {
			return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
		})
	}

	server := start("data")
	waitReady()
	pcs := &grovev1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}
	pcs.Spec.Template.Cliques = []grovev1alpha1.PodCliqueTemplateSpec{{Name: "worker"}}
	if _, err := client.GroveV1alpha1().PodCliqueSets(ns.Name).Create(t.Context(), pcs, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Fatalf("a clique without containers is answered with %v", err)
	}
	pcs.Spec.Template.Cliques[0].Spec.PodSpec.Containers = append(pcs.Spec.Template.Cliques[0].Spec.PodSpec.Containers, container())
	created, err := client.GroveV1alpha1().PodCliqueSets(ns.Name).Create(t.Context(), pcs, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	kill := func() {
		t.Helper()
		if err := server.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = server.Wait()
	}
	kill()
	server = start("data")
	waitReady()
	again, err := client.GroveV1alpha1().PodCliqueSets(ns.Name).Get(t.Context(), "kept", metav1.GetOptions{})
	if err != nil || again.UID != created.UID {
		t.Errorf("after the server was killed: %v, error %v", again, err)
	}

	// A directory that is gone is an etcd that is another one (D25).
	kill()
	start("other")
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		if err := readiness(ctx); err == nil || !strings.Contains(err.Error(), "StorageHasNoIdentity") {
			return fmt.Errorf("on an empty directory the server says of its storage: %w", err)
		}
		return nil
	})
	if _, err := client.GroveV1alpha1().PodCliqueSets(ns.Name).Get(t.Context(), "kept", metav1.GetOptions{}); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("a set of the other directory is answered with %v", err)
	}
}

func container() corev1.Container {
	return corev1.Container{Name: "main", Image: "example.com/trainer"}
}
