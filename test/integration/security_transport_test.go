package integration

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// S16: no endpoint opens a connection for a caller, or sends one elsewhere.
func TestNothingConnectsOrRedirects(t *testing.T) {
	ns := cluster.Namespace(t)
	ns.Apply(inference)
	_, lists, err := cluster.Copse.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	endpoints := 0
	for _, list := range lists {
		if !strings.HasPrefix(list.GroupVersion, "grove.io/") && !strings.HasPrefix(list.GroupVersion, "scheduler.grove.io/") {
			continue
		}
		for _, resource := range list.APIResources {
			endpoints++
			if _, sub, ok := strings.Cut(resource.Name, "/"); ok && sub != "status" && sub != "scale" {
				t.Errorf("%s has the endpoint %s", list.GroupVersion, resource.Name)
			}
			for _, verb := range resource.Verbs {
				if !slices.Contains([]string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}, verb) {
					t.Errorf("%s %s has the verb %s", list.GroupVersion, resource.Name, verb)
				}
			}
		}
	}
	if endpoints < 10 {
		t.Fatalf("there are %d endpoints: discovery is not what this test takes it for", endpoints)
	}

	set := "/apis/grove.io/v1alpha1/namespaces/" + ns.Name + "/podcliquesets/llm"
	client := bareClient(t, false, readPair(t, "admin"))
	for _, path := range []string{
		"/apis/grove.io", "/apis/grove.io/", "/apis/grove.io/v1alpha1/", "/apis/grove.io//v1alpha1", "/apis/grove.io/v1alpha1/../v1alpha1/podcliquesets",
		"/apis/grove.io/v1alpha1/podcliquesets/", "/apis/grove.io/v1alpha1/proxy/namespaces/" + ns.Name + "/podcliquesets/llm", "/apis/grove.io/v1alpha1/redirect/namespaces/" + ns.Name + "/podcliquesets/llm",
		set + "/", set + "//status", set + "/proxy", set + "/proxy/http://example.com", set + "/connect", set + "/exec", set + "/redirect?url=http://example.com",
		"//example.com/apis/grove.io", "/apis/grove.io/v1alpha1/%2f%2fexample.com", "/apis/grove.io/v1alpha1/http:%2f%2fexample.com", "/openapi/v3/apis/grove.io/v1alpha1", "/openapi/v3/", "/openapi/v2/",
		"/", "//", "/..", "/healthz/", "/readyz/", "/metrics/", "/version/", "/logs", "/swagger.json", "/ui",
	} {
		for _, host := range []string{serverURL(), cluster.Config.Host} {
			for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodConnect} {
				if method == http.MethodConnect && strings.HasPrefix(path, "//") {
					continue
				}
				got := send(t, client, method, host+path, nil, nil)
				ofCopse := host == serverURL() || strings.HasPrefix(path, "/apis/grove.io")
				if ofCopse && (got.code >= 300 && got.code < 400 || got.code < 200 || got.header.Get("Location") != "") {
					t.Errorf("%s %s%s is answered with %d to %q", method, host, path, got.code, got.header.Get("Location"))
				}
			}
		}
	}
}

// rawConn is a connection on which a test writes requests as it likes.
type rawConn struct {
	net.Conn
	answers *bufio.Reader
}

func dial(t *testing.T, host string) rawConn {
	t.Helper()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(host, "https://"), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return rawConn{Conn: conn, answers: bufio.NewReader(conn)}
}

// ask sends a request, and returns the status of the answer.
func (c rawConn) ask(path string, header ...string) (int, error) {
	lines := append([]string{"GET " + path + " HTTP/1.1", "Host: localhost"}, header...)
	if _, err := io.WriteString(c, strings.Join(lines, "\r\n")+"\r\n\r\n"); err != nil {
		return 0, err
	}
	response, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusSwitchingProtocols {
		_, err = io.Copy(io.Discard, response.Body)
	}
	return response.StatusCode, err
}

// S16: who asks to change the protocol of a connection through the aggregation layer gets
// no tunnel behind that layer's certificate (as in CVE-2018-1002105): nothing that comes
// next on the connection is taken for a request of that layer.
func TestAnUpgradeLeavesNoTunnelToTheServer(t *testing.T) {
	ns := cluster.Namespace(t)
	account(ns, "reader", `{apiGroups: [grove.io], resources: [podcliquesets], verbs: [get, list, watch]}`)
	reader := token(t, ns, "reader")
	own := "/apis/grove.io/v1alpha1/namespaces/" + ns.Name + "/podcliquesets"
	// A watch may become one by WebSocket, and ends soon.
	watch := own + "?watch=true&timeoutSeconds=1"
	ns.Eventually(time.Minute, func(context.Context) error {
		if got := send(t, bareClient(t, true), http.MethodGet, cluster.Config.Host+watch, http.Header{"Authorization": {"Bearer " + reader}}, nil); got.code != http.StatusOK {
			return fmt.Errorf("its own namespace is answered with %d: %s", got.code, got.body)
		}
		return nil
	})
	impostor := []string{"X-Remote-User: admin", "X-Remote-Group: system:masters"}
	for server, host := range map[string]string{"through the aggregation layer": cluster.Config.Host, "directly": serverURL()} {
		for _, protocol := range []string{"websocket", "SPDY/3.1", "h2c", "nonsense"} {
			for name, path := range map[string]string{"answered": own, "refused": allSets, "not there": own + "/none/proxy", "a watch": watch} {
				t.Run(server+", "+protocol+", "+name, func(t *testing.T) {
					conn := dial(t, host)
					code, err := conn.ask(path, "Authorization: Bearer "+reader, "Connection: Upgrade, HTTP2-Settings", "Upgrade: "+protocol, "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA",
						"Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Origin: https://localhost")
					if err != nil {
						t.Fatal(err)
					}
					upgraded := code == http.StatusSwitchingProtocols
					if upgraded != (path == watch && protocol == "websocket") {
						t.Fatalf("answered with %d", code)
					}
					if upgraded {
						if _, err := io.WriteString(conn, "GET "+allSets+" HTTP/1.1\r\nHost: localhost\r\n"+strings.Join(impostor, "\r\n")+"\r\n\r\n"); err != nil {
							t.Fatal(err)
						}
						// However the connection ends, it carries no answer to that.
						rest, _ := io.ReadAll(conn.answers)
						if strings.Contains(string(rest), "HTTP/1.1") || strings.Contains(string(rest), "PodCliqueSetList") {
							t.Errorf("a request that was smuggled behind a watch is answered: %s", rest)
						}
						return
					}
					// A connection that is closed is as good as a refusal.
					if code, err := conn.ask(allSets, impostor...); err == nil && code != http.StatusForbidden && code != http.StatusUnauthorized {
						t.Errorf("a request that was smuggled behind the first is answered with %d", code)
					}
				})
			}
		}
	}
}

// S17: old protocols and weak ciphers are refused, and the cluster checks the server's
// certificate.
func TestOldProtocolsAndWeakCiphersAreRefused(t *testing.T) {
	address, err := url.Parse(serverURL())
	if err != nil {
		t.Fatal(err)
	}
	handshake := func(change func(*tls.Config)) (uint16, error) {
		config := &tls.Config{InsecureSkipVerify: true}
		change(config)
		conn, err := tls.Dial("tcp", address.Host, config)
		if err != nil {
			return 0, err
		}
		defer conn.Close()
		return conn.ConnectionState().Version, nil
	}
	if version, err := handshake(func(*tls.Config) {}); err != nil || version != tls.VersionTLS13 {
		t.Errorf("the newest protocol is answered with %s, error %v", tls.VersionName(version), err)
	}
	if version, err := handshake(func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }); err != nil || version != tls.VersionTLS12 {
		t.Errorf("TLS 1.2 is answered with %s, error %v", tls.VersionName(version), err)
	}
	for _, version := range []uint16{tls.VersionTLS10, tls.VersionTLS11} {
		if _, err := handshake(func(c *tls.Config) { c.MinVersion, c.MaxVersion = version, version }); err == nil {
			t.Errorf("%s is accepted", tls.VersionName(version))
		}
	}
	for _, suite := range tls.InsecureCipherSuites() {
		_, err := handshake(func(c *tls.Config) { c.MaxVersion, c.CipherSuites = tls.VersionTLS12, []uint16{suite.ID} })
		if err == nil {
			t.Errorf("%s is accepted", suite.Name)
		}
	}

	ns := cluster.Namespace(t).Anywhere()
	for _, name := range []string{"v1alpha1.grove.io", "v1alpha1.scheduler.grove.io"} {
		if out := ns.Kubectl("get", "apiservice", name, "-o", "jsonpath={.spec.insecureSkipTLSVerify}"); out != "" && out != "false" {
			t.Errorf("the cluster does not check the certificate behind %s", name)
		}
	}
}
