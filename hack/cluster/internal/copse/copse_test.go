package copse

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// overlay is the least that the manifests have to hold.
const overlay = `
apiVersion: v1
kind: Service
metadata: {name: copse-apiserver, namespace: copse-system}
spec: {type: ExternalName, externalName: localhost, ports: [{name: https, port: 443, targetPort: 8443}]}
---
apiVersion: v1
kind: Service
metadata: {name: copse-webhook, namespace: copse-system}
spec: {type: ExternalName, externalName: localhost, ports: [{name: https, port: 443}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: copse-pod-grouper}
webhooks:
  - name: pods.pod-grouper.grove.io
    admissionReviewVersions: [v1]
    sideEffects: None
    clientConfig: {service: {name: copse-webhook, namespace: copse-system, port: 443}}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1alpha1.grove.io}
spec:
  group: grove.io
  version: v1alpha1
  groupPriorityMinimum: 1000
  versionPriority: 15
  service: {name: copse-apiserver, namespace: copse-system}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1alpha1.scheduler.grove.io}
spec:
  group: scheduler.grove.io
  version: v1alpha1
  groupPriorityMinimum: 1000
  versionPriority: 15
  caBundle: b2xk
  service: {name: copse-apiserver, namespace: copse-system, port: 443}
`

func TestKustomization(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "overlay", "all.yaml"), overlay)
	write(t, filepath.Join(root, "overlay", "kustomization.yaml"), "resources: [all.yaml]\n")
	folder := filepath.Join(root, "state", "install")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	path, err := relative(folder, filepath.Join(root, "overlay"))
	if err != nil {
		t.Fatal(err)
	}
	content, err := kustomization(path, Ports{APIServer: 12345, Webhook: 23456}, []byte("the authority"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "kustomization.yaml"), string(content))

	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatal(err)
	}
	apis, ports := 0, map[string]bool{}
	for _, r := range built.Resources() {
		switch r.GetKind() {
		case "APIService":
			apis++
			var api apiregistrationv1.APIService
			decode(t, r.MustYaml(), &api)
			if string(api.Spec.CABundle) != "the authority" || api.Spec.Service.Port == nil || *api.Spec.Service.Port != 12345 {
				t.Errorf("%s", r.MustYaml())
			}
		case "Service":
			yaml := r.MustYaml()
			if strings.Contains(yaml, "443") {
				t.Errorf("%s", yaml)
			}
			for _, port := range []string{"port: 12345", "port: 23456"} {
				ports[r.GetName()+" "+port] = strings.Contains(yaml, port)
			}
		case "MutatingWebhookConfiguration":
			if yaml := r.MustYaml(); !strings.Contains(yaml, "port: 23456") || strings.Contains(yaml, "caBundle") {
				t.Errorf("%s", yaml)
			}
		}
	}
	if apis != 2 {
		t.Errorf("%d APIServices", apis)
	}
	if !ports["copse-apiserver port: 12345"] || !ports["copse-webhook port: 23456"] {
		t.Errorf("the Services have other ports: %v", ports)
	}
}

func TestAvailable(t *testing.T) {
	api := func(namespace string, status apiregistrationv1.ConditionStatus) apiregistrationv1.APIService {
		return apiregistrationv1.APIService{
			ObjectMeta: metav1.ObjectMeta{Name: "x"},
			Spec:       apiregistrationv1.APIServiceSpec{Service: &apiregistrationv1.ServiceReference{Namespace: namespace}},
			Status: apiregistrationv1.APIServiceStatus{Conditions: []apiregistrationv1.APIServiceCondition{
				{Type: apiregistrationv1.Available, Status: status}}},
		}
	}
	up := api(Namespace, apiregistrationv1.ConditionTrue)
	for _, tc := range []struct {
		name string
		apis []apiregistrationv1.APIService
		want bool
	}{
		{"none", nil, false},
		{"only others", []apiregistrationv1.APIService{api("metrics", apiregistrationv1.ConditionTrue), {}}, false},
		{"up", []apiregistrationv1.APIService{up}, true},
		{"others do not count", []apiregistrationv1.APIService{up, api("metrics", apiregistrationv1.ConditionFalse)}, true},
		{"one of two", []apiregistrationv1.APIService{up, api(Namespace, apiregistrationv1.ConditionFalse)}, false},
	} {
		if err := available(tc.apis); (err == nil) != tc.want {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}
