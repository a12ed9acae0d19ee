package integration

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/utils/ptr"

	copseclient "github.com/copse-dev/copse/pkg/generated/clientset/versioned"
	"github.com/copse-dev/copse/test/framework"
)

const allSets = "/apis/grove.io/v1alpha1/podcliquesets"

// bareClient sends what a test says and adds nothing: no certificate of the administrator,
// no header, and no cleverness about redirects.
func bareClient(t *testing.T, http2 bool, certificates ...pair) *http.Client {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true}
	for _, p := range certificates {
		config.Certificates = append(config.Certificates, tls.Certificate{Certificate: [][]byte{p.cert.Raw}, PrivateKey: p.key})
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: http2}
	if !http2 {
		transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Transport: transport, Timeout: time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// answer is what a server says to a bare request.
type answer struct {
	code   int
	header http.Header
	body   string
	proto  int
}

func send(t *testing.T, client *http.Client, method, url string, header http.Header, body io.Reader) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range header {
		request.Header[name] = values
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{code: response.StatusCode, header: response.Header, body: string(text), proto: response.ProtoMajor}
}

func serverURL() string { return cluster.Components["copse-apiserver"].URL }

// token is a token of a service account, which is made if need be.
func token(t *testing.T, ns *framework.Namespace, name string) string {
	t.Helper()
	if _, err := ns.TryKubectl("get", "serviceaccount", name); err != nil {
		ns.Kubectl("create", "serviceaccount", name)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](3600)}}
	made, err := cluster.Kube.CoreV1().ServiceAccounts(ns.Name).CreateToken(t.Context(), name, request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made.Status.Token
}

// withToken is a client that goes past the aggregation layer and shows nothing but a token.
func withToken(t *testing.T, token string) *copseclient.Clientset {
	t.Helper()
	return direct(t, func(config *rest.Config) {
		config.TLSClientConfig = rest.TLSClientConfig{Insecure: true}
		config.BearerToken = token
	})
}

// impostor is the headers by which somebody claims to be an administrator.
func impostor() http.Header {
	return http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}}
}

// S1: who a caller is, is taken from headers only when a certificate of the aggregation
// layer's authority comes with them, and with an allowed name.
func TestHeadersMakeNobodyAnAdministratorWithoutTheAggregationLayersCertificate(t *testing.T) {
	ns := cluster.Namespace(t)
	clusterCA, proxyCA, proxy := readPair(t, "ca"), readPair(t, "front-proxy-ca"), readPair(t, "front-proxy-client")
	client := func(name string, usage x509.ExtKeyUsage, ca *pair) []pair {
		return []pair{newPair(t, &x509.Certificate{
			Subject: pkix.Name{CommonName: name}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
		}, ca)}
	}
	foreign := newPair(t, &x509.Certificate{
		Subject: proxyCA.cert.Subject, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil)
	name := proxy.cert.Subject.CommonName
	nobodys := token(t, ns, "nobody")
	for title, tc := range map[string]struct {
		certificates []pair
		token        string
		code         int
		user         string
	}{
		"no certificate":                           {nil, "", http.StatusForbidden, "system:anonymous"},
		"a certificate of the cluster":             {client("nobody", x509.ExtKeyUsageClientAuth, &clusterCA), "", http.StatusForbidden, "nobody"},
		"the allowed name, of the cluster":         {client(name, x509.ExtKeyUsageClientAuth, &clusterCA), "", http.StatusForbidden, name},
		"the right authority, another name":        {client("nobody", x509.ExtKeyUsageClientAuth, &proxyCA), "", http.StatusUnauthorized, ""},
		"the right authority, a server's":          {client(name, x509.ExtKeyUsageServerAuth, &proxyCA), "", http.StatusUnauthorized, ""},
		"an authority of the same name":            {client(name, x509.ExtKeyUsageClientAuth, &foreign), "", http.StatusUnauthorized, ""},
		"a token":                                  {nil, nobodys, http.StatusForbidden, "system:serviceaccount:" + ns.Name + ":nobody"},
		"a token, the right authority, wrong name": {client("nobody", x509.ExtKeyUsageClientAuth, &proxyCA), nobodys, http.StatusForbidden, "system:serviceaccount:" + ns.Name + ":nobody"},
		"a token that is none":                     {nil, "nonsense", http.StatusUnauthorized, ""},
		// By this one the others are seen to fail for their certificates alone.
		"that of the aggregation layer": {[]pair{proxy}, "", http.StatusOK, ""},
	} {
		for variant, header := range map[string]http.Header{
			"plain":       impostor(),
			"twice":       {"X-Remote-User": {"nobody", "admin"}, "X-Remote-Group": {"nobodies", "system:masters"}},
			"underscores": {"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}, "X_Remote_User": {"admin"}, "X_Remote_Group": {"system:masters"}},
			"lower case":  {"x-remote-user": {"admin"}, "x-remote-group": {"system:masters"}},
		} {
			for _, http2 := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, HTTP2 %t", title, variant, http2), func(t *testing.T) {
					if tc.token != "" {
						header = header.Clone()
						header.Set("Authorization", "Bearer "+tc.token)
					}
					got := send(t, bareClient(t, http2, tc.certificates...), http.MethodGet, serverURL()+allSets, header, nil)
					if got.code != tc.code || tc.user != "" && !strings.Contains(got.body, fmt.Sprintf(`User \"%s\"`, tc.user)) {
						t.Errorf("answered with %d, want %d for user %q: %s", got.code, tc.code, tc.user, got.body)
					}
					if (got.proto == 2) != http2 {
						t.Errorf("the protocol was HTTP/%d", got.proto)
					}
				})
			}
		}
	}
	// Of the aggregation layer itself, what only looks like its headers counts for nothing.
	header := http.Header{"X-Remote-User": {"nobody"}, "X_Remote_User": {"admin"}, "X_Remote_Group": {"system:masters"}}
	if got := send(t, bareClient(t, true, proxy), http.MethodGet, serverURL()+allSets, header, nil); got.code != http.StatusForbidden || !strings.Contains(got.body, `User \"nobody\"`) {
		t.Errorf("answered with %d: %s", got.code, got.body)
	}
}

// S1, of the way that users take: what they claim in headers is gone when their request
// arrives, and who they are arrives with it.
func TestTheAggregationLayerPassesOnWhoAsksAndNothingThatTheyClaim(t *testing.T) {
	ns := cluster.Namespace(t)
	account(ns, "reader", `{apiGroups: [grove.io], resources: [podcliquesets], verbs: [list]}`)
	reader := token(t, ns, "reader")
	own := "/apis/grove.io/v1alpha1/namespaces/" + ns.Name + "/podcliquesets"
	ns.Eventually(time.Minute, func(context.Context) error {
		if got := send(t, bareClient(t, true), http.MethodGet, cluster.Config.Host+own, http.Header{"Authorization": {"Bearer " + reader}}, nil); got.code != http.StatusOK {
			return fmt.Errorf("its own namespace is answered with %d: %s", got.code, got.body)
		}
		return nil
	})
	for variant, header := range map[string]http.Header{
		"plain":       impostor(),
		"twice":       {"X-Remote-User": {"admin", "admin"}, "X-Remote-Group": {"system:masters", "system:masters"}},
		"underscores": {"X_Remote_User": {"admin"}, "X_Remote_Group": {"system:masters"}},
		// A proxy drops what this names before it passes a request on.
		"the proxy's headers dropped": {"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}, "Connection": {"X-Remote-User, X-Remote-Group"}},
		"extra":                       {"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}, "X-Remote-Extra-Scopes": {"all"}, "X-Remote-Uid": {"0"}},
	} {
		for _, http2 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, HTTP2 %t", variant, http2), func(t *testing.T) {
				if http2 {
					// It has no such header, and Go's client would refuse to send it.
					header.Del("Connection")
				}
				header.Set("Authorization", "Bearer "+reader)
				client := bareClient(t, http2)
				if got := send(t, client, http.MethodGet, cluster.Config.Host+own, header, nil); got.code != http.StatusOK {
					t.Errorf("what is allowed is answered with %d: %s", got.code, got.body)
				}
				if got := send(t, client, http.MethodGet, cluster.Config.Host+allSets, header, nil); got.code != http.StatusForbidden {
					t.Errorf("what is not allowed is answered with %d: %s", got.code, got.body)
				}
			})
		}
	}
}

// S2: without credentials a server says whether it is healthy and nothing else, but for
// what the cluster itself grants to everybody, which is its version.
func TestWithoutCredentialsTheServersSayWhetherTheyAreHealthy(t *testing.T) {
	ns := cluster.Namespace(t)
	nobodys := http.Header{"Authorization": {"Bearer " + token(t, ns, "nobody")}}
	admin := readPair(t, "admin")
	paths := map[string]bool{
		"/healthz": true, "/livez": true, "/readyz": true, "/version": true,
		"/": false, "/metrics": false, "/metrics/slis": false, "/debug/pprof/": false, "/debug/pprof/heap": false,
		"/debug/flags/v": false, "/debug/api_priority_and_fairness/dump_requests": false, "/readyz/storage-guard": false, "/readyz/etcd": false, "/livez/ping": false, "/statusz": false, "/flagz": false,
		"/apis": false, "/apis/grove.io": false, "/apis/grove.io/v1alpha1": false, allSets: false, "/openapi/v2": false, "/openapi/v3": false,
		"/apis/grove.io/v1alpha1/namespaces/" + ns.Name + "/podcliques/any/status": false,
	}
	for path, open := range paths {
		want := http.StatusForbidden
		if open {
			want = http.StatusOK
		}
		if got := send(t, bareClient(t, true), http.MethodGet, serverURL()+path, nil, nil); got.code != want {
			t.Errorf("%s is answered with %d, want %d: %s", path, got.code, want, got.body)
		}
		// Discovery is for everybody whom the cluster knows.
		discovery := strings.HasPrefix(path, "/openapi") || strings.HasPrefix(path, "/apis") && strings.Count(path, "/") <= 3
		if got := send(t, bareClient(t, true), http.MethodGet, serverURL()+path, nobodys, nil); !open && !discovery && got.code != want {
			t.Errorf("%s is answered to somebody without rights with %d, want %d: %s", path, got.code, want, got.body)
		}
	}
	// They are refused though they are there.
	for _, path := range []string{"/metrics", "/debug/pprof/", "/readyz/storage-guard", allSets} {
		if got := send(t, bareClient(t, true, admin), http.MethodGet, serverURL()+path, nil, nil); got.code != http.StatusOK {
			t.Errorf("%s is answered to an administrator with %d: %s", path, got.code, got.body)
		}
	}
	if got := send(t, bareClient(t, true), http.MethodPut, serverURL()+"/debug/flags/v", nil, strings.NewReader("9")); got.code != http.StatusForbidden {
		t.Errorf("the level of the log can be set by anybody: %d: %s", got.code, got.body)
	}

	metrics := strings.Replace(cluster.Components["copse-controller-manager"].Metrics, "http://", "https://", 1)
	if got := send(t, bareClient(t, true), http.MethodGet, metrics, nil, nil); got.code != http.StatusUnauthorized {
		t.Errorf("the controller manager's metrics are answered with %d: %s", got.code, got.body)
	}
	if got := send(t, bareClient(t, true), http.MethodGet, metrics, nobodys, nil); got.code != http.StatusForbidden {
		t.Errorf("the controller manager's metrics are answered to somebody without rights with %d: %s", got.code, got.body)
	}
}

// S3: a header that names a UID is no UID, as the cluster does not say that it is one.
func TestAHeaderWithAUIDIsIgnoredUnlessTheClusterNamesIt(t *testing.T) {
	ns := cluster.Namespace(t)
	// The policy tells whom the server takes the caller for.
	ns.Apply(fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: who-%[1]s}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
    resourceRules:
      - {apiGroups: [grove.io], apiVersions: [v1alpha1], operations: [CREATE], resources: [podcliquesets]}
  validations:
    - expression: "false"
      messageExpression: "'user ' + request.userInfo.username + ' has UID <' + (has(request.userInfo.uid) ? request.userInfo.uid : '') + '>'"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: who-%[1]s}
spec: {policyName: who-%[1]s, validationActions: [Deny]}
`, ns.Name))
	t.Cleanup(func() {
		ns.Kubectl("delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", "who-"+ns.Name)
	})
	proxy := bareClient(t, true, readPair(t, "front-proxy-client"))
	set := map[string]any{"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": map[string]any{"name": "one"}, "spec": map[string]any{
		"template": map[string]any{"cliques": []any{map[string]any{"name": "worker", "spec": map[string]any{"podSpec": map[string]any{"containers": []any{map[string]any{"name": "main", "image": "example.com/main"}}}}}}},
	}}
	body, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{"X-Remote-User": {"somebody"}, "X-Remote-Group": {"system:masters"}, "X-Remote-Uid": {"forged"}, "Content-Type": {"application/json"}}
	saysUID := func(want string) {
		t.Helper()
		ns.Eventually(time.Minute, func(context.Context) error {
			got := send(t, proxy, http.MethodPost, serverURL()+"/apis/grove.io/v1alpha1/namespaces/"+ns.Name+"/podcliquesets?dryRun=All", header, strings.NewReader(string(body)))
			if !strings.Contains(got.body, "user somebody has UID ") {
				return fmt.Errorf("the policy does not act: %d: %s", got.code, got.body)
			}
			if !strings.Contains(got.body, "user somebody has UID \\u003c"+want+"\\u003e") && !strings.Contains(got.body, "user somebody has UID <"+want+">") {
				return fmt.Errorf("want UID %q: %s", want, got.body)
			}
			return nil
		})
	}
	saysUID("")
	// An administrator may have it named, and it is taken back for the other tests.
	name := func(headers string) {
		t.Helper()
		patch := fmt.Sprintf(`{"data":{"requestheader-uid-headers":%s}}`, headers)
		ns.Anywhere().Kubectl("patch", "configmap", "extension-apiserver-authentication", "--namespace=kube-system", "--type=merge", "-p", patch)
	}
	t.Cleanup(func() { name("null") })
	name(`"[\"X-Remote-Uid\"]"`)
	saysUID("forged")
	name("null")
	saysUID("")
}

// S5: the server remembers for 10 s at most that somebody may do something, or who a token
// is of.
func TestWhatIsRevokedIsRefusedSoon(t *testing.T) {
	const (
		remembers = 10 * time.Second
		// The cluster has to hear of it, and this machine to get round to asking.
		slack = 5 * time.Second
		// The cluster's clocks may differ by a minute, so it takes a token for that much longer.
		leeway = time.Minute
	)
	ns := cluster.Namespace(t)
	for _, name := range []string{"unbound", "gone", "expired"} {
		account(ns, name, `{apiGroups: [grove.io], resources: [podcliquesets], verbs: [list]}`)
	}
	list := func(client copseclient.Interface) error {
		_, err := client.GroveV1alpha1().PodCliqueSets(ns.Name).List(t.Context(), metav1.ListOptions{})
		return err
	}
	// allowed asks right before what is remembered is revoked.
	allowed := func(token string) copseclient.Interface {
		t.Helper()
		client := withToken(t, token)
		ns.Eventually(time.Minute, func(context.Context) error { return list(client) })
		return client
	}
	refusedBy := func(deadline time.Time, what string, client copseclient.Interface, refusal func(error) bool) {
		t.Helper()
		ns.Eventually(time.Until(deadline), func(context.Context) error {
			if err := list(client); !refusal(err) {
				return errors.Join(fmt.Errorf("%s is still good", what), err)
			}
			return nil
		})
	}
	unbound, gone := allowed(token(t, ns, "unbound")), allowed(token(t, ns, "gone"))
	expires := time.Now().Add(5 * time.Second)
	expired := allowed(shortToken(t, ns, "expired", expires.Add(-leeway)))
	ns.Kubectl("delete", "rolebinding", "unbound")
	ns.Kubectl("delete", "serviceaccount", "gone")
	revoked := time.Now()
	refusedBy(revoked.Add(remembers+slack), "a right whose binding is deleted", unbound, apierrors.IsForbidden)
	refusedBy(revoked.Add(remembers+slack), "a token whose account is deleted", gone, apierrors.IsUnauthorized)
	refusedBy(expires.Add(remembers+slack), "a token that has expired", expired, apierrors.IsUnauthorized)
}

// shortToken is a token that expires earlier than any that the cluster gives out. The
// cluster's own key signs it.
func shortToken(t *testing.T, ns *framework.Namespace, name string, expires time.Time) string {
	t.Helper()
	given, _, err := jwt.NewParser().ParseUnverified(token(t, ns, name), jwt.MapClaims{})
	if err != nil {
		t.Fatal(err)
	}
	claims := given.Claims.(jwt.MapClaims)
	claims["exp"] = expires.Unix()
	short := jwt.NewWithClaims(given.Method, claims)
	short.Header["kid"] = given.Header["kid"]
	text, err := os.ReadFile(filepath.Join(cluster.Certs(), "service-account.key"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := keyutil.ParsePrivateKeyPEM(text)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := short.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}
