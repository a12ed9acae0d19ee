package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/podgrouper"
)

// seedRule is a workload of seed 004, and the group that its pods are to be in.
type seedRule struct {
	workload string
	// pods are made by hand for a kind without a controller here.
	kind, name string
	pods       int
	// owner is the kind of the group's owner, minimum and class are the group's.
	owner          string
	minimum, class string
	groups         int
}

// seedRules are the examples of seed 004, for pods of a scheduler.
func seedRules(scheduler string) map[string]seedRule {
	spec := fmt.Sprintf("schedulerName: %s, containers: [{name: main, image: example.com/main}]", scheduler)
	mpi := func(name, more string) string {
		return fmt.Sprintf("apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: %s}\nspec: {%smpiReplicaSpecs: {Launcher: {replicas: 1}, Worker: {replicas: 3}}}\n", name, more)
	}
	return map[string]seedRule{
		"a Job: one group, and one pod is enough": {
			workload: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: job}\nspec: {parallelism: 2, completions: 2, template: {spec: {restartPolicy: Never, " + spec + "}}}\n",
			owner:    "Job", minimum: "1", groups: 1,
		},
		"a Deployment: a group for each pod": {
			workload: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 2, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {" + spec + "}}}\n",
			owner:    "Pod", minimum: "1", groups: 2,
		},
		"a pod without an owner": {
			workload: "apiVersion: v1\nkind: Pod\nmetadata: {name: alone}\nspec: {" + spec + "}\n",
			owner:    "Pod", minimum: "1", groups: 1,
		},
		"an MPIJob: all replicas":     {workload: mpi("all", ""), kind: "MPIJob", name: "all", pods: 2, owner: "MPIJob", minimum: "4", groups: 1},
		"an MPIJob: its minAvailable": {workload: mpi("some", "runPolicy: {schedulingPolicy: {minAvailable: 2}}, "), kind: "MPIJob", name: "some", pods: 2, owner: "MPIJob", minimum: "2", groups: 1},
		"the priority that the owner's label asks for": {
			workload: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: urgent, labels: {priorityClassName: e2e-gang}}\nspec: {template: {spec: {restartPolicy: Never, " + spec + "}}}\n",
			owner:    "Job", minimum: "1", class: "e2e-gang", groups: 1,
		},
		"the priority that the pod's label asks for": {
			workload: "apiVersion: v1\nkind: Pod\nmetadata: {name: vip, labels: {priorityClassName: e2e-gang}}\nspec: {" + spec + "}\n",
			owner:    "Pod", minimum: "1", class: "e2e-gang", groups: 1,
		},
	}
}

// Each rule that seed 004 names holds with both schedulers that take groups: with Kubernetes'
// own the PodGroup is ours, with KAI it is KAI's object.
func TestTheRulesOfTheSeed(t *testing.T) {
	t.Parallel()
	for scheduler, resource := range map[string]string{"default-scheduler": "podgroups.scheduler.grove.io", "kai-scheduler": "podgroups.scheduling.run.ai"} {
		for name, rule := range seedRules(scheduler) {
			t.Run(scheduler+"/"+name, func(t *testing.T) {
				t.Parallel()
				ns := groupedNamespace(t)
				ns.installKAI()
				ns.applyFile("testdata/mpijob-crd.yaml")
				ns.Anywhere().WaitFor("crd/mpijobs.kubeflow.org", "condition=Established")
				ns.Eventually(time.Minute, func(context.Context) error {
					_, err := ns.TryApply(rule.workload)
					return err
				})
				if rule.pods > 0 {
					ns.podsOf(rule, scheduler)
				}
				want := strings.Repeat(strings.Join([]string{rule.owner, rule.minimum, rule.class}, " ")+"\n", rule.groups)
				ns.Eventually(time.Minute, func(ctx context.Context) error {
					got, err := ns.TryKubectl("get", resource, "-o",
						`jsonpath={range .items[*]}{.metadata.ownerReferences[0].kind} {.spec.minMember} {.spec.priorityClassName}{"\n"}{end}`)
					if err == nil && got != want {
						err = fmt.Errorf("groups are %q, want %q", got, want)
					}
					if err != nil {
						return err
					}
					return ns.allMarked(ctx, scheduler)
				})
			})
		}
	}
}

// podsOf makes pods as the controller of a kind would.
func (n grouped) podsOf(rule seedRule, scheduler string) {
	n.t.Helper()
	uid := types.UID(n.Kubectl("get", strings.ToLower(rule.kind), rule.name, "-o", "jsonpath={.metadata.uid}"))
	for i := range rule.pods {
		n.create(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s-%d", rule.name, i),
				OwnerReferences: []metav1.OwnerReference{
					{APIVersion: "kubeflow.org/v2beta1", Kind: rule.kind, Name: rule.name, UID: uid, Controller: ptr.To(true)},
				},
			},
			Spec: corev1.PodSpec{SchedulerName: scheduler, Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}}},
		})
	}
}

// allMarked says whether each pod is in a group, in the words of its scheduler.
func (n grouped) allMarked(ctx context.Context, scheduler string) error {
	pods, err := n.Pods(ctx)
	if err != nil {
		return err
	}
	for i := range pods {
		pod := &pods[i]
		name := pod.Annotations[podgrouper.PodGroupAnnotation]
		native := pod.Spec.SchedulingGroup != nil && *pod.Spec.SchedulingGroup.PodGroupName == name
		toldOff := pod.Annotations[podgrouper.KAISkipAnnotation] == "true"
		if kai := scheduler == "kai-scheduler"; name == "" || native == kai || toldOff != kai {
			return fmt.Errorf("pod %s has annotations %v and the group %v", pod.Name, pod.Annotations, pod.Spec.SchedulingGroup)
		}
	}
	return nil
}
