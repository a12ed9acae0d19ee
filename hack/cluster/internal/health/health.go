package health

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/copse-dev/copse/hack/cluster/internal/certs"
)

// Prober asks for health over HTTP, as the administrator where that matters.
type Prober struct {
	client *http.Client
}

// NewProber trusts the authorities in the folder.
func NewProber(keys certs.Folder) (*Prober, error) {
	roots := x509.NewCertPool()
	for _, ca := range []string{certs.ClusterCA, certs.CopseCA} {
		pem, err := os.ReadFile(keys.Cert(ca))
		if err != nil {
			return nil, err
		}
		roots.AppendCertsFromPEM(pem)
	}
	admin, err := tls.LoadX509KeyPair(keys.Cert(certs.Admin), keys.Key(certs.Admin))
	if err != nil {
		return nil, err
	}
	return &Prober{client: &http.Client{
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{admin}},
		},
	}}, nil
}

// Check returns nil when the URL answers 200, or, if it is that of a unix
// socket, when somebody listens there.
func (p *Prober) Check(ctx context.Context, url string) error {
	if socket, found := strings.CutPrefix(url, "unix://"); found {
		return checkSocket(ctx, socket)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, failures(string(body)))
	}
	return nil
}

func checkSocket(ctx context.Context, path string) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		return err
	}
	return conn.Close()
}

// failures picks the checks that failed from an answer that lists all, as
// Kubernetes' servers and etcd give it.
func failures(body string) string {
	var failed []string
	for line := range strings.Lines(body) {
		if check, found := strings.CutPrefix(line, "[-]"); found {
			check, _, _ = strings.Cut(check, " ")
			failed = append(failed, check)
		}
	}
	if len(failed) > 0 {
		return "waiting for " + strings.Join(failed, ", ")
	}
	first, _, _ := strings.Cut(strings.TrimSpace(body), "\n")
	return first
}
