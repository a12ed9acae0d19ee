package framework

import (
	"context"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// Metrics are what a component's endpoint of metrics says now.
func (c *Cluster) Metrics(t *testing.T, component string) map[string]*dto.MetricFamily {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	config := c.Direct(component)
	if component == "copse-controller-manager" {
		// It knows callers by their tokens alone.
		config.TLSClientConfig.CertFile, config.TLSClientConfig.CertData = "", nil
		config.TLSClientConfig.KeyFile, config.TLSClientConfig.KeyData = "", nil
		config.BearerToken = c.scraper(ctx, t)
	}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := client.Get().AbsPath("/metrics").Stream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(stream)
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// scraper is a token of a service account that may read metrics, as Prometheus' may.
func (c *Cluster) scraper(ctx context.Context, t *testing.T) string {
	t.Helper()
	const name = "test-scraper"
	accounts := c.Kube.CoreV1().ServiceAccounts(metav1.NamespaceDefault)
	if _, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:monitoring"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: name}},
	}
	if _, err := c.Kube.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	issued, err := accounts.CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return issued.Status.Token
}

// Requests counts the requests that a server has answered and that counts says yes to,
// by verb, resource and subresource. Requests of a dry run are not among them: the API
// server tries pod templates out, and nothing is written.
func (c *Cluster) Requests(t *testing.T, component string, counts func(labels map[string]string) bool) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for _, metric := range c.Metrics(t, component)["apiserver_request_total"].GetMetric() {
		labels := map[string]string{}
		for _, pair := range metric.GetLabel() {
			labels[pair.GetName()] = pair.GetValue()
		}
		if labels["dry_run"] != "" || !counts(labels) {
			continue
		}
		what := labels["verb"] + " " + labels["resource"]
		if sub := labels["subresource"]; sub != "" {
			what += "/" + sub
		}
		out[what] += metric.GetCounter().GetValue()
	}
	return out
}
