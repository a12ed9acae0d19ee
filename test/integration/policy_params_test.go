package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"

	"github.com/copse-dev/copse/test/framework"
)

// unread is what a write is told that a policy matches whose params the server may not read.
const unread = "failed to configure binding: paramKind kind `&ParamKind{APIVersion:v1,Kind:ConfigMap,}` not yet synced to use for admission"

// replicasPolicy refuses sets of a namespace with other replicas than its ConfigMap says.
const replicasPolicy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
    resourceRules: [{apiGroups: [grove.io], apiVersions: [v1alpha1], operations: [CREATE, UPDATE], resources: [podcliquesets]}]
  validations:
    - expression: string(object.spec.replicas) == params.data.replicas
      messageExpression: "'the replicas wanted are ' + params.data.replicas"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec:
  policyName: %[1]s
  paramRef: {name: wanted, namespace: %[1]s, parameterNotFoundAction: Allow}
  validationActions: [Deny]
`

// labelPolicy labels the sets of a namespace with what its ConfigMap says.
const labelPolicy = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
    resourceRules: [{apiGroups: [grove.io], apiVersions: [v1alpha1], operations: [CREATE, UPDATE], resources: [podcliquesets]}]
  reinvocationPolicy: Never
  mutations:
    - patchType: ApplyConfiguration
      applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {"wanted": "wants-" + params.data.replicas}}}'}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec:
  policyName: %[1]s
  paramRef: {name: wanted, namespace: %[1]s, parameterNotFoundAction: Allow}
`

// applyPolicy makes a policy for a namespace, which ends with the test, and waits until a
// set is answered with what shows that it acts.
func applyPolicy(t *testing.T, ns *framework.Namespace, policy, acts string) {
	t.Helper()
	t.Cleanup(func() { deletePolicies(ns) })
	ns.Apply(fmt.Sprintf(policy, ns.Name))
	ns.Eventually(time.Minute, func(context.Context) error {
		if out, _ := ns.TryApply(inference, "--dry-run=server", "-o", "yaml"); !strings.Contains(out, acts) {
			return fmt.Errorf("the policy does not act yet: %s", out)
		}
		return nil
	})
}

func deletePolicies(ns *framework.Namespace) {
	ns.Kubectl("delete", "--ignore-not-found", "validatingadmissionpolicy,validatingadmissionpolicybinding,mutatingadmissionpolicy,mutatingadmissionpolicybinding", ns.Name)
}

// A policy whose params the server may not read refuses what it matches, and does nothing
// else: the server that sees it stays ready, and so does one that starts later.
func TestAPolicyWithParamsThatTheServerMayNotReadDoesNotTakeTheAPIDown(t *testing.T) {
	for kind, policy := range map[string]string{"ValidatingAdmissionPolicy": replicasPolicy, "MutatingAdmissionPolicy": labelPolicy} {
		t.Run(kind, func(t *testing.T) {
			matched, other := cluster.Namespace(t), cluster.Namespace(t)
			applyPolicy(t, matched, policy, unread)
			other.Apply(inference)
			if err := direct(t, func(*rest.Config) {}).Discovery().RESTClient().Get().AbsPath("/readyz").Do(t.Context()).Error(); err != nil {
				t.Errorf("the server is not ready: %v", err)
			}

			started := cluster.StartServer(t, "--etcd-servers="+cluster.Components["copse-etcd"].URL)
			started.WaitReady(t)
			body, err := yaml.ToJSON([]byte(inference))
			if err != nil {
				t.Fatal(err)
			}
			create := func(ns *framework.Namespace) error {
				return started.Copse.GroveV1alpha1().RESTClient().Post().Namespace(ns.Name).Resource("podcliquesets").Param("dryRun", metav1.DryRunAll).
					SetHeader("Content-Type", "application/json").Body(body).Do(t.Context()).Error()
			}
			if err := create(matched); err == nil || !strings.Contains(err.Error(), unread) {
				t.Errorf("the policy does not act in a server that starts: %v", err)
			}
			if err := started.Copse.GroveV1alpha1().PodCliqueSets(other.Name).Delete(t.Context(), "llm", metav1.DeleteOptions{}); err != nil {
				t.Errorf("a server that starts does not write: %v", err)
			}
		})
	}
}

// paramsRole lets the server read ConfigMaps as params.
const paramsRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: policy-params-%s, labels: {grove.io/aggregate-to-policy-params: "true"}}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}]
`

// grantParams lets the server read ConfigMaps as params until the test is over.
func grantParams(t *testing.T, ns *framework.Namespace) {
	t.Helper()
	t.Cleanup(func() {
		ns.Kubectl("delete", "clusterrole", "policy-params-"+ns.Name)
		awaitNoParams(ns)
	})
	ns.Apply(fmt.Sprintf(paramsRole, ns.Name))
}

// awaitNoParams waits until the server may not read ConfigMaps any more: other tests look at
// what it may do.
func awaitNoParams(ns *framework.Namespace) {
	ns.Eventually(time.Minute, func(context.Context) error {
		if rules := ns.Kubectl("get", "clusterrole", "copse-policy-params", "-o", "jsonpath={.rules}"); strings.Contains(rules, "configmaps") {
			return fmt.Errorf("the server may still %s", rules)
		}
		return nil
	})
}

// With the right to read its params a policy acts as it says, without a restart: by what
// they say now, and again after the policy was away.
func TestAPolicyActsByParamsThatTheServerIsAllowedToRead(t *testing.T) {
	for kind, tc := range map[string]struct{ policy, says string }{
		"ValidatingAdmissionPolicy": {replicasPolicy, "the replicas wanted are "},
		"MutatingAdmissionPolicy":   {labelPolicy, "wanted: wants-"},
	} {
		t.Run(kind, func(t *testing.T) {
			ns := cluster.Namespace(t)
			want := func(replicas string) {
				t.Helper()
				ns.Kubectl("patch", "configmap", "wanted", "--type=merge", "-p", `{"data":{"replicas":"`+replicas+`"}}`)
			}
			says := func(text string) {
				t.Helper()
				ns.Eventually(2*time.Minute, func(context.Context) error {
					if out, _ := ns.TryApply(inference, "--dry-run=server", "-o", "yaml"); !strings.Contains(out, text) {
						return fmt.Errorf("%q is missing in %s", text, out)
					}
					return nil
				})
			}
			ns.Kubectl("create", "configmap", "wanted", "--from-literal=replicas=2")
			applyPolicy(t, ns, tc.policy, unread)
			grantParams(t, ns)
			says(tc.says + "2")
			want("3")
			says(tc.says + "3")

			deletePolicies(ns)
			ns.Eventually(time.Minute, func(context.Context) error {
				out, err := ns.TryApply(inference, "--dry-run=server", "-o", "yaml")
				if err != nil || strings.Contains(out, tc.says) {
					return fmt.Errorf("the policy still acts: %s", out)
				}
				return nil
			})
			want("4")
			applyPolicy(t, ns, tc.policy, tc.says+"4")
		})
	}
}

// The example limits gangs by its ConfigMap where a namespace asks for it, and keeps nobody
// from changing what is not limited.
func TestTheExampleOfAPolicyWithParamsLimitsGangs(t *testing.T) {
	example := func(name string) string { return filepath.Join(cluster.Root(), "artifacts", "examples", name) }
	// Its nine pods are those of two cliques and of a scaling group with two copies.
	text, err := os.ReadFile(example("inference-disaggregated.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	service := string(text)
	another := strings.Replace(service, "name: serve-70b", "name: another", 1)
	ns, other := cluster.Namespace(t), cluster.Namespace(t)
	t.Cleanup(func() {
		ns.Anywhere().Kubectl("delete", "--ignore-not-found", "-f", example("admission-policy-params.yaml"))
		awaitNoParams(ns)
	})
	ns.Apply(service)
	ns.Anywhere().Kubectl("apply", "-f", example("admission-policy-params.yaml"))
	ns.Kubectl("label", "namespace", ns.Name, "example.com/gang-limit=enforced")
	limit := func(most, says string) {
		t.Helper()
		ns.Named("copse-system").Kubectl("patch", "configmap", "gang-limits", "--type=merge", "-p", `{"data":`+most+`}`)
		ns.Eventually(time.Minute, func(context.Context) error {
			if out, _ := ns.TryApply(another, "--dry-run=server"); !strings.Contains(out, says) {
				return fmt.Errorf("%q is missing in %s", says, out)
			}
			return nil
		})
	}
	limit(`{"default":"8"}`, "a replica begins with 9 pods, and namespace "+ns.Name+" may have 8")
	contains(t, ns.Kubectl("label", "pcs/serve-70b", "team=search"), "labeled")
	contains(t, ns.Kubectl("scale", "pcs/serve-70b", "--replicas=2"), "scaled")
	contains(t, other.Apply(service), "created")
	limit(`{"`+ns.Name+`":"9"}`, "another created")
	ns.Named("copse-system").Kubectl("delete", "configmap", "gang-limits")
	ns.Eventually(time.Minute, func(context.Context) error {
		if out, err := ns.TryApply(another, "--dry-run=server"); err == nil {
			return fmt.Errorf("admitted without a number: %s", out)
		}
		return nil
	})
}
