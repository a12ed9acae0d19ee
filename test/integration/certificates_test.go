package integration

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	copseclient "github.com/copse-dev/copse/pkg/generated/clientset/versioned"
	"github.com/copse-dev/copse/test/framework"
)

// pair is a certificate with its key.
type pair struct {
	cert *x509.Certificate
	key  crypto.Signer
}

func newPair(t *testing.T, template *x509.Certificate, signer *pair) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		t.Fatal(err)
	}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
	if signer == nil {
		signer = &pair{cert: template, key: key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer.cert, key.Public(), signer.key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return pair{cert: parsed, key: key}
}

func (p pair) pem(t *testing.T) (certificate, key []byte) {
	t.Helper()
	certificate, err := cert.EncodeCertificates(p.cert)
	if err != nil {
		t.Fatal(err)
	}
	if key, err = keyutil.MarshalPrivateKeyToPEM(p.key); err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

func readPair(t *testing.T, name string) pair {
	t.Helper()
	loaded, err := tls.LoadX509KeyPair(certFile(name), strings.TrimSuffix(certFile(name), ".crt")+".key")
	if err != nil {
		t.Fatal(err)
	}
	return pair{cert: loaded.Leaf, key: loaded.PrivateKey.(crypto.Signer)}
}

func certFile(name string) string { return filepath.Join(cluster.Certs(), name+".crt") }

// replace puts a file in the place of another in one step, as the kubelet does with what
// it mounts.
func replace(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func (p pair) replace(t *testing.T, name string) {
	t.Helper()
	certificate, key := p.pem(t)
	replace(t, strings.TrimSuffix(certFile(name), ".crt")+".key", key)
	replace(t, certFile(name), certificate)
}

// startTime tells one process of the server from the next.
func startTime(t *testing.T) string {
	t.Helper()
	metrics, err := direct(t, func(*rest.Config) {}).Discovery().RESTClient().Get().AbsPath("/metrics").Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(metrics)) {
		if strings.HasPrefix(line, "process_start_time_seconds") {
			return line
		}
	}
	t.Fatal("the server does not tell when it was started")
	return ""
}

// direct is a client that goes past the aggregation layer.
func direct(t *testing.T, change func(*rest.Config)) *copseclient.Clientset {
	t.Helper()
	config := cluster.Direct("copse-apiserver")
	change(config)
	client, err := copseclient.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// rotate changes certificates while clients go on through the aggregation layer. None of
// their requests may fail, and the server may not be started anew.
func rotate(t *testing.T, ns *framework.Namespace, change func()) {
	t.Helper()
	began := startTime(t)
	ctx, stop := context.WithCancel(t.Context())
	failures := make(chan error, 1)
	go func() {
		defer close(failures)
		for ctx.Err() == nil {
			if _, err := cluster.Copse.GroveV1alpha1().PodCliqueSets(ns.Name).List(ctx, metav1.ListOptions{}); err != nil && ctx.Err() == nil {
				failures <- err
				return
			}
		}
	}()
	change()
	stop()
	for err := range failures {
		t.Errorf("a request failed meanwhile: %v", err)
	}
	if now := startTime(t); now != began {
		t.Errorf("the server was started anew: %s, before %s", now, began)
	}
}

// The certificate is renewed every few months, and nobody restarts a server for it.
func TestTheServingCertificateIsReplacedWithoutARestart(t *testing.T) {
	ns := cluster.Namespace(t)
	ca := readPair(t, "copse-ca")
	old := readPair(t, "copse-apiserver")
	renewed := newPair(t, &x509.Certificate{
		Subject: old.cert.Subject, DNSNames: old.cert.DNSNames, IPAddresses: old.cert.IPAddresses,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, &ca)
	address, err := url.Parse(cluster.Components["copse-apiserver"].URL)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	serves := func(want pair) error {
		conn, err := tls.Dial("tcp", address.Host, &tls.Config{RootCAs: roots})
		if err != nil {
			return err
		}
		defer conn.Close()
		if got := conn.ConnectionState().PeerCertificates[0]; !got.Equal(want.cert) {
			return fmt.Errorf("the certificate has serial number %d, want %d", got.SerialNumber, want.cert.SerialNumber)
		}
		return nil
	}
	if err := serves(old); err != nil {
		t.Fatal(err)
	}
	rotate(t, ns, func() {
		renewed.replace(t, "copse-apiserver")
		ns.Eventually(time.Minute, func(context.Context) error { return serves(renewed) })
	})
}

// The authority of the aggregation layer is replaced in the way that Kubernetes'
// documentation has it: both, then the new client certificate, then the new one alone.
func TestTheAuthorityOfTheAggregationLayerIsReplacedWithoutARestart(t *testing.T) {
	ns := cluster.Namespace(t)
	old, oldClient := readPair(t, "front-proxy-ca"), readPair(t, "front-proxy-client")
	ca := newPair(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "front-proxy-renewed"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}, nil)
	client := newPair(t, &x509.Certificate{
		Subject: oldClient.cert.Subject, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, &ca)
	// speaksForUsers says whether the server believes a proxy that shows a certificate.
	speaksForUsers := func(proxy pair) bool {
		client := direct(t, func(config *rest.Config) {
			config.TLSClientConfig.CertFile, config.TLSClientConfig.KeyFile = "", ""
			config.TLSClientConfig.CertData, config.TLSClientConfig.KeyData = proxy.pem(t)
		})
		return client.Discovery().RESTClient().Get().AbsPath("/apis/grove.io/v1alpha1/podcliquesets").
			SetHeader("X-Remote-User", "somebody").SetHeader("X-Remote-Group", "system:masters").Do(t.Context()).Error() == nil
	}
	believes := func(proxy pair, want bool) {
		t.Helper()
		ns.Eventually(time.Minute, func(context.Context) error {
			if got := speaksForUsers(proxy); got != want {
				return fmt.Errorf("a proxy with a certificate of %q is believed: %t, want %t", proxy.cert.Issuer.CommonName, got, want)
			}
			return nil
		})
	}
	believes(oldClient, true)
	believes(client, false)
	oldText, _ := old.pem(t)
	text, _ := ca.pem(t)
	rotate(t, ns, func() {
		replace(t, certFile("front-proxy-ca"), append(append([]byte{}, oldText...), text...))
		believes(client, true)
		believes(oldClient, true)
		client.replace(t, "front-proxy-client")
		ca.replace(t, "front-proxy-ca")
		// kube-apiserver adds to what it has published, and never takes anything away from
		// it; until it has read its file again, it adds the old one once more.
		published := cluster.Kube.CoreV1().ConfigMaps("kube-system")
		ns.Eventually(time.Minute, func(ctx context.Context) error {
			configMap, err := published.Get(ctx, "extension-apiserver-authentication", metav1.GetOptions{})
			if err != nil {
				return err
			}
			if configMap.Data["requestheader-client-ca-file"] != string(text) {
				configMap.Data["requestheader-client-ca-file"] = string(text)
				if _, err = published.Update(ctx, configMap, metav1.UpdateOptions{}); err != nil {
					return err
				}
			}
			if speaksForUsers(oldClient) {
				return errors.New("a proxy of the old authority is believed")
			}
			return nil
		})
		believes(client, true)
	})
}
