package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// granted lists what the roles of a service account come to in the cluster, one verb on
// one resource in a line.
func granted(t *testing.T, account string) []string {
	t.Helper()
	var lines []string
	add := func(where string, rules []rbacv1.PolicyRule) {
		for _, rule := range rules {
			if len(rule.NonResourceURLs) > 0 {
				t.Errorf("%s may use the paths %v", account, rule.NonResourceURLs)
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					if group != "" {
						resource += "." + group
					}
					names := rule.ResourceNames
					if len(names) == 0 {
						names = []string{""}
					}
					for _, name := range names {
						for _, verb := range rule.Verbs {
							lines = append(lines, permission(where, resource, name, verb))
						}
					}
				}
			}
		}
	}
	bound := func(subjects []rbacv1.Subject) bool {
		return slices.Contains(subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: systemNamespace})
	}
	rbac := cluster.Kube.RbacV1()
	clusterRole := func(name string) []rbacv1.PolicyRule {
		role, err := rbac.ClusterRoles().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return role.Rules
	}
	everywhere, err := rbac.ClusterRoleBindings().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, binding := range everywhere.Items {
		if bound(binding.Subjects) {
			add("everywhere", clusterRole(binding.RoleRef.Name))
		}
	}
	inNamespaces, err := rbac.RoleBindings(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, binding := range inNamespaces.Items {
		// Tests lend the server rights in their own namespaces.
		if !bound(binding.Subjects) || strings.HasPrefix(binding.Namespace, "test-") {
			continue
		}
		if binding.RoleRef.Kind == "ClusterRole" {
			add(binding.Namespace, clusterRole(binding.RoleRef.Name))
			continue
		}
		role, err := rbac.Roles(binding.Namespace).Get(t.Context(), binding.RoleRef.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		add(binding.Namespace, role.Rules)
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

func permission(where, resource, name, verb string) string {
	return strings.TrimSpace(fmt.Sprintf("%s: %s %s %s", where, verb, resource, name))
}

// documented lists the same of the table in docs/security.md.
func documented(t *testing.T, account string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(cluster.Root(), "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	resource := regexp.MustCompile("`([^`]+)`(?: named `([^`]+)`)?")
	var lines []string
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 7 || strings.Trim(cells[1], " `") != account {
			continue
		}
		for _, match := range resource.FindAllStringSubmatch(cells[3], -1) {
			for verb := range strings.SplitSeq(cells[4], ",") {
				lines = append(lines, permission(strings.Trim(cells[2], " `"), match[1], match[2], strings.TrimSpace(verb)))
			}
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// S11: what the programs may do grows only together with the documentation of it.
func TestTheProgramsMayDoWhatIsDocumentedAndNoMore(t *testing.T) {
	for _, account := range []string{"copse-apiserver", "copse-controller-manager"} {
		t.Run(account, func(t *testing.T) {
			want := documented(t, account)
			if len(want) == 0 {
				t.Fatal("the table is not where this test looks for it")
			}
			if diff := cmp.Diff(want, granted(t, account)); diff != "" {
				t.Errorf("permissions (-docs/security.md +cluster):\n%s", diff)
			}
		})
	}
}

// S11: whatever is documented, these are never theirs, be it by groups or by other roles.
func TestTheProgramsHaveNoWayToMoreRights(t *testing.T) {
	type action struct{ group, resource, subresource, verb string }
	var never []action
	for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete"} {
		never = append(never, action{"", "secrets", "", verb})
	}
	for _, verb := range []string{"create", "update", "patch", "delete", "bind", "escalate"} {
		for _, resource := range []string{"roles", "clusterroles", "rolebindings", "clusterrolebindings"} {
			never = append(never, action{rbacv1.GroupName, resource, "", verb})
		}
		for _, resource := range []string{
			"mutatingwebhookconfigurations", "validatingwebhookconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings",
			"mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
		} {
			never = append(never, action{"admissionregistration.k8s.io", resource, "", verb})
		}
		never = append(never,
			action{"", "serviceaccounts", "", verb}, action{"", "serviceaccounts", "token", verb}, action{"", "nodes", "", verb}, action{"", "namespaces", "", verb},
			action{"apiregistration.k8s.io", "apiservices", "", verb}, action{"apiextensions.k8s.io", "customresourcedefinitions", "", verb},
			action{"certificates.k8s.io", "certificatesigningrequests", "approval", verb}, action{"", "resourcequotas", "", verb})
	}
	for _, verb := range []string{"create", "update", "patch", "delete"} {
		// The controller-manager reads the owners of pods.
		never = append(never, action{"apps", "deployments", "", verb}, action{"batch", "jobs", "", verb}, action{"kubeflow.org", "pytorchjobs", "", verb})
	}
	never = append(never,
		action{"", "pods", "exec", "create"}, action{"", "pods", "attach", "create"}, action{"", "pods", "portforward", "get"}, action{"", "pods", "proxy", "get"},
		action{"", "pods", "ephemeralcontainers", "update"}, action{"", "pods", "status", "update"}, action{"", "nodes", "proxy", "get"},
		action{"", "users", "", "impersonate"}, action{"", "groups", "", "impersonate"}, action{"", "serviceaccounts", "", "impersonate"}, action{"*", "*", "", "*"},
		// A server that could override would protect nothing from whoever makes use of it.
		action{"grove.io", "podcliquesets", "", "create"}, action{"grove.io", "podcliquesets", "", "delete"})
	server := append(slices.Clone(never),
		action{"grove.io", "podcliques", "", "override"}, action{"", "pods", "", "update"}, action{"", "pods", "", "delete"}, action{"", "configmaps", "", "get"})
	for account, actions := range map[string][]action{"copse-controller-manager": never, "copse-apiserver": server} {
		t.Run(account, func(t *testing.T) {
			for _, a := range actions {
				review, err := cluster.Kube.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
					Spec: authorizationv1.SubjectAccessReviewSpec{
						User:   "system:serviceaccount:" + systemNamespace + ":" + account,
						Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + systemNamespace, "system:authenticated"},
						ResourceAttributes: &authorizationv1.ResourceAttributes{
							Namespace: systemNamespace, Verb: a.verb, Group: a.group, Resource: a.resource, Subresource: a.subresource,
						},
					},
				}, metav1.CreateOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if review.Status.Allowed {
					t.Errorf("may %+v: %s", a, review.Status.Reason)
				}
			}
		})
	}
}
