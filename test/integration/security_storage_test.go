package integration

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/test/framework"
)

// writeTo writes a certificate and its key into a folder, by the names of a Secret.
func (p pair) writeTo(t *testing.T, dir, name string) {
	t.Helper()
	certificate, key := p.pem(t)
	for suffix, content := range map[string][]byte{".crt": certificate, ".key": key} {
		if err := os.WriteFile(filepath.Join(dir, name+suffix), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// manifestArgs are the arguments of the API server in the base manifests, with the files
// of a folder in the place of what a cluster would mount.
func manifestArgs(t *testing.T, ns *framework.Namespace, dir, etcd string) []string {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(ns.Kubectl("kustomize", filepath.Join(cluster.Root(), "artifacts", "base"))), 4096)
	for {
		var deployment appsv1.Deployment
		if err := decoder.Decode(&deployment); errors.Is(err, io.EOF) {
			t.Fatal("the API server has no Deployment")
		} else if err != nil {
			t.Fatal(err)
		}
		if deployment.Kind != "Deployment" || deployment.Name != "copse-apiserver" {
			continue
		}
		var args []string
		for _, arg := range deployment.Spec.Template.Spec.Containers[0].Args {
			arg = strings.NewReplacer("$(ETCD_SERVERS)", etcd, "/etc/copse", dir).Replace(arg)
			if !strings.HasPrefix(arg, "--secure-port=") {
				args = append(args, arg)
			}
		}
		return args
	}
}

// ownEtcd starts an etcd that serves nobody without a certificate of its authority, whose
// files are where the manifests mount them. It returns the endpoint.
func ownEtcd(t *testing.T, dir, data string) string {
	t.Helper()
	files := filepath.Join(dir, "etcd")
	ca := newPair(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "etcd-ca"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil)
	ca.writeTo(t, files, "ca")
	for name, usage := range map[string]x509.ExtKeyUsage{"server": x509.ExtKeyUsageServerAuth, "tls": x509.ExtKeyUsageClientAuth} {
		newPair(t, &x509.Certificate{
			Subject: pkix.Name{CommonName: name}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		}, &ca).writeTo(t, files, name)
	}
	client := fmt.Sprintf("https://127.0.0.1:%d", framework.FreePort(t))
	peer := fmt.Sprintf("http://127.0.0.1:%d", framework.FreePort(t))
	cluster.StartProcess(t, "etcd",
		"--name=own", "--data-dir="+data, "--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=own="+peer,
		"--cert-file="+filepath.Join(files, "server.crt"), "--key-file="+filepath.Join(files, "server.key"),
		"--client-cert-auth", "--trusted-ca-file="+filepath.Join(files, "ca.crt"),
		"--heartbeat-interval=20", "--election-timeout=200", "--log-level=warn")
	return client
}

const encryption = `
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
  - resources: [podcliquesets.grove.io]
    providers:
      - secretbox: {keys: [{name: one, secret: QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY=}]}
      - identity: {}
`

// S17 and S20: with the flags of the manifests the server speaks TLS 1.3 alone, and its
// etcd serves nobody without a client certificate. With an encryption configuration, what
// it names cannot be read from etcd's disk.
func TestWithTheManifestsFlagsNothingIsSentOrStoredInTheClear(t *testing.T) {
	ns := cluster.Namespace(t)
	dir, data := t.TempDir(), t.TempDir()
	for _, folder := range []string{"tls", "etcd"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	readPair(t, "copse-apiserver").writeTo(t, filepath.Join(dir, "tls"), "tls")
	config := filepath.Join(dir, "encryption.yaml")
	if err := os.WriteFile(config, []byte(encryption), 0o600); err != nil {
		t.Fatal(err)
	}
	etcd := ownEtcd(t, dir, data)
	args := append(manifestArgs(t, ns, dir, etcd), ownRecord(ns), "--encryption-provider-config="+config)
	server := cluster.StartServer(t, args...)
	server.WaitReady(t)

	const secret, plain = "the-secret-of-a-set", "what-is-not-encrypted"
	pcs := &grovev1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Name: "one", Annotations: map[string]string{"note": secret}}}
	pcs.Spec.Template.Cliques = []grovev1alpha1.PodCliqueTemplateSpec{{Name: "worker"}}
	pcs.Spec.Template.Cliques[0].Spec.PodSpec.Containers = append(pcs.Spec.Template.Cliques[0].Spec.PodSpec.Containers, container())
	sets := server.Copse.GroveV1alpha1().PodCliqueSets(ns.Name)
	if _, err := sets.Create(t.Context(), pcs, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	group := &schedulerv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "one", Annotations: map[string]string{"note": plain}}}
	group.Spec.MinMember = ptr.To[int32](1)
	if _, err := server.Copse.SchedulerV1alpha1().PodGroups(ns.Name).Create(t.Context(), group, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if read, err := sets.Get(t.Context(), "one", metav1.GetOptions{}); err != nil || read.Annotations["note"] != secret {
		t.Errorf("the set is read as %v, error %v", read, err)
	}
	found := onDisk(t, data, secret, plain, "k8s:enc:secretbox:v1:one:")
	if found[secret] || !found["k8s:enc:secretbox:v1:one:"] {
		t.Errorf("the set is not encrypted on disk: %v", found)
	}
	if !found[plain] {
		t.Error("what is not encrypted is not found either: the test proves nothing")
	}

	if _, err := tls.Dial("tcp", strings.TrimPrefix(server.Config.Host, "https://"), &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}); err == nil {
		t.Error("the server speaks TLS 1.2 though the manifests say 1.3")
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, etcd+"/version", nil)
	if err != nil {
		t.Fatal(err)
	}
	if response, err := bareClient(t, false).Do(request); err == nil {
		_ = response.Body.Close()
		t.Errorf("etcd answers without a certificate with %d: the server proves nothing by its own", response.StatusCode)
	}
}

// onDisk says which texts are in the files of a folder.
func onDisk(t *testing.T, dir string, texts ...string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		for _, text := range texts {
			found[text] = found[text] || bytes.Contains(content, []byte(text))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
