package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/copse-dev/copse/test/framework"
)

// metricsAPI serves metrics to the cluster's autoscalers, as the adapter of a monitoring
// system does: custom metrics of pods, and external metrics. Each has one value.
type metricsAPI struct {
	ns *framework.Namespace

	mu     sync.Mutex
	values map[string]int64
	// asked are the selectors by which pods were asked for, by metric.
	asked map[string]string
}

const (
	customMetrics   = "/apis/custom.metrics.k8s.io/v1beta2"
	externalMetrics = "/apis/external.metrics.k8s.io/v1beta1"
)

// serveMetrics registers a metrics API with the cluster for as long as a test runs.
func serveMetrics(t *testing.T, ns *framework.Namespace, values map[string]int64) *metricsAPI {
	t.Helper()
	m := &metricsAPI{ns: ns, values: values, asked: map[string]string{}}
	server := httptest.NewTLSServer(m)
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	ns.Apply("apiVersion: v1\nkind: Service\nmetadata: {name: metrics}\nspec: {type: ExternalName, externalName: localhost}")
	for _, path := range []string{customMetrics, externalMetrics} {
		group, version, _ := strings.Cut(strings.TrimPrefix(path, "/apis/"), "/")
		ns.Anywhere().Apply(fmt.Sprintf(`
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: %s}
spec:
  group: %s
  version: %s
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {namespace: %s, name: metrics, port: %s}
`, version+"."+group, group, version, ns.Name, address.Port()))
		// As long as it is registered and not served, no namespace can go.
		t.Cleanup(func() { ns.Anywhere().Kubectl("delete", "apiservice", version+"."+group) })
	}
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		for _, path := range []string{customMetrics, externalMetrics} {
			if err := cluster.Kube.Discovery().RESTClient().Get().AbsPath(path).Do(ctx).Error(); err != nil {
				return fmt.Errorf("%s is not served: %w", path, err)
			}
		}
		return nil
	})
	return m
}

func (m *metricsAPI) set(metric string, value int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[metric] = value
}

// selector is by what the pods of a metric were asked for.
func (m *metricsAPI) selector(metric string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked[metric]
}

func (m *metricsAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ofPods := customMetrics + "/namespaces/" + m.ns.Name + "/pods/*/"
	ofNamespace := externalMetrics + "/namespaces/" + m.ns.Name + "/"
	switch {
	case r.URL.Path == customMetrics:
		answer(w, resources("custom.metrics.k8s.io/v1beta2", "pods/requests", "MetricValueList"))
	case r.URL.Path == externalMetrics:
		answer(w, resources("external.metrics.k8s.io/v1beta1", "queue", "ExternalMetricValueList"))
	case strings.HasPrefix(r.URL.Path, ofPods):
		m.answerOfPods(w, r, strings.TrimPrefix(r.URL.Path, ofPods))
	case strings.HasPrefix(r.URL.Path, ofNamespace):
		metric := strings.TrimPrefix(r.URL.Path, ofNamespace)
		answer(w, map[string]any{"kind": "ExternalMetricValueList", "apiVersion": "external.metrics.k8s.io/v1beta1", "items": []any{
			map[string]any{"metricName": metric, "metricLabels": map[string]string{}, "timestamp": metav1.Now(), "value": m.value(metric)},
		}})
	default:
		http.NotFound(w, r)
	}
}

func (m *metricsAPI) answerOfPods(w http.ResponseWriter, r *http.Request, metric string) {
	selector := r.URL.Query().Get("labelSelector")
	m.mu.Lock()
	m.asked[metric] = selector
	m.mu.Unlock()
	pods, err := cluster.Kube.CoreV1().Pods(m.ns.Name).List(r.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	items := []any{}
	for i := range pods.Items {
		items = append(items, map[string]any{
			"describedObject": map[string]string{"kind": "Pod", "apiVersion": "/v1", "namespace": m.ns.Name, "name": pods.Items[i].Name},
			"metric":          map[string]any{"name": metric}, "timestamp": metav1.Now(), "value": m.value(metric),
		})
	}
	answer(w, map[string]any{"kind": "MetricValueList", "apiVersion": "custom.metrics.k8s.io/v1beta2", "items": items})
}

func (m *metricsAPI) value(metric string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprint(m.values[metric])
}

func resources(groupVersion, name, kind string) *metav1.APIResourceList {
	return &metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: groupVersion,
		APIResources: []metav1.APIResource{{Name: name, Namespaced: true, Kind: kind, Verbs: metav1.Verbs{"get"}}},
	}
}

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(body); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
