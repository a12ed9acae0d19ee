package integration

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/test/framework"
)

// right is a verb on an endpoint of PodCliqueSets.
type right struct{ verb, endpoint string }

func (r right) String() string { return r.verb + " podcliquesets" + r.endpoint }

// user is who has this right and no other.
func (r right) user(ns *framework.Namespace) string {
	return ns.Name + ":" + strings.ReplaceAll(r.verb+r.endpoint, "/", "-")
}

func setRights() []right {
	var rights []right
	for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"} {
		rights = append(rights, right{verb, ""})
	}
	for _, endpoint := range []string{"/status", "/scale"} {
		for _, verb := range []string{"get", "update", "patch"} {
			rights = append(rights, right{verb, endpoint})
		}
	}
	return rights
}

// grantEach makes a user of each right.
func grantEach(ns *framework.Namespace) {
	var manifest strings.Builder
	for _, r := range setRights() {
		name := strings.TrimPrefix(r.user(ns), ns.Name+":")
		fmt.Fprintf(&manifest, `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: %[1]s}
rules: [{apiGroups: [grove.io], resources: [podcliquesets%[2]s], verbs: [%[3]s]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %[1]s}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "%[4]s"}]
---
`, name, r.endpoint, r.verb, r.user(ns))
	}
	ns.Apply(manifest.String())
}

// as is a bare client of a user that goes past the aggregation layer.
func as(t *testing.T, user string) rest.Interface {
	t.Helper()
	return direct(t, func(config *rest.Config) { config.Impersonate = rest.ImpersonationConfig{UserName: user} }).GroveV1alpha1().RESTClient()
}

// try makes use of a right, on an object that is not there: who may is told so, or asked
// for more.
func (r right) try(ctx context.Context, ns *framework.Namespace, client rest.Interface) error {
	methods := map[string]string{
		"get": http.MethodGet, "list": http.MethodGet, "watch": http.MethodGet, "create": http.MethodPost, "update": http.MethodPut,
		"patch": http.MethodPatch, "delete": http.MethodDelete, "deletecollection": http.MethodDelete,
	}
	request := client.Verb(methods[r.verb]).Namespace(ns.Name).Resource("podcliquesets").SubResource(strings.TrimPrefix(r.endpoint, "/"))
	switch r.verb {
	case "watch":
		request.Param("watch", "true").Param("timeoutSeconds", "1")
	case "get", "delete", "update", "patch":
		request.Name("none")
	}
	switch r.verb {
	case "patch":
		request.SetHeader("Content-Type", string(types.MergePatchType)).Body([]byte(`{}`))
	case "create", "update":
		request.SetHeader("Content-Type", "application/json").Body([]byte(`{"metadata":{"name":"none"}}`))
	}
	if r.verb != "get" && r.verb != "list" && r.verb != "watch" {
		request.Param("dryRun", metav1.DryRunAll)
	}
	return request.Do(ctx).Error()
}

// S4: a right on one endpoint with one verb is that and no more, also for who reaches the
// server directly.
func TestARightIsForOneVerbOnOneEndpoint(t *testing.T) {
	ns := cluster.Namespace(t)
	grantEach(ns)
	for _, granted := range setRights() {
		t.Run(granted.String(), func(t *testing.T) {
			client := as(t, granted.user(ns))
			ns.Eventually(time.Minute, func(ctx context.Context) error {
				if err := granted.try(ctx, ns, client); apierrors.IsForbidden(err) {
					return err
				}
				return nil
			})
			for _, asked := range setRights() {
				if err := asked.try(t.Context(), ns, client); asked != granted && !apierrors.IsForbidden(err) {
					t.Errorf("may %s too: %v", asked, err)
				}
			}
			if granted.verb != "patch" || granted.endpoint != "" {
				return
			}
			// An apply of what is not there creates it, which needs another right.
			err := client.Patch(types.ApplyPatchType).Namespace(ns.Name).Resource("podcliquesets").Name("llm").
				Param("fieldManager", "test").Param("dryRun", metav1.DryRunAll).Body([]byte(inference)).Do(t.Context()).Error()
			if !apierrors.IsForbidden(err) {
				t.Errorf("who may patch may create: %v", err)
			}
		})
	}
}

// S4: what an endpoint is not for, it leaves alone, whoever writes to it.
func TestAnEndpointWritesItsPartAlone(t *testing.T) {
	ns := cluster.Namespace(t)
	ns.Apply(strings.Replace(inference, "replicas: 1", "replicas: 0", 1))
	grantEach(ns)
	sets := cluster.Copse.GroveV1alpha1().PodCliqueSets(ns.Name)
	// The owner exists, else the garbage collector would do its part.
	ns.Kubectl("create", "configmap", "owner")
	owner := ns.Kubectl("get", "configmap", "owner", "-o", "jsonpath={.metadata.uid}")
	const everyPart = `{
		"metadata": {"labels": {"forged": "yes"}, "annotations": {"forged": "yes"}, "finalizers": null,
			"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": %q}]},
		"spec": {"replicas": 1}, "status": {"observedGeneration": %d}}`
	for _, tc := range []struct {
		endpoint string
		// generation is forged, and another one each time: a controller may not have put the
		// one before right yet.
		generation int64
		writes     []string
	}{
		{"", 77, []string{"metadata", "spec"}},
		{"/status", 78, []string{"status"}},
		{"/scale", 79, []string{"spec"}},
	} {
		t.Run("podcliquesets"+tc.endpoint, func(t *testing.T) {
			before, after := ns.Set("llm"), &grovev1alpha1.PodCliqueSet{}
			client := as(t, right{"patch", tc.endpoint}.user(ns))
			ns.Eventually(time.Minute, func(ctx context.Context) error {
				result := client.Patch(types.MergePatchType).Namespace(ns.Name).Resource("podcliquesets").Name("llm").SubResource(strings.TrimPrefix(tc.endpoint, "/")).
					Body(fmt.Appendf(nil, everyPart, owner, tc.generation)).Do(ctx)
				if tc.endpoint == "/scale" {
					return result.Error()
				}
				// A controller may write its own before it can be read.
				return result.Into(after)
			})
			if tc.endpoint == "/scale" {
				after = ns.Set("llm")
			}
			var written []string
			if after.Labels["forged"] != "" || after.Annotations["forged"] != "" || len(after.Finalizers) != len(before.Finalizers) || len(after.OwnerReferences) > 0 {
				written = append(written, "metadata")
			}
			if after.Spec.Replicas != before.Spec.Replicas {
				written = append(written, "spec")
			}
			if ptr.Deref(after.Status.ObservedGeneration, 0) == tc.generation {
				written = append(written, "status")
			}
			if !slices.Equal(written, tc.writes) {
				t.Errorf("writes %v, want %v", written, tc.writes)
			}
			restore := `{"metadata":{"labels":{"forged":null},"annotations":{"forged":null},"finalizers":["` + strings.Join(before.Finalizers, `","`) + `"],"ownerReferences":null},"spec":{"replicas":0}}`
			if _, err := sets.Patch(t.Context(), "llm", types.MergePatchType, []byte(restore), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// S4: what the cluster's roles for people come to, of every kind, verb and endpoint.
func TestTheRolesForPeopleGrantWhatTheyAreFor(t *testing.T) {
	ns := cluster.Namespace(t)
	reads := []string{"get", "list", "watch"}
	writes := []string{"create", "update", "patch", "delete", "deletecollection"}
	resources := map[string][]string{
		"grove.io": {
			"podcliquesets", "podcliquesets/status", "podcliquesets/scale", "podcliques", "podcliques/status", "podcliques/scale",
			"podcliquescalinggroups", "podcliquescalinggroups/status", "podcliquescalinggroups/scale",
			"startgates", "startgates/status", "clustertopologybindings", "clustertopologybindings/status",
		},
		"scheduler.grove.io": {"podgangs", "podgangs/status", "podgroups", "podgroups/status"},
	}
	view := func(verb, resource string) bool {
		return slices.Contains(reads, verb) && resource != "clustertopologybindings/status"
	}
	edit := func(verb, resource string) bool {
		switch {
		case view(verb, resource):
			return true
		case resource == "podcliquesets" || resource == "podgroups":
			return slices.Contains(writes, verb)
		default:
			return strings.HasSuffix(resource, "/scale") && (verb == "update" || verb == "patch")
		}
	}
	override := func(verb, resource string) bool {
		managed := []string{"podcliques", "podcliquescalinggroups", "startgates", "podgangs", "podgroups"}
		return slices.Contains(managed, resource)
	}
	for role, allows := range map[string]func(verb, resource string) bool{
		"view": view, "edit": edit, "admin": edit, "copse-view": view, "copse-override": override,
		// Of a role that says nothing of our kinds.
		"system:node-proxier": func(string, string) bool { return false },
	} {
		t.Run(role, func(t *testing.T) {
			user := ns.Name + ":" + strings.ReplaceAll(role, ":", "-")
			ns.Kubectl("create", "rolebinding", strings.ReplaceAll(role, ":", "-"), "--clusterrole="+role, "--user="+user)
			may := func(ctx context.Context, verb, group, resource string) bool {
				attributes := &authorizationv1.ResourceAttributes{Namespace: ns.Name, Verb: verb, Group: group}
				attributes.Resource, attributes.Subresource, _ = strings.Cut(resource, "/")
				review, err := cluster.Kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
					Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: attributes},
				}, metav1.CreateOptions{})
				if err != nil {
					t.Fatal(err)
				}
				return review.Status.Allowed
			}
			if allows("get", "podcliques") {
				ns.Eventually(time.Minute, func(ctx context.Context) error {
					if !may(ctx, "get", "grove.io", "podcliques") {
						return fmt.Errorf("%s does not act yet", role)
					}
					return nil
				})
			}
			for group, all := range resources {
				for _, resource := range all {
					for _, verb := range slices.Concat(reads, writes, []string{"override"}) {
						if got, want := may(t.Context(), verb, group, resource), allows(verb, resource); got != want {
							t.Errorf("may %s %s.%s: %t, want %t", verb, resource, group, got, want)
						}
					}
				}
			}
		})
	}
}

// S6: who may create sets and no pods gets no pod that the namespace's security profile
// forbids, and is told so when they apply it.
func TestASetMakesNoPodThatItsNamespaceForbids(t *testing.T) {
	ns := cluster.Namespace(t)
	ns.Kubectl("label", "namespace", ns.Name, "pod-security.kubernetes.io/enforce=restricted")
	dev := account(ns, "dev", `{apiGroups: [grove.io], resources: [podcliquesets], verbs: [get, create, patch]}`)
	may(ns, dev, "create", "podcliquesets.grove.io")
	if out, err := ns.TryKubectl("auth", "can-i", "create", "pods", dev); err == nil {
		t.Fatalf("the test proves nothing: %s", out)
	}
	const pod = "containers: [{name: main, image: example.com/router}]"
	for name, spec := range map[string]string{
		"privileged":    "containers: [{name: main, image: i, securityContext: {privileged: true}}]",
		"host-path":     pod + "\n            volumes: [{name: host, hostPath: {path: /}}]",
		"host-network":  pod + "\n            hostNetwork: true",
		"host-pid":      pod + "\n            hostPID: true",
		"capabilities":  "containers: [{name: main, image: i, securityContext: {capabilities: {add: [SYS_ADMIN]}}}]",
		"only-ordinary": pod,
	} {
		manifest := replaceOnce(t, strings.Replace(inference, "name: llm", "name: "+name, 1), pod, spec)
		contains(t, ns.Apply(manifest, dev), "Warning: spec.template.cliques[1]: a pod of clique router would be refused now")
	}
	for _, name := range []string{"privileged", "host-path", "host-network", "host-pid", "capabilities", "only-ordinary"} {
		ns.Eventually(time.Minute, func(context.Context) error {
			out, err := ns.TryKubectl("get", "pclq", name+"-0-router", "-o", `jsonpath={.status.conditions[?(@.type=="PodCreationFailed")].message}`)
			if err != nil || !strings.Contains(out, "violates PodSecurity") {
				return fmt.Errorf("%s: the PodClique says %q", name, out)
			}
			return nil
		})
	}
	if out := ns.Kubectl("get", "pods", "-o", "name"); out != "" {
		t.Errorf("there are pods: %s", out)
	}
	fits := replaceOnce(t, strings.Replace(inference, "name: llm", "name: fits", 1), "- name: server\n        spec:\n          replicas: 2\n          podSpec:\n            containers: [{name: main, image: example.com/server}]\n      ", "")
	const secured = `securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
            containers: [{name: main, image: i, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]`
	// What a set may ask for like any workload, as the documentation says.
	for _, spec := range []string{"serviceAccountName: default", "tolerations: [{operator: Exists}]"} {
		if out := ns.Apply(replaceOnce(t, fits, pod, spec+"\n            "+secured), dev, "--dry-run=server"); strings.Contains(out, "Warning") {
			t.Errorf("%s is warned of: %s", spec, out)
		}
	}
	// So is a class of the system, which the cluster's scheduler takes for no gang.
	critical := ns.Apply(replaceOnce(t, fits, pod, "priorityClassName: system-cluster-critical\n            "+secured), dev, "--dry-run=server")
	contains(t, critical, `have PriorityClass "system-cluster-critical" and a priority above 1000000000`)
	if strings.Count(critical, "Warning") != 1 {
		t.Errorf("the class is warned of: %s", critical)
	}
	// What fits is made: the profile refuses, and not something else.
	contains(t, ns.ApplyFails(replaceOnce(t, fits, pod, "nodeName: node-0\n            "+secured), dev), "podSpec.nodeName")
	if out := ns.Apply(replaceOnce(t, fits, pod, secured), dev); strings.Contains(out, "Warning") {
		t.Errorf("a set that fits is warned of: %s", out)
	}
	ns.WaitForPods(1, time.Minute, framework.IsReady)
}
