package integration

import (
	"testing"

	"github.com/copse-dev/copse/test/framework"
)

// Who may not read a template of another namespace gets no claim that shows it. Everybody else
// may do with the set what they could before.
func TestATemplateOfAnotherNamespaceIsForThoseWhoMayReadIt(t *testing.T) {
	ns, other := cluster.Namespace(t), cluster.Namespace(t)
	stranger := account(ns, "stranger", everything)
	reader := account(ns, "reader", everything)
	allow := func(namespace *framework.Namespace, name string) {
		namespace.Kubectl("create", "role", name, "--verb=get", "--resource=resourceclaimtemplates.resource.k8s.io", "--resource-name="+name)
		namespace.Kubectl("create", "rolebinding", name, "--role="+name, "--serviceaccount="+ns.Name+":reader")
		may(namespace, reader, "get", "resourceclaimtemplates.resource.k8s.io/"+name)
	}
	allow(other, "gpu")
	may(ns, stranger, "create", "podcliquesets.grove.io")
	sharing := func(name, template string) string {
		return replaceOnce(t, replaceOnce(t, inference, "name: llm", "name: "+name), "template:", "template:\n    resourceSharing: [{name: "+template+", namespace: "+other.Name+", scope: AllReplicas}]")
	}

	contains(t, ns.ApplyFails(sharing("llm", "gpu"), stranger), "Forbidden", "spec.template.resourceSharing[0].namespace", `the verb "get"`, `"gpu" in namespace "`+other.Name+`"`)
	contains(t, ns.ApplyFails(sharing("llm", "nic"), reader), "Forbidden", `"nic"`)
	ns.Apply(sharing("llm", "gpu"), reader)
	// The reference is there: it is not the one who scales the set that made it.
	ns.Kubectl("scale", "pcs", "llm", "--replicas=2", stranger)
	ns.Kubectl("label", "pcs", "llm", "team=red", stranger)
	ns.Kubectl("patch", "pcs", "llm", "--type=merge", "-p", `{"spec":{"replicas":1}}`, stranger)
	// A dry run is no way around.
	contains(t, ns.ApplyFails(sharing("more", "gpu"), stranger, "--dry-run=server"), "Forbidden")
}
