package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// accountFolder is where the kubelet puts the credentials of a pod.
const accountFolder = "/var/run/secrets/kubernetes.io/serviceaccount"

// getTimeout is for the whole of a request. One to a host that is not there gets
// no answer at all.
const getTimeout = 2 * time.Second

// get asks kube-apiserver as client-go's in-cluster configuration does, which
// would make this program ten times as large.
func get(path string) func(context.Context, *machine) error {
	return func(ctx context.Context, m *machine) error {
		host, hostErr := m.lookUp("KUBERNETES_SERVICE_HOST")
		port, portErr := m.lookUp("KUBERNETES_SERVICE_PORT")
		token, tokenErr := os.ReadFile(filepath.Join(m.account, "token"))
		ca, caErr := os.ReadFile(filepath.Join(m.account, "ca.crt"))
		if err := errors.Join(hostErr, portErr, tokenErr, caErr); err != nil {
			return err
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(ca)
		client := http.Client{
			Timeout:   getTimeout,
			Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true},
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+net.JoinHostPort(host, port)+path, nil)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
		if err != nil {
			return err
		}
		fmt.Fprintf(m.out, "%s\n%s\n", resp.Status, body)
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		return nil
	}
}
