package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"

	copseclient "github.com/copse-dev/copse/pkg/generated/clientset/versioned"
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

// A plugin that an administrator switches off does nothing more, and the others do.
func TestAPluginThatIsDisabledIsOff(t *testing.T) {
	ns := cluster.Namespace(t)
	ns.Apply(inference)
	ns.Kubectl("create", "quota", "none", "--hard=count/podcliquesets.grove.io=0")
	// Another server of the same storage, as in an installation of more than one replica.
	server := func(disabled string) rest.Interface {
		server := cluster.StartServer(t, "--etcd-servers="+cluster.Components["copse-etcd"].URL, "--disable-admission-plugins="+disabled)
		server.WaitReady(t)
		config := rest.CopyConfig(server.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: "dev-" + ns.Name}
		client, err := copseclient.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		return client.GroveV1alpha1().RESTClient()
	}
	account(ns, "dev", everything)
	ns.Kubectl("create", "rolebinding", "dev-user", "--role=dev", "--user=dev-"+ns.Name)
	ns.WaitFor("pclq/llm-0-router", "create")

	change := func(ctx context.Context, client rest.Interface) error {
		return client.Patch(types.MergePatchType).Namespace(ns.Name).Resource("podcliques").Name("llm-0-router").
			Param("dryRun", metav1.DryRunAll).Body([]byte(`{"metadata":{"labels":{"a":"b"}}}`)).Do(ctx).Error()
	}
	create := func(image string) func(context.Context, rest.Interface) error {
		return func(ctx context.Context, client rest.Interface) error {
			body, err := yaml.ToJSON([]byte(strings.ReplaceAll(strings.Replace(inference, "name: llm", "name: more", 1), "example.com/router", image)))
			if err != nil {
				return err
			}
			return client.Post().Namespace(ns.Name).Resource("podcliquesets").Param("dryRun", metav1.DryRunAll).
				SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error()
		}
	}
	refusals := map[string]struct {
		try  func(context.Context, rest.Interface) error
		says string
	}{
		"ManagedChildProtection": {change, "is managed by"},
		// The template fits, so that the quota alone has something against it.
		"ResourceQuota":     {create("example.com/router"), "quota"},
		"PodTemplateDryRun": {create(`"i", livenessProbe: {}`), "must specify a handler type"},
	}
	for _, disabled := range [][]string{{"ManagedChildProtection", "ResourceQuota"}, {"PodTemplateDryRun"}} {
		client := server(strings.Join(disabled, ","))
		for plugin, tc := range refusals {
			t.Run(fmt.Sprintf("%s without %v", plugin, disabled), func(t *testing.T) {
				off := slices.Contains(disabled, plugin)
				ns.Eventually(time.Minute, func(ctx context.Context) error {
					err := tc.try(ctx, client)
					if refused := err != nil && strings.Contains(err.Error(), tc.says); refused == off {
						return errors.Join(fmt.Errorf("off is %t, and refused %t", off, refused), err)
					}
					return nil
				})
			})
		}
	}
}
