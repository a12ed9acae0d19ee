package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/copse-dev/copse/test/framework"
)

// account makes a service account with a role over Copse's kinds in the namespace, and
// returns the flag that acts as it.
func account(ns *framework.Namespace, name string, rules ...string) string {
	manifest := fmt.Sprintf("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: %s}\nrules:\n", name)
	for _, rule := range rules {
		manifest += "- " + rule + "\n"
	}
	ns.Apply(manifest)
	ns.Kubectl("create", "serviceaccount", name)
	ns.Kubectl("create", "rolebinding", name, "--role="+name, "--serviceaccount="+ns.Name+":"+name)
	return "--as=system:serviceaccount:" + ns.Name + ":" + name
}

// may waits until a role has reached the authorizer.
func may(ns *framework.Namespace, as string, verbAndResource ...string) {
	ns.Eventually(time.Minute, func(context.Context) error {
		if out, err := ns.TryKubectl(append([]string{"auth", "can-i", as}, verbAndResource...)...); err != nil {
			return fmt.Errorf("%v: %s", verbAndResource, out)
		}
		return nil
	})
}

const everything = `{apiGroups: [grove.io, scheduler.grove.io], resources: ["*"], verbs: [get, list, watch, create, update, patch, delete, deletecollection]}`

// Managed children are changed by whoever may override, by nobody else, whatever else a
// role grants; their sizes are for whoever may scale.
func TestManagedChildrenAreProtected(t *testing.T) {
	ns := cluster.Namespace(t)
	ns.Apply(grouped)
	ns.WaitForPods(5, time.Minute, framework.IsReady)
	dev := account(ns, "dev", everything)
	may(ns, dev, "update", "podcliques.grove.io")
	fixer := account(ns, "fixer", everything, `{apiGroups: [grove.io], resources: [podcliques], resourceNames: [llm-0-server], verbs: [override]}`)
	may(ns, fixer, "override", "podcliques.grove.io/llm-0-server")

	const child = `
apiVersion: grove.io/v1alpha1
kind: PodClique
metadata:
  name: %s
  %s
spec: {roleName: own, replicas: 1, minAvailable: 1, workloadType: Inference, podSpec: {containers: [{name: main, image: i}]}}
`
	forged := fmt.Sprintf(child, "forged", fmt.Sprintf("ownerReferences: [{apiVersion: grove.io/v1alpha1, kind: PodCliqueSet, name: llm, uid: %s, controller: true}]", ns.Kubectl("get", "pcs", "llm", "-o", "jsonpath={.metadata.uid}")))
	for name, refused := range map[string]func() string{
		"spec": func() string {
			return ns.KubectlFails("patch", "pclq", "llm-0-server", "--type=merge", "-p", `{"spec":{"replicas":5}}`, dev)
		},
		"label": func() string {
			return ns.KubectlFails("label", "pclq", "llm-0-server", "app.kubernetes.io/managed-by=me", "--overwrite", dev)
		},
		"status": func() string {
			return ns.KubectlFails("patch", "pclq", "llm-0-server", "--subresource=status", "--type=merge", "-p", `{"status":{"replicas":7}}`, dev)
		},
		"owner": func() string {
			return ns.KubectlFails("patch", "pclq", "llm-0-server", "--type=merge", "-p", `{"metadata":{"ownerReferences":null}}`, dev)
		},
		"delete": func() string { return ns.KubectlFails("delete", "pclq", "llm-0-server", dev) },
		"all": func() string {
			return ns.KubectlFails("delete", "--raw", "/apis/grove.io/v1alpha1/namespaces/"+ns.Name+"/podcliques", dev)
		},
		"apply":   func() string { return ns.ApplyFails(forged, dev, "--server-side") },
		"create":  func() string { return ns.ApplyFails(forged, dev) },
		"group":   func() string { return ns.KubectlFails("delete", "pcsg", "llm-0-decode", dev) },
		"member":  func() string { return ns.KubectlFails("delete", "pclq", "llm-0-decode-0-worker", dev) },
		"gang":    func() string { return ns.KubectlFails("delete", "podgangs.scheduler.grove.io", "llm-0", dev) },
		"other":   func() string { return ns.KubectlFails("delete", "pclq", "llm-0-decode-0-worker", fixer) },
		"dry run": func() string { return ns.KubectlFails("delete", "pclq", "llm-0-server", "--dry-run=server", dev) },
		"finalize": func() string {
			return ns.KubectlFails("patch", "pclq", "llm-0-server", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`, dev)
		},
	} {
		t.Run(name, func(t *testing.T) { contains(t, refused(), "forbidden", "is managed by", `"override"`) })
	}
	if out := ns.Kubectl("get", "pclq", "-o", "jsonpath={.items[*].metadata.deletionTimestamp}"); out != "" {
		t.Errorf("something is being deleted: %s", out)
	}
	contains(t, ns.Kubectl("get", "pclq", "-o", "name"), "llm-0-server", "llm-0-decode-0-worker")

	ns.Kubectl("scale", "pclq", "llm-0-server", "--replicas=3", dev)
	ns.Kubectl("scale", "pcsg", "llm-0-decode", "--replicas=2", dev)
	ns.WaitForPods(9, time.Minute, framework.IsReady)
	contains(t, ns.KubectlFails("scale", "pclq", "llm-0-server", "--replicas=1", dev), "spec.replicas", "must be 0, or from 2 (spec.minAvailable)")
	contains(t, ns.KubectlFails("scale", "pcsg", "llm-0-decode", "--replicas=4", dev), "spec.replicas", "to 3 (scaleConfig.maxReplicas of decode in PodCliqueSet llm)")

	// Who may override this one may, and the change is not the end of it.
	ns.Kubectl("annotate", "pclq", "llm-0-server", "note=mine", fixer)

	// What has the labels of a child but no controller is nobody's business but its owner's.
	free := fmt.Sprintf(child, "free", "labels: {app.kubernetes.io/managed-by: grove-operator, app.kubernetes.io/part-of: llm}")
	ns.Apply(free, dev)
	ns.Kubectl("patch", "pclq", "free", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`, dev)
	ns.Kubectl("delete", "pclq", "free", dev)
}

// The cluster's own controllers do their part on protected children: the garbage
// collector in the foreground and when it lets go of owners, and the namespace's end.
func TestProtectedChildrenAreStillCollected(t *testing.T) {
	ns := cluster.Namespace(t)
	ns.Apply(grouped)
	ns.WaitForPods(5, time.Minute, framework.IsReady)
	ns.Kubectl("delete", "pcs", "llm", "--cascade=foreground", "--timeout=90s")
	if out := ns.Kubectl("get", "pods,pclq,pcsg,pg", "-o", "name"); out != "" {
		t.Errorf("left behind:\n%s", out)
	}
	ns.Apply(grouped)
	ns.WaitForPods(5, time.Minute, framework.IsReady)
	ns.Kubectl("delete", "pcs", "llm", "--cascade=orphan", "--timeout=90s")
	ns.Eventually(time.Minute, func(context.Context) error {
		if out := ns.Kubectl("get", "pclq", "llm-0-server", "-o", "jsonpath={.metadata.ownerReferences}"); out != "" {
			return fmt.Errorf("the garbage collector has not let go: %s", out)
		}
		return nil
	})
	ns.Kubectl("delete", "namespace", ns.Name, "--timeout=120s")
}

// An object count of the namespace holds for our kinds: it is charged when one is made,
// and given back when it goes.
func TestQuotasCountSets(t *testing.T) {
	ns := cluster.Namespace(t)
	// The cluster looks for new kinds to count every 30 s; a quota of before has no count
	// of them, and whatever it bounds is refused, until it is looked at again.
	ns.Eventually(2*time.Minute, func(context.Context) error {
		ns.Kubectl("delete", "resourcequota", "few", "--ignore-not-found")
		ns.Kubectl("create", "quota", "few", "--hard=count/podcliquesets.grove.io=1,count/podcliques.grove.io=2")
		if out, err := ns.TryKubectl("wait", "resourcequota/few", `--for=jsonpath={.status.used.count/podcliquesets\.grove\.io}=0`, "--timeout=2s"); err != nil {
			return fmt.Errorf("the cluster does not count sets yet: %s", out)
		}
		return nil
	})
	used := func(want string) {
		t.Helper()
		ns.Eventually(time.Minute, func(context.Context) error {
			if got := ns.Kubectl("get", "resourcequota", "few", "-o", `jsonpath={.status.used.count/podcliquesets\.grove\.io} {.status.used.count/podcliques\.grove\.io}`); got != want {
				return fmt.Errorf("used is %q, want %q", got, want)
			}
			return nil
		})
	}
	used("0 0")
	ns.Apply(inference, "--dry-run=server")
	used("0 0")
	ns.Apply(inference)
	used("1 2")
	another := strings.Replace(inference, "name: llm", "name: more", 1)
	contains(t, ns.ApplyFails(another), "forbidden", "exceeded quota: few", "count/podcliquesets.grove.io=1")
	contains(t, ns.ApplyFails(another, "--dry-run=server"), "exceeded quota: few")
	// A change of what is there is no new object.
	ns.Apply(strings.Replace(inference, "example.com/router", "example.com/router:2", 1))
	ns.Kubectl("delete", "pcs", "llm", "--timeout=90s")
	used("0 0")
	ns.Apply(another)
	used("1 2")
}

// What no pod can be made from is refused when it is applied; what only does not fit
// now is told.
func TestPodTemplatesAreTriedOut(t *testing.T) {
	ns := cluster.Namespace(t)
	const pod = "containers: [{name: main, image: example.com/router}]"
	tried := func(replacement string) string { return replaceOnce(t, inference, pod, replacement) }
	for name, tc := range map[string]struct {
		spec string
		want []string
	}{
		"resources":    {"containers: [{name: main, image: i, resources: {requests: {cpu: 2}, limits: {cpu: 1}}}]", []string{"spec.template.cliques[1].spec.podSpec.containers[0].resources.requests", "must be less than or equal to cpu limit"}},
		"volume mount": {"containers: [{name: main, image: i, volumeMounts: [{name: nothing, mountPath: /a}]}]", []string{"spec.template.cliques[1].spec.podSpec.containers[0].volumeMounts[0].name", "Not found"}},
		"probe":        {"containers: [{name: main, image: i, livenessProbe: {}}]", []string{"spec.template.cliques[1].spec.podSpec.containers[0].livenessProbe", "must specify a handler type"}},
		"variable":     {`containers: [{name: main, image: i, env: [{name: A, value: a}, {name: B, valueFrom: {}}]}]`, []string{"spec.template.cliques[1].spec.podSpec.containers[0].env[1].valueFrom"}},
	} {
		t.Run(name, func(t *testing.T) {
			// The plugin fails open, and a busy machine may be too slow once.
			ns.Eventually(time.Minute, func(context.Context) error {
				out, err := ns.TryApply(tried(tc.spec), "--dry-run=server")
				if err == nil {
					return fmt.Errorf("accepted: %s", out)
				}
				contains(t, out, append(tc.want, `The PodCliqueSet "llm" is invalid`)...)
				return nil
			})
		})
	}
	for name, tc := range map[string]struct{ manifest, want string }{
		"service account": {tried(pod + "\n            serviceAccountName: nobody"), `a pod of clique router would be refused now: pods`},
		"runtime class":   {tried(pod + "\n            runtimeClassName: nothing"), "RuntimeClass"},
		"priority class":  {replaceOnce(t, inference, "template:", "template:\n    priorityClassName: nothing"), "no PriorityClass with name nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			contains(t, ns.Apply(tc.manifest, "--dry-run=server"), "Warning: spec.template.cliques[1]", tc.want)
		})
	}
	t.Run("security profile", func(t *testing.T) {
		ns.Kubectl("label", "namespace", ns.Name, "pod-security.kubernetes.io/warn=restricted")
		ns.Eventually(time.Minute, func(context.Context) error {
			if out := ns.Apply(inference, "--dry-run=server"); !strings.Contains(out, "Warning: spec.template.cliques[0]: a pod of clique server: would violate PodSecurity") {
				return fmt.Errorf("not warned: %s", out)
			}
			return nil
		})
		ns.Kubectl("label", "namespace", ns.Name, "pod-security.kubernetes.io/enforce=restricted")
		ns.Eventually(time.Minute, func(context.Context) error {
			if out := ns.Apply(inference, "--dry-run=server"); !strings.Contains(out, "would be refused now") {
				return fmt.Errorf("not warned: %s", out)
			}
			return nil
		})
	})
	if out := ns.Kubectl("get", "pods,pcs", "-o", "name"); out != "" {
		t.Errorf("a dry run left:\n%s", out)
	}
	if out := ns.Kubectl("get", "--raw", "/metrics"); !strings.Contains(out, `flow_schema="copse-dry-run"`) {
		t.Error("the dry runs are not in their own flow")
	}
}

// grouped is a set of a clique and a scaling group.
const grouped = `
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: llm}
spec:
  replicas: 1
  template:
    cliques:
      - name: server
        spec:
          replicas: 2
          podSpec:
            containers: [{name: main, image: example.com/server}]
      - name: worker
        spec:
          replicas: 3
          podSpec:
            containers: [{name: main, image: example.com/worker}]
    podCliqueScalingGroups:
      - {name: decode, cliqueNames: [worker], replicas: 1, minAvailable: 1, scaleConfig: {maxReplicas: 3}}
`
