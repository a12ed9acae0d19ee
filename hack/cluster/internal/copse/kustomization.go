package copse

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"
)

// Names that the manifests use.
const (
	Namespace = "copse-system"
	Service   = "copse-apiserver"
)

// kustomization returns a kustomization.yaml that takes the overlay, a path
// relative to it, and points everything at a server on a port of this machine
// whose certificate is signed by the authority.
func kustomization(overlay string, port int, ca []byte) ([]byte, error) {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	// "add" also replaces.
	set := func(path string, value any) operation { return operation{"add", path, value} }

	service, err := json.Marshal([]operation{
		set("/spec/ports", []map[string]any{{"name": "https", "port": port}}),
	})
	if err != nil {
		return nil, err
	}
	// Nothing translates ports on the way to an ExternalName: the port of the
	// APIService is the one that the server listens on.
	apiService, err := json.Marshal([]operation{
		set("/spec/caBundle", base64.StdEncoding.EncodeToString(ca)),
		set("/spec/service/port", port),
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
				"patch":  string(service),
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
