package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
)

func TestEnsure(t *testing.T) {
	f := Folder(filepath.Join(t.TempDir(), "certs"))
	if err := f.Ensure("10.0.0.1", Node{Name: "kubelet-0", Address: "198.19.7.1"}); err != nil {
		t.Fatal(err)
	}

	for _, tc := range []struct {
		name, ca string
		host     string
		usage    x509.ExtKeyUsage
	}{
		{APIServer, ClusterCA, "10.0.0.1", x509.ExtKeyUsageServerAuth},
		{APIServer, ClusterCA, "127.0.0.1", x509.ExtKeyUsageServerAuth},
		{Component, ClusterCA, "localhost", x509.ExtKeyUsageServerAuth},
		{KubeletServer, ClusterCA, "198.19.7.1", x509.ExtKeyUsageServerAuth},
		{Kubelet, ClusterCA, "", x509.ExtKeyUsageClientAuth},
		{Copse, CopseCA, "copse-apiserver.copse-system.svc", x509.ExtKeyUsageServerAuth},
		{Admin, ClusterCA, "", x509.ExtKeyUsageClientAuth},
		{FrontProxyClient, FrontProxyCA, "", x509.ExtKeyUsageClientAuth},
	} {
		if err := f.verify(t, tc.name, tc.ca, tc.host, tc.usage); err != nil {
			t.Errorf("%s below %s for %q: %v", tc.name, tc.ca, tc.host, err)
		}
	}
	if f.verify(t, Admin, FrontProxyCA, "", x509.ExtKeyUsageClientAuth) == nil {
		t.Error("the front proxy's authority vouches for a client of the cluster")
	}
}

func TestEnsureKeepsWhatIsThere(t *testing.T) {
	f := Folder(t.TempDir())
	read := func() []byte {
		if err := f.Ensure("10.0.0.1", Node{}); err != nil {
			t.Fatal(err)
		}
		key, err := os.ReadFile(f.Key(ServiceAccount))
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	if before := read(); !bytes.Equal(before, read()) {
		t.Error("a second call makes new keys")
	}
}

func (f Folder) verify(t *testing.T, name, ca, host string, usage x509.ExtKeyUsage) error {
	t.Helper()
	p, err := tls.LoadX509KeyPair(f.Cert(name), f.Key(name))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	pem, err := os.ReadFile(f.Cert(ca))
	if err != nil {
		t.Fatal(err)
	}
	roots.AppendCertsFromPEM(pem)
	_, err = p.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, KeyUsages: []x509.ExtKeyUsage{usage}})
	return err
}
