package e2e

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/podgrouper"
)

// service makes a Deployment whose pods run, and then asks for a minimum. It returns the name
// of the group that its pods are in from then on.
func (n grouped) service() string {
	n.t.Helper()
	n.Apply("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 4, selector: {matchLabels: {app: web}}, " +
		"template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: example.com/main}]}}}\n")
	n.Kubectl("rollout", "status", "deployment/web", "--timeout=60s")
	n.Kubectl("annotate", "deployment", "web", podgrouper.MinMemberAnnotation+"=4")
	return nameOf("web", types.UID(n.Kubectl("get", "deployment", "web", "-o", "jsonpath={.metadata.uid}")))
}

// The pods of a Deployment that is given a minimum are each in a group of their own until they
// are replaced. Those that replace them are not held until all have come.
func TestADeploymentThatIsGivenAMinimumIsRolledOut(t *testing.T) {
	t.Parallel()
	ns := groupedNamespace(t)
	name := ns.service()
	ns.Kubectl("rollout", "restart", "deployment/web")
	ns.Kubectl("rollout", "status", "deployment/web", "--timeout=60s")
	ns.group(name, func(group *schedulerv1alpha1.PodGroup) error {
		if group.Status.Running != 4 {
			return fmt.Errorf("%d pods run", group.Status.Running)
		}
		return errors.Join(needing(4)(group), inPhase(schedulerv1alpha1.PodGroupRunning)(group))
	})
	// From now on it is a gang.
	ns.native(name, counting(4))
	ns.Kubectl("set", "image", "deployment/web", "main=example.com/main:2")
	ns.Kubectl("rollout", "status", "deployment/web", "--timeout=60s")
	ns.native(name, counting(4))
}

func TestAPodOfADeploymentThatIsGivenAMinimumIsReplaced(t *testing.T) {
	t.Parallel()
	ns := groupedNamespace(t)
	name := ns.service()
	pods, err := ns.Pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ns.delete(pods[0].Name)
	// It runs beside three that are in groups of their own.
	ns.group(name, func(group *schedulerv1alpha1.PodGroup) error {
		if group.Status.Running != 1 {
			return fmt.Errorf("%d pods run", group.Status.Running)
		}
		return errors.Join(needing(4)(group), inPhase(schedulerv1alpha1.PodGroupRunning)(group), says(group, "NotAttachable", "3 pods"))
	})
	ns.native(name, counting(1))
}
