package integration

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const systemNamespace = "copse-system"

// The manifests are what the API server takes, field by field, and their pods are let
// into a namespace that enforces the restricted profile.
func TestTheBaseManifestsAreValidAndTheirPodsAreRestricted(t *testing.T) {
	ns := cluster.Namespace(t)
	base := filepath.Join(cluster.Root(), "artifacts", "base")
	manifests := ns.Kubectl("kustomize", base)
	ns.Anywhere().Apply(manifests, "--server-side", "--dry-run=server", "--force-conflicts", "--validate=strict")

	deployments := 0
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(manifests)), 4096)
	for {
		var deployment appsv1.Deployment
		if err := decoder.Decode(&deployment); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if deployment.Kind != "Deployment" {
			continue
		}
		deployments++
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "try-", Labels: deployment.Spec.Template.Labels}, Spec: deployment.Spec.Template.Spec}
		if _, err := cluster.Kube.CoreV1().Pods(systemNamespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			t.Errorf("a pod of Deployment %s is refused: %v", deployment.Name, err)
		}
	}
	if deployments != 2 {
		t.Errorf("there are %d Deployments", deployments)
	}
}

// Both programs run with the permissions of the manifests alone: they may do nothing
// that those do not say, and nobody has met a refusal of the authorizer. Admission's are of
// what other tests applied.
func TestTheProgramsMeetNoRefusal(t *testing.T) {
	ns := cluster.Namespace(t)
	ns.Apply(training)
	ns.WaitFor("pcs/job", "jsonpath={.status.phase}=Succeeded")
	for _, component := range []string{"copse-apiserver", "copse-controller-manager"} {
		for _, line := range strings.Split(cluster.Log(t, component), "\n") {
			if strings.Contains(line, "orbidden: User") {
				t.Errorf("%s: %s", component, line)
			}
		}
	}
}
