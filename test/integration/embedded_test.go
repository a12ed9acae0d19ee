package integration

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/test/framework"
)

// ownRecord lets a server that has an etcd of its own keep the record of it in the
// namespace: that of the cluster's server is of another etcd. It returns the flag.
func ownRecord(ns *framework.Namespace) string {
	ns.Kubectl("create", "role", "storage-guard", "--verb=get,create,update", "--resource=configmaps")
	ns.Kubectl("create", "role", "storage-guard-events", "--verb=create", "--resource=events.events.k8s.io")
	for _, role := range []string{"storage-guard", "storage-guard-events"} {
		ns.Kubectl("create", "rolebinding", role, "--role="+role, "--serviceaccount="+systemNamespace+":copse-apiserver")
	}
	return "--storage-guard-namespace=" + ns.Name
}

// One binary is enough to start with: the server runs on an etcd of its own, and what
// it stored outlives its being killed.
func TestTheServerRunsOnItsEmbeddedEtcd(t *testing.T) {
	ns := cluster.Namespace(t)
	record, dir := ownRecord(ns), t.TempDir()
	start := func(data string) *framework.Server {
		return cluster.StartServer(t, "--data-dir="+filepath.Join(dir, data), record)
	}

	server := start("data")
	server.WaitReady(t)
	pcs := &grovev1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}
	pcs.Spec.Template.Cliques = []grovev1alpha1.PodCliqueTemplateSpec{{Name: "worker"}}
	sets := server.Copse.GroveV1alpha1().PodCliqueSets(ns.Name)
	if _, err := sets.Create(t.Context(), pcs, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Fatalf("a clique without containers is answered with %v", err)
	}
	pcs.Spec.Template.Cliques[0].Spec.PodSpec.Containers = append(pcs.Spec.Template.Cliques[0].Spec.PodSpec.Containers, container())
	created, err := sets.Create(t.Context(), pcs, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	server.Kill(t)
	server = start("data")
	server.WaitReady(t)
	again, err := server.Copse.GroveV1alpha1().PodCliqueSets(ns.Name).Get(t.Context(), "kept", metav1.GetOptions{})
	if err != nil || again.UID != created.UID {
		t.Errorf("after the server was killed: %v, error %v", again, err)
	}

	// A directory that is gone is an etcd that is another one (D25).
	server.Kill(t)
	server = start("other")
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		err := server.Copse.Discovery().RESTClient().Get().MaxRetries(0).AbsPath("/readyz/storage-guard").Do(ctx).Error()
		if err == nil || !strings.Contains(err.Error(), "StorageHasNoIdentity") {
			return fmt.Errorf("on an empty directory the server says of its storage: %w", err)
		}
		return nil
	})
	if _, err := server.Copse.GroveV1alpha1().PodCliqueSets(ns.Name).Get(t.Context(), "kept", metav1.GetOptions{}); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("a set of the other directory is answered with %v", err)
	}
}

func container() corev1.Container {
	return corev1.Container{Name: "main", Image: "example.com/trainer"}
}
