package app

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// connectTimeout bounds each step until a request is answered.
	connectTimeout = 10 * time.Second
	answerTimeout  = 30 * time.Second
	// A connection on which nothing comes is asked for a sign of life, so that a watch does
	// not wait on one whose other end is gone.
	pingAfter   = 15 * time.Second
	pingTimeout = 15 * time.Second
)

// session is what one request needs: a client, the address, and who asks.
type session struct {
	client *http.Client
	server url.URL
	token  string
}

// serviceAccount connects to the cluster's API as a pod does.
type serviceAccount struct {
	// folder has token and ca.crt.
	folder string
	getenv func(string) string

	// authority is what client trusts.
	authority []byte
	client    *http.Client
}

// connect returns a session with the token as it is now: the kubelet writes a new one
// before the old one ends, and a waiter may wait for longer than either lasts. The client
// and its connection stay until the authority changes.
func (s *serviceAccount) connect() (session, error) {
	host, port := s.getenv("KUBERNETES_SERVICE_HOST"), s.getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return session{}, errors.New("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
	}
	token, err := os.ReadFile(filepath.Join(s.folder, "token"))
	if err != nil {
		return session{}, fmt.Errorf("the token cannot be read: %w", err)
	}
	authority, err := os.ReadFile(filepath.Join(s.folder, "ca.crt"))
	if err != nil {
		return session{}, fmt.Errorf("the authority of the API server cannot be read: %w", err)
	}
	if s.client == nil || !bytes.Equal(authority, s.authority) {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(authority) {
			return session{}, errors.New("the authority of the API server, ca.crt, holds no certificate")
		}
		if s.client != nil {
			s.client.CloseIdleConnections()
		}
		s.authority, s.client = authority, newClient(pool)
	}
	return session{
		client: s.client,
		server: url.URL{Scheme: "https", Host: net.JoinHostPort(host, port)},
		token:  strings.TrimSpace(string(token)),
	}, nil
}

// newClient returns a client that trusts an authority.
func newClient(authority *x509.CertPool) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext:           (&net.Dialer{Timeout: connectTimeout}).DialContext,
			TLSClientConfig:       &tls.Config{RootCAs: authority},
			TLSHandshakeTimeout:   connectTimeout,
			ResponseHeaderTimeout: answerTimeout,
			ForceAttemptHTTP2:     true,
			HTTP2:                 &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
			// A few hundred bytes; and what is read stays bounded by what is received.
			DisableCompression: true,
		},
		// The API does not redirect, and the token is for nobody else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
