package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/podgrouper"
)

// The group has the owner, the minimum and the class of its workload, also when they change.
func TestAGroupFollowsItsWorkload(t *testing.T) {
	t.Parallel()
	ns := groupedNamespace(t)
	uid := ns.gang("bert", ", labels: {priorityClassName: e2e-gang, team: a}", "{replicas: 4, minAvailable: 2}")
	name := nameOf("bert", uid)
	ns.create(member("bert-0", "bert", uid, inClass("e2e-gang")), member("bert-1", "bert", uid, inClass("e2e-gang")))

	owner := []metav1.OwnerReference{{APIVersion: "podgroups.example.com/v1", Kind: "Gang", Name: "bert", UID: uid}}
	group := ns.group(name, inPhase(schedulerv1alpha1.PodGroupRunning))
	if err := errors.Join(needing(2)(group), having("Scheduled")(group), having("Satisfied")(group)); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(owner, group.OwnerReferences); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
	if group.Spec.PriorityClassName != "e2e-gang" || group.Labels["team"] != "a" || group.Annotations[podgrouper.GroupedByAnnotation] != podgrouper.GroupedByValue {
		t.Errorf("class %q, labels %v, annotations %v", group.Spec.PriorityClassName, group.Labels, group.Annotations)
	}
	native := ns.native(name, counting(2))
	if diff := cmp.Diff(owner, native.OwnerReferences); diff != "" {
		t.Errorf("owners of the scheduler's group (-want +got):\n%s", diff)
	}
	if native.Spec.PriorityClassName != "e2e-gang" || native.Spec.DisruptionMode == nil || native.Spec.DisruptionMode.All == nil {
		t.Errorf("the scheduler's group is %+v", native.Spec)
	}

	ns.Kubectl("patch", "gangs.podgroups.example.com", "bert", "--type=merge", "-p", `{"spec":{"minAvailable":3},"metadata":{"labels":{"team":null}}}`)
	ns.group(name, func(group *schedulerv1alpha1.PodGroup) error {
		if _, kept := group.Labels["team"]; kept {
			return errors.New("a label stays that the workload has no more")
		}
		return needing(3)(group)
	})
	ns.native(name, counting(3))

	// A class cannot change under a group: the pods that it has keep theirs.
	ns.Kubectl("label", "gangs.podgroups.example.com", "bert", "--overwrite", "priorityClassName=e2e-other")
	ns.group(name, func(group *schedulerv1alpha1.PodGroup) error { return says(group, "Unsupported", `than "e2e-gang"`) })

	ns.Kubectl("delete", "gangs.podgroups.example.com", "bert")
	ns.isGone(name)
}

// What users change about a group is theirs, and a group that is deleted comes back while
// its pods live.
func TestUsersChangeAGroup(t *testing.T) {
	t.Parallel()
	ns := groupedNamespace(t)
	uid := ns.gang("bert", "", "{replicas: 2}")
	name := nameOf("bert", uid)
	ns.create(member("bert-0", "bert", uid), member("bert-1", "bert", uid))
	before := ns.group(name, inPhase(schedulerv1alpha1.PodGroupRunning))

	ns.Kubectl("patch", "podgroups.scheduler.grove.io", name, "--type=merge", "-p", `{"spec":{"queue":"mine","markUnschedulable":false,"schedulingBackoff":1,"minMember":9}}`)
	ns.Kubectl("patch", "gangs.podgroups.example.com", "bert", "--type=merge", "-p", `{"spec":{"replicas":3}}`)
	group := ns.group(name, func(group *schedulerv1alpha1.PodGroup) error {
		return errors.Join(needing(3)(group), says(group, "Unsupported", "queue"), says(group, "Unsupported", "markUnschedulable"), says(group, "Unsupported", "schedulingBackoff"))
	})
	if spec := group.Spec; spec.Queue != "mine" || *spec.MarkUnschedulable || *spec.SchedulingBackoff != 1 {
		t.Errorf("got %+v", spec)
	}

	ns.Kubectl("delete", "podgroups.scheduler.grove.io", name)
	ns.group(name, func(group *schedulerv1alpha1.PodGroup) error {
		if group.UID == before.UID {
			return errors.New("it is not deleted yet")
		}
		return needing(3)(group)
	})
	ns.native(name, func(native *schedulingv1beta1.PodGroup) error {
		if native.DeletionTimestamp != nil {
			t.Error("the scheduler's group went with it")
		}
		return nil
	})
}

// Nobody but us says that a group is not complete: the scheduler is silent.
func TestAGroupThatIsNotCompleteSaysSo(t *testing.T) {
	t.Parallel()
	ns := groupedNamespace(t)
	uid := ns.gang("bert", "", "{replicas: 4}")
	name := nameOf("bert", uid)
	for i := range 3 {
		ns.create(member(fmt.Sprintf("bert-%d", i), "bert", uid))
	}
	group := ns.group(name, explaining("WaitingForPods", &schedulerv1alpha1.PodDetails{Have: 3, Need: 4}))
	if err := inPhase(schedulerv1alpha1.PodGroupPending)(group); err != nil || group.Status.Pending != 3 {
		t.Errorf("%v; pending %d", err, group.Status.Pending)
	}
	ns.Never(time.Second, func(ctx context.Context) error { return anyPlaced(ctx, ns) })

	ns.create(member("bert-3", "bert", uid))
	group = ns.group(name, func(group *schedulerv1alpha1.PodGroup) error {
		if group.Status.Running != 4 {
			return fmt.Errorf("%d run", group.Status.Running)
		}
		return errors.Join(inPhase(schedulerv1alpha1.PodGroupRunning)(group), having("Scheduled")(group))
	})
	if len(group.Status.SchedulingConditions) > 0 {
		t.Errorf("it runs, and says %+v", group.Status.SchedulingConditions)
	}
}

func anyPlaced(ctx context.Context, ns grouped) error {
	pods, err := ns.Pods(ctx)
	if err != nil {
		return err
	}
	for i := range pods {
		if pods[i].Spec.NodeName != "" {
			return fmt.Errorf("pod %s has a node", pods[i].Name)
		}
	}
	return nil
}

// A group that does not fit is placed as a whole or not at all, and says why not.
func TestAGroupThatDoesNotFitSaysSo(t *testing.T) {
	t.Parallel()
	ns := groupedNamespace(t)
	const units = "example.com/group-unit"
	addNode(t, "group-1", units, "2")
	uid := ns.gang("bert", "", "{replicas: 3}")
	for i := range 3 {
		ns.create(member(fmt.Sprintf("bert-%d", i), "bert", uid, asking(units, 1)))
	}
	group := ns.group(nameOf("bert", uid), explaining("NotEnoughResources", nil))
	details := group.Status.SchedulingConditions[0].Reasons[0].Details
	if details == nil || requested(details.ResourceDetails.Requested, units) != 3 {
		t.Errorf("details %+v", details)
	}
	if requested(group.Status.ResourcesStatus.Requested, units) != 3 {
		t.Errorf("requested %v", group.Status.ResourcesStatus)
	}
	ns.Never(time.Second, func(ctx context.Context) error { return anyPlaced(ctx, ns) })
	ns.Kubectl("patch", "gangs.podgroups.example.com", "bert", "--type=merge", "-p", `{"spec":{"minAvailable":2}}`)
	ns.group(nameOf("bert", uid), inPhase(schedulerv1alpha1.PodGroupRunning))
}

// kube-scheduler takes no group whose pods differ in what they have to have in common. A pod
// that brings its own group past the webhook can do that.
func TestAGroupOfPodsThatDoNotBelongTogetherSaysSo(t *testing.T) {
	t.Parallel()
	ns := groupedNamespace(t)
	uid := ns.gang("bert", "", "{replicas: 2}")
	ns.create(member("bert-0", "bert", uid), member("bert-1", "bert", uid, inClass("e2e-gang")))
	ns.group(nameOf("bert", uid), explaining("MemberMismatch", nil))
	ns.Never(time.Second, func(ctx context.Context) error { return anyPlaced(ctx, ns) })
}

// A pod that takes the place of another is placed though the group has finished in part
// (kubernetes/kubernetes#142330).
func TestAReplacementInAGroupThatHasFinishedInPart(t *testing.T) {
	t.Parallel()
	ns := groupedNamespace(t)
	uid := ns.gang("bert", "", "{replicas: 3}")
	name := nameOf("bert", uid)
	ns.create(member("bert-0", "bert", uid, exiting), member("bert-1", "bert", uid, exiting), member("bert-2", "bert", uid))
	ns.group(name, func(group *schedulerv1alpha1.PodGroup) error {
		if group.Status.Succeeded != 2 || group.Status.Running != 1 {
			return fmt.Errorf("%d succeeded, %d run", group.Status.Succeeded, group.Status.Running)
		}
		return inPhase(schedulerv1alpha1.PodGroupRunning)(group)
	})
	ns.delete("bert-2")
	ns.create(member("bert-3", "bert", uid, exiting))
	ns.group(name, inPhase(schedulerv1alpha1.PodGroupFinished))
	ns.native(name, counting(1))

	// It is started once more, and waits as a whole.
	for _, pod := range []string{"bert-0", "bert-1", "bert-3"} {
		ns.delete(pod)
	}
	ns.native(name, counting(3))
	ns.create(member("bert-4", "bert", uid))
	ns.group(name, explaining("WaitingForPods", &schedulerv1alpha1.PodDetails{Have: 1, Need: 3}))
	ns.create(member("bert-5", "bert", uid), member("bert-6", "bert", uid))
	ns.group(name, inPhase(schedulerv1alpha1.PodGroupRunning))
}

// Pods that were made before their namespace was grouped are left alone, and their group
// says that they are not in it.
func TestPodsFromBeforeAreNotAttachable(t *testing.T) {
	t.Parallel()
	ns := groupedNamespace(t)
	ns.disable()
	uid := ns.gang("bert", "", "{replicas: 2}")
	name := nameOf("bert", uid)
	ns.create(ungrouped("bert-0", "bert", uid), ungrouped("bert-1", "bert", uid))
	ns.WaitForPods(2, time.Minute, func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" })
	ns.enable()
	ns.group(name, func(group *schedulerv1alpha1.PodGroup) error {
		return errors.Join(says(group, "NotAttachable", "2 of 2 pods"), inPhase(schedulerv1alpha1.PodGroupRunning)(group))
	})
	pods, err := ns.Pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods {
		if len(pods[i].Annotations) > 0 {
			t.Errorf("pod %s was changed: %v", pods[i].Name, pods[i].Annotations)
		}
	}
	native, err := cluster.Kube.SchedulingV1beta1().PodGroups(ns.Name).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(native.Items) > 0 {
		t.Errorf("groups of the scheduler's: %v, %v", native, err)
	}
}

// Workloads of the same name in two namespaces have nothing to do with each other, and pods
// of another scheduler, or of a namespace that is not grouped, are nobody's business.
func TestWhatIsNotGrouped(t *testing.T) {
	t.Parallel()
	one, two := groupedNamespace(t), groupedNamespace(t)
	uids := map[string]types.UID{}
	for _, ns := range []grouped{one, two} {
		uid := ns.gang("bert", "", "{replicas: 1}")
		uids[ns.Name] = uid
		ns.create(member("bert-0", "bert", uid))
		ns.group(nameOf("bert", uid), inPhase(schedulerv1alpha1.PodGroupRunning))
	}
	if uids[one.Name] == uids[two.Name] {
		t.Error("the workloads are the same")
	}
	one.create(ungrouped("other", "bert", uids[one.Name], func(pod *corev1.Pod) { pod.Spec.SchedulerName = "somebody-elses" }))
	two.disable()
	two.create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bare"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}}}})
	two.WaitForPods(2, time.Minute, func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" })
	for _, ns := range []grouped{one, two} {
		groups, err := cluster.Copse.SchedulerV1alpha1().PodGroups(ns.Name).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(groups.Items) != 1 {
			t.Errorf("%s has %d groups: %v", ns.Name, len(groups.Items), err)
		}
	}
}

// A PodGroup that somebody made by hand is placed as it says, and not changed.
func TestAPodGroupThatWasMadeByHand(t *testing.T) {
	t.Parallel()
	ns := groupedNamespace(t)
	ns.Apply("apiVersion: scheduler.grove.io/v1alpha1\nkind: PodGroup\nmetadata: {name: mine}\nspec: {minMember: 2, priorityClassName: e2e-gang}\n")
	group := ns.group("mine", func(*schedulerv1alpha1.PodGroup) error { return nil })
	name := podgrouper.NativeName("mine", group.UID)
	pod := func(podName string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: podName, Annotations: map[string]string{podgrouper.PodGroupAnnotation: "mine"}},
			Spec: corev1.PodSpec{
				PriorityClassName: "e2e-gang", Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}},
				SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: &name},
			},
		}
	}
	ns.create(pod("a"))
	ns.group("mine", explaining("WaitingForPods", &schedulerv1alpha1.PodDetails{Have: 1, Need: 2}))
	ns.create(pod("b"))
	after := ns.group("mine", inPhase(schedulerv1alpha1.PodGroupRunning))
	if diff := cmp.Diff(group.Spec, after.Spec); diff != "" || len(after.Annotations) != len(group.Annotations) || len(after.OwnerReferences) > 0 {
		t.Errorf("it was changed: %s", diff)
	}
	native := ns.native(name, counting(2))
	if ref := metav1.GetControllerOf(native); ref == nil || ref.UID != group.UID || native.Spec.PriorityClassName != "e2e-gang" {
		t.Errorf("the scheduler's group is of %v, class %q", native.OwnerReferences, native.Spec.PriorityClassName)
	}
}

// A pod that nothing owns is a group of its own, by the name that it was admitted with; the
// group goes with it.
func TestAPodAlone(t *testing.T) {
	t.Parallel()
	ns := groupedNamespace(t)
	name := "pg-alone-x7k2p"
	pod := member("alone", "none", "none")
	pod.OwnerReferences, pod.Annotations[podgrouper.PodGroupAnnotation], pod.Spec.SchedulingGroup.PodGroupName = nil, name, &name
	ns.create(pod)
	group := ns.group(name, inPhase(schedulerv1alpha1.PodGroupRunning))
	if owners := group.OwnerReferences; len(owners) != 1 || owners[0].Kind != "Pod" || owners[0].Name != "alone" {
		t.Errorf("owners %v", owners)
	}
	ns.delete("alone")
	ns.isGone(name)
}

// Kubernetes' scheduler takes no group of a class of the system, so a pod of one is placed without:
// in its group it would wait for ever.
func TestAPodOfAClassOfTheSystemIsPlaced(t *testing.T) {
	t.Parallel()
	ns := groupedNamespace(t)
	workload := func(name, class string) string {
		return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  selector: {matchLabels: {of: %[1]s}}
  template:
    metadata: {labels: {of: %[1]s}}
    spec: {priorityClassName: %[2]s, containers: [{name: main, image: example.com/main}]}
`, name, class)
	}
	ns.Apply(workload("web", "e2e-gang"))
	ns.WaitForPods(1, time.Minute, func(pod *corev1.Pod) bool { return pod.Spec.SchedulingGroup != nil })
	ns.Apply(workload("dns", "system-cluster-critical"))
	for _, pod := range ns.WaitForPods(2, time.Minute, func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" }) {
		of := pod.Labels["of"]
		if grouped := pod.Spec.SchedulingGroup != nil; grouped != (of == "web") || (of == "dns" && *pod.Spec.Priority != 2_000_000_000) {
			t.Errorf("the pod of %s has priority %d and the group %v", of, *pod.Spec.Priority, pod.Spec.SchedulingGroup)
		}
	}
}

// A PodGroup that somebody made by hand is KAI's as well, when its pods are.
func TestAPodGroupThatWasMadeByHandForKAI(t *testing.T) {
	ns := groupedNamespace(t)
	ns.installKAI()
	ns.Apply("apiVersion: scheduler.grove.io/v1alpha1\nkind: PodGroup\nmetadata: {name: mine}\nspec: {minMember: 2, queue: research}\n")
	ns.create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{podgrouper.PodGroupAnnotation: "mine"}},
		Spec:       corev1.PodSpec{SchedulerName: "kai-scheduler", Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}}},
	})
	ns.Eventually(30*time.Second, func(context.Context) error {
		out, err := ns.TryKubectl("get", "podgroups.scheduling.run.ai", "mine", "-o", "jsonpath={.spec.minMember} {.spec.queue} {.metadata.ownerReferences[0].kind}")
		if err == nil && out != "2 research PodGroup" {
			return fmt.Errorf("got %q", out)
		}
		return err
	})
	ns.group("mine", inPhase(schedulerv1alpha1.PodGroupPending))
	// KAI explains, and the PodGroup has its words.
	ns.Kubectl("patch", "podgroups.scheduling.run.ai", "mine", "--subresource=status", "--type=merge", "-p",
		`{"status":{"schedulingConditions":[{"type":"UnschedulableOnNodePool","status":"True","transitionID":"7","reasons":[{"reason":"OverLimit","message":"too much"}]}]}}`)
	ns.group("mine", explaining("OverLimit", nil))
}

// A workload of Kubernetes' own, with nobody's help: it waits as a whole, and is a gang.
func TestAJobIsAGroup(t *testing.T) {
	t.Parallel()
	ns := groupedNamespace(t)
	const units = "example.com/job-unit"
	addNode(t, "job-group-1", units, "2")
	ns.Apply(`
apiVersion: batch/v1
kind: Job
metadata: {name: train, annotations: {scheduler.grove.io/min-member: "3"}}
spec:
  parallelism: 3
  completions: 3
  template:
    metadata: {annotations: {kwok.copse.dev/exit-after: "0"}}
    spec:
      restartPolicy: Never
      tolerations: [{key: example.com/job-unit, operator: Exists}]
      containers: [{name: main, image: example.com/main, resources: {limits: {example.com/job-unit: 1}}}]
`)
	name := nameOf("train", types.UID(ns.Kubectl("get", "job", "train", "-o", "jsonpath={.metadata.uid}")))
	ns.group(name, func(group *schedulerv1alpha1.PodGroup) error {
		return errors.Join(needing(3)(group), explaining("NotEnoughResources", nil)(group))
	})
	ns.native(name, counting(3))
	ns.Never(time.Second, func(ctx context.Context) error { return anyPlaced(ctx, ns) })

	addNode(t, "job-group-2", units, "1")
	ns.WaitFor("job/train", "condition=Complete")
	ns.group(name, func(group *schedulerv1alpha1.PodGroup) error {
		if group.Status.Succeeded != 3 {
			return fmt.Errorf("%d succeeded", group.Status.Succeeded)
		}
		return errors.Join(inPhase(schedulerv1alpha1.PodGroupFinished)(group), having("Scheduled")(group))
	})
}
