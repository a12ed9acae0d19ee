package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// The cluster's own policies act on the aggregated kinds: on create, update, scale and
// dry run.
func TestValidatingAdmissionPoliciesActOnTheAggregatedKinds(t *testing.T) {
	ns := cluster.Namespace(t)
	ns.Apply(fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: few-replicas-%[1]s}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
    resourceRules:
      - {apiGroups: [grove.io], apiVersions: [v1alpha1], operations: [CREATE, UPDATE], resources: [podcliquesets, podcliquesets/scale]}
  validations:
    - {expression: "object.spec.replicas <= 3", message: at most three replicas here}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: few-replicas-%[1]s}
spec: {policyName: few-replicas-%[1]s, validationActions: [Deny]}
`, ns.Name))
	t.Cleanup(func() {
		ns.Kubectl("delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", "few-replicas-"+ns.Name)
	})
	many := strings.Replace(inference, "replicas: 1", "replicas: 4", 1)
	const message = "at most three replicas here"
	ns.Apply(inference)
	ns.Eventually(30*time.Second, func(context.Context) error {
		_, err := ns.TryApply(many, "--dry-run=server")
		if err == nil {
			return fmt.Errorf("the policy does not act yet")
		}
		return nil
	})
	contains(t, ns.ApplyFails(many), message)
	contains(t, ns.ApplyFails(many, "--server-side", "--force-conflicts"), message)
	contains(t, ns.KubectlFails("scale", "pcs", "llm", "--replicas=4"), message)
	contains(t, ns.KubectlFails("patch", "pcs", "llm", "--type=merge", "-p", `{"spec":{"replicas":4}}`), message)
	ns.Kubectl("scale", "pcs", "llm", "--replicas=3")
}

// A dry run stores nothing.
func TestADryRunLeavesNothing(t *testing.T) {
	ns := cluster.Namespace(t)
	ns.Apply(inference, "--dry-run=server")
	if out := ns.Kubectl("get", "pcs", "-o", "name"); out != "" {
		t.Errorf("a dry run stored %s", out)
	}
}

// People with the cluster's own edit role may run sets, not write their status or children.
func TestTheClustersRolesCoverSets(t *testing.T) {
	ns := cluster.Namespace(t)
	ns.Kubectl("create", "serviceaccount", "dev")
	ns.Kubectl("create", "rolebinding", "dev", "--clusterrole=edit", "--serviceaccount="+ns.Name+":dev")
	as := "--as=system:serviceaccount:" + ns.Name + ":dev"
	ns.Eventually(time.Minute, func(context.Context) error {
		if out, err := ns.TryKubectl("auth", "can-i", "create", "podcliquesets.grove.io", as); err != nil {
			return fmt.Errorf("edit may not create sets yet: %s", out)
		}
		return nil
	})
	ns.Apply(inference, as)
	contains(t, ns.Kubectl("get", "pcs,pclq", as), "llm")
	for _, args := range [][]string{
		{"patch", "pcs", "llm", "--subresource=status", "--type=merge", "-p", `{"status":{"replicas":7}}`},
		{"delete", "pclq", "--all"},
		{"delete", "ct", "--all"},
	} {
		contains(t, ns.KubectlFails(append(args, as)...), "forbidden")
	}
}
