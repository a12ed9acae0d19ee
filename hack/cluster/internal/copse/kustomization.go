package copse

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"
)

// Names that the manifests use.
const (
	Namespace      = "copse-system"
	Service        = "copse-apiserver"
	webhookService = "copse-webhook"
)

// Ports are where Copse's programs listen on this machine.
type Ports struct {
	APIServer, Webhook int
}

// kustomization returns a kustomization.yaml that takes the overlay, a path
// relative to it, and points everything at ports of this machine. The
// certificate of the API server is signed by the authority; that of the webhook
// is the controller manager's own, who also says by whom it is signed.
func kustomization(overlay string, ports Ports, ca []byte) ([]byte, error) {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	// "add" also replaces.
	set := func(path string, value any) operation { return operation{"add", path, value} }

	service := func(port int) ([]byte, error) {
		return json.Marshal([]operation{set("/spec/ports", []map[string]any{{"name": "https", "port": port}})})
	}
	apiServer, err := service(ports.APIServer)
	if err != nil {
		return nil, err
	}
	webhook, err := service(ports.Webhook)
	if err != nil {
		return nil, err
	}
	// Nothing translates ports on the way to an ExternalName: the port of the
	// APIService, or of the webhook, is the one that the server listens on.
	apiService, err := json.Marshal([]operation{
		set("/spec/caBundle", base64.StdEncoding.EncodeToString(ca)),
		set("/spec/service/port", ports.APIServer),
	})
	if err != nil {
		return nil, err
	}
	configuration, err := json.Marshal([]operation{
		set("/webhooks/0/clientConfig/service/port", ports.Webhook),
	})
	if err != nil {
		return nil, err
	}
	content, err := yaml.Marshal(map[string]any{
		"apiVersion": "kustomize.config.k8s.io/v1beta1",
		"kind":       "Kustomization",
		"resources":  []string{overlay},
		"patches": []map[string]any{
			{
				"target": map[string]string{"kind": "Service", "name": Service, "namespace": Namespace},
				"patch":  string(apiServer),
			},
			{
				"target": map[string]string{"kind": "Service", "name": webhookService, "namespace": Namespace},
				"patch":  string(webhook),
			},
			{
				"target": map[string]string{"kind": "MutatingWebhookConfiguration"},
				"patch":  string(configuration),
			},
			{
				"target": map[string]string{"kind": "APIService"},
				"patch":  string(apiService),
			},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("kustomization: %w", err)
	}
	return content, nil
}
