package framework

import (
	"context"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// Metrics are what a component's endpoint of metrics says now.
func (c *Cluster) Metrics(t *testing.T, component string) map[string]*dto.MetricFamily {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	config := c.Direct(component)
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
