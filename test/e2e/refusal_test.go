package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/test/framework"
)

// forbid makes the cluster refuse the creation of something in a namespace, and returns
// what allows it again. tried does it as a dry run, and returns the answer.
func forbid(ns *framework.Namespace, group, resource, message string, tried func(context.Context) string) (allow func()) {
	ns.Apply(fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: none-%[1]s}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
    resourceRules:
      - {apiGroups: [%[2]q], apiVersions: ["*"], operations: [CREATE], resources: [%[3]s]}
  validations:
    - {expression: "false", message: %[4]q}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: none-%[1]s}
spec: {policyName: none-%[1]s, validationActions: [Deny]}
`, ns.Name, group, resource, message))
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		if answer := tried(ctx); !strings.Contains(answer, message) {
			return fmt.Errorf("the policy does not act yet: %s", answer)
		}
		return nil
	})
	return func() {
		ns.Kubectl("delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", "none-"+ns.Name)
	}
}

// A gang whose group a policy of the cluster refuses says so, and starts once it is allowed.
func TestAGangSaysWhyItsGroupIsRefused(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	const message = "no groups in this namespace"
	allow := forbid(ns, "scheduling.k8s.io", "podgroups", message, func(context.Context) string {
		answer, _ := ns.TryApply(`
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: try}
spec: {schedulingPolicy: {gang: {minCount: 1}}}
`, "--dry-run=server")
		return answer
	})
	ns.Apply(training("job", 1, 2, "1s"))
	gangSays(ns, "job-0", schedulerv1alpha1.ReasonPodGroupMissing, message)
	ns.Eventually(time.Minute, func(context.Context) error {
		if waiting := ns.Kubectl("get", "pcs", "job", "-o", "wide"); !strings.Contains(waiting, schedulerv1alpha1.ReasonPodGroupMissing) {
			return fmt.Errorf("the set does not say what it waits for:\n%s", waiting)
		}
		return nil
	})
	allow()
	ns.WaitForPhase("job", "Succeeded", 2*time.Minute)
}

// A gang of a class that no group can have says so, and what to do about it, which helps.
func TestAGangOfAClassOfTheSystemSaysWhatToDo(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	warned, err := ns.TryApply(serving(1, "    priorityClassName: system-cluster-critical", ""))
	if err != nil || !strings.Contains(warned, "a priority above 1000000000") {
		t.Errorf("it is applied with %q, %v", warned, err)
	}
	gangSays(ns, "llm-0", schedulerv1alpha1.ReasonPodGroupMissing,
		`PriorityClass "system-cluster-critical" is above 1000000000, the highest priority that Kubernetes' scheduler takes for a group: name another class`)
	ns.Apply(serving(1, "", ""))
	ns.WaitForPods(servingPods, time.Minute, framework.IsReady)
}

// A gang that the scheduler has placed, and whose pods it cannot bind, says so.
func TestAGangSaysWhyItsPodsAreNotBound(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	const message = "no bindings in this namespace"
	ns.Apply(`
apiVersion: v1
kind: Pod
metadata: {name: try}
spec:
  schedulerName: nobody
  containers: [{name: main, image: example.com/main}]
`)
	allow := forbid(ns, "", "pods/binding", message, func(ctx context.Context) string {
		binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "try"}, Target: corev1.ObjectReference{Kind: "Node", Name: "nowhere"}}
		return fmt.Sprint(cluster.Kube.CoreV1().Pods(ns.Name).Bind(ctx, binding, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}))
	})
	ns.Kubectl("delete", "pod", "try", "--now")
	ns.Apply(training("job", 1, 2, "1s"))
	gangSays(ns, "job-0", schedulerv1alpha1.ReasonSchedulerError, message)
	allow()
	ns.WaitForPhase("job", "Succeeded", 2*time.Minute)
}
