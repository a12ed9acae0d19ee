package integration

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/servingcert"
	"github.com/copse-dev/copse/test/framework"
)

const (
	webhookSecret        = "copse-webhook-certificate"
	webhookConfiguration = "copse-pod-grouper"
	webhookHost          = "copse-webhook." + systemNamespace + ".svc"
)

// certificates is what the Secret holds.
func certificates(t *testing.T) servingcert.State {
	t.Helper()
	secret, err := cluster.Kube.CoreV1().Secrets(systemNamespace).Get(t.Context(), webhookSecret, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return servingcert.Decode(secret.Data)
}

// replaceCertificates writes what the Secret holds.
func replaceCertificates(t *testing.T, s servingcert.State) {
	t.Helper()
	data, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	secrets := cluster.Kube.CoreV1().Secrets(systemNamespace)
	secret, err := secrets.Get(t.Context(), webhookSecret, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	secret.Data = data
	if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// trusted are the authorities that the cluster trusts.
func trusted(ctx context.Context) ([]byte, error) {
	live, err := cluster.Kube.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, webhookConfiguration, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return live.Webhooks[0].ClientConfig.CABundle, nil
}

// shown is the certificate that a server shows to somebody who trusts what the cluster does.
func shown(ctx context.Context, address string) (*x509.Certificate, error) {
	bundle, err := trusted(ctx)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: webhookHost}}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

// load creates pods that are not kept, all the time, until it is stopped.
func load(t *testing.T, g *grouping) (stop func() (created int, failures []error)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	var all sync.WaitGroup
	created, failures := 0, []error{}
	for range 4 {
		all.Go(func() {
			_ = wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(context.Context) (bool, error) {
				pod, err := cluster.Kube.CoreV1().Pods(g.Name).Create(context.Background(), newPod("load"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				if err == nil && groupOf(pod) == "" {
					err = errors.New("a pod is let in without a group")
				}
				mu.Lock()
				defer mu.Unlock()
				created++
				if err != nil {
					failures = append(failures, err)
				}
				return false, nil
			})
		})
	}
	return func() (int, []error) {
		cancel()
		all.Wait()
		return created, failures
	}
}

// settle waits until the cluster trusts what the Secret holds, and pods are let in with what
// it trusts.
func settle(t *testing.T, g *grouping) {
	t.Helper()
	g.Eventually(time.Minute, func(ctx context.Context) error {
		bundle, err := trusted(ctx)
		if err == nil && !bytes.Equal(bundle, certificates(t).Bundle()) {
			err = errors.New("the cluster does not trust what the Secret holds")
		}
		if err == nil {
			_, err = g.create(newPod("try"), metav1.DryRunAll)
		}
		return err
	})
}

// An authority that is about to end is followed by another while pods are created all the
// time: none is refused, and none let in without its group.
func TestCertificatesAreRenewedWithoutARefusal(t *testing.T) {
	g := groupedNamespace(t)
	now := time.Now()
	before := certificates(t)
	// Two thirds of its life are over in five seconds; it ends in twenty-five. The clock of a
	// certificate starts five minutes after its notBefore.
	short, err := servingcert.NewCA(now.Add(-35*time.Second-5*time.Minute), now.Add(25*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	replaceCertificates(t, servingcert.State{CA: short, Old: append(before.Old, before.CA.Cert)})
	settle(t, g)

	if s := certificates(t); s.Next != nil || !s.CA.Cert.Equal(short.Cert) {
		t.Fatal("the machine is too slow: the next authority is there before pods are created")
	}
	stop := load(t, g)
	g.Eventually(time.Minute, func(context.Context) error {
		s := certificates(t)
		if s.CA.Cert.Equal(short.Cert) || s.Next != nil {
			return errors.New("the authority is the same")
		}
		return nil
	})
	settle(t, g)
	renewed := certificates(t)
	// The serving certificate alone.
	renewed.Serving = nil
	replaceCertificates(t, renewed)
	g.Eventually(time.Minute, func(context.Context) error {
		if certificates(t).Serving == nil {
			return errors.New("there is no serving certificate")
		}
		return nil
	})
	settle(t, g)
	created, failures := stop()
	if len(failures) > 0 {
		t.Errorf("%d of %d creations failed, the first with: %v", len(failures), created, failures[0])
	}
	if created < 100 {
		t.Errorf("there were only %d creations", created)
	}
	t.Logf("%d creations", created)
}

// A replica that does not lead answers as well, with the same certificate.
func TestEveryReplicaServesTheWebhook(t *testing.T) {
	g := groupedNamespace(t)
	port := framework.FreePort(t)
	health := fmt.Sprintf("127.0.0.1:%d", framework.FreePort(t))
	address := fmt.Sprintf("127.0.0.1:%d", port)
	cluster.StartProcess(t, "copse-controller-manager",
		"--kubeconfig="+cluster.Components["copse-controller-manager"].Kubeconfig, "--metrics-bind-address=0", "--health-probe-bind-address="+health, "--webhook-bind-address="+address)
	g.Eventually(time.Minute, func(ctx context.Context) error {
		cert, err := shown(ctx, address)
		if err == nil && !cert.Equal(certificates(t).Serving.Cert) {
			err = errors.New("it shows another certificate")
		}
		return err
	})
}

// What others take away comes back.
func TestTheTrustInTheWebhookComesBack(t *testing.T) {
	g := groupedNamespace(t)
	g.Kubectl("patch", "mutatingwebhookconfiguration", webhookConfiguration, "--type=json", `-p=[{"op":"remove","path":"/webhooks/0/clientConfig/caBundle"}]`)
	settle(t, g)
}

// Without the controller-manager nobody creates pods where they are to be grouped, and
// everybody creates what is not.
func TestWhatDependsOnTheWebhook(t *testing.T) {
	g := groupedNamespace(t)
	other := cluster.Namespace(t)
	cluster.Stop(t, "copse-controller-manager")
	defer cluster.Start(t, "copse-controller-manager")
	_, err := g.create(newPod("pod"), metav1.DryRunAll)
	if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), `failed calling webhook "pods.pod-grouper.grove.io"`) {
		t.Errorf("got %v", err)
	}
	// Nor does the API server, which tries their pods out.
	if out := g.Apply(training); strings.Contains(out, "Warning") {
		t.Errorf("a set is applied with %s", out)
	}
	for name, tc := range map[string]struct {
		namespace string
		change    func(*corev1.Pod)
	}{
		"in a namespace that does not ask for it": {other.Name, func(*corev1.Pod) {}},
		"of a DaemonSet": {g.Name, func(p *corev1.Pod) {
			p.OwnerReferences = ownedBy("x", &metav1.ObjectMeta{Name: "a", UID: "1"}, "apps/v1", "DaemonSet").OwnerReferences
		}},
		"of a PodClique": {g.Name, func(p *corev1.Pod) {
			p.OwnerReferences = ownedBy("x", &metav1.ObjectMeta{Name: "a", UID: "1"}, "grove.io/v1alpha1", "PodClique").OwnerReferences
		}},
		"of KAI":    {g.Name, func(p *corev1.Pod) { p.Spec.SchedulerName = "kai-scheduler" }},
		"opted out": {g.Name, func(p *corev1.Pod) { p.Annotations[podgrouper.SkipAnnotation] = "true" }},
	} {
		pod := newPod("pod")
		tc.change(pod)
		if _, err := cluster.Kube.CoreV1().Pods(tc.namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			t.Errorf("a pod %s: %v", name, err)
		}
	}
}

// Groups are known to every replica from its start on, so pods join them while our API server is
// down. One that a user made by hand is looked up, so its pods have to wait.
func TestWhatDependsOnTheAPIServer(t *testing.T) {
	g := groupedNamespace(t)
	web := g.object("apps/v1", "ReplicaSet", "replicasets", "web", nil)
	cluster.Stop(t, "copse-apiserver")
	defer cluster.Start(t, "copse-apiserver")
	pod, _ := g.try(ownedBy("web", web, "apps/v1", "ReplicaSet"))
	expectMarks(t, pod, "pg-web-", "")
	named := newPod("member")
	named.Annotations[podgrouper.PodGroupAnnotation] = "mine"
	if _, err := g.create(named, metav1.DryRunAll); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("got %v", err)
	}
}
