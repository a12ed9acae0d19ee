package topology

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/test/framework"
)

// site is nodes that only the pods of one test go to: they alone have the unit that these ask
// for, and labels of their own.
type site struct {
	name string
	t    *testing.T
}

func (s site) unit() string { return "example.com/" + s.name }
func (s site) rack() string { return s.name + ".example.com/rack" }
func (s site) zone() string { return s.name + ".example.com/zone" }

// addNode adds a node with room for some pods in a rack of a zone.
func (s site) addNode(name, zone, rack, room string) {
	s.t.Helper()
	name = s.name + "-" + name
	resources := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("100"),
		corev1.ResourceName(s.unit()): resource.MustParse(room),
	}
	labels := map[string]string{"type": "kwok", corev1.LabelHostname: name}
	if zone != "" {
		labels[s.zone()] = zone
	}
	if rack != "" {
		labels[s.rack()] = rack
	}
	_, err := cluster.Kube.CoreV1().Nodes().Create(s.t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: s.unit(), Effect: corev1.TaintEffectNoSchedule}}},
		Status:     corev1.NodeStatus{Capacity: resources, Allocatable: resources},
	}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = cluster.Kube.CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{})
	})
}

// binding is a topology of zones and racks.
func (s site) binding() string {
	return fmt.Sprintf(`
apiVersion: grove.io/v1alpha1
kind: ClusterTopologyBinding
metadata: {name: %s}
spec:
  levels:
    - {domain: zone, key: %s}
    - {domain: rack, key: %s}
`, s.name, s.zone(), s.rack())
}

// bind makes the cluster have the topology for as long as the test runs.
func (s site) bind(ns *framework.Namespace) {
	s.t.Helper()
	ns.Anywhere().Apply(s.binding())
	s.t.Cleanup(func() {
		_ = cluster.Copse.GroveV1alpha1().ClusterTopologyBindings().Delete(context.Background(), s.name, metav1.DeleteOptions{})
	})
}

// set is a training set of a leader and two workers, with a constraint on the set.
func (s site) set(constraint string) string {
	pod := fmt.Sprintf(`{tolerations: [{key: %[1]s, operator: Exists}], containers: [{name: main, image: example.com/main, resources: {limits: {%[1]s: 1}}}]}`, s.unit())
	return fmt.Sprintf(`
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: job}
spec:
  replicas: 1
  workloadType: Training
  trainingSpec: {maxRestarts: 1}
  template:
    topologyConstraint: %[1]s
    cliques:
      - name: leader
        annotations: {kwok.copse.dev/exit-after: 1h}
        spec: {replicas: 1, podSpec: %[2]s}
      - name: worker
        annotations: {kwok.copse.dev/exit-after: 1h}
        spec: {replicas: 2, podSpec: %[2]s}
`, constraint, pod)
}

// racks are where pods have been placed.
func (s site) racks(pods []corev1.Pod) map[string]int {
	s.t.Helper()
	out := map[string]int{}
	for i := range pods {
		if pods[i].Spec.NodeName == "" {
			out[""]++
			continue
		}
		node, err := cluster.Kube.CoreV1().Nodes().Get(s.t.Context(), pods[i].Spec.NodeName, metav1.GetOptions{})
		if err != nil {
			s.t.Fatal(err)
		}
		out[node.Labels[s.rack()]]++
	}
	return out
}

// topologyIs waits until a set says whether its constraints are followed.
func topologyIs(ns *framework.Namespace, set string, status metav1.ConditionStatus, reason, words string) {
	ns.Eventually(time.Minute, func(context.Context) error {
		condition := meta.FindStatusCondition(ns.Set(set).Status.Conditions, grovev1alpha1.ConditionTypeTopologyLevelsUnavailable)
		if condition == nil || condition.Status != status || condition.Reason != reason || !strings.Contains(condition.Message, words) {
			return fmt.Errorf("the condition of the set is %+v", condition)
		}
		return nil
	})
}

// A gang that fits into one rack alone lands there, though the others together have more room.
func TestAGangIsPlacedInOneRack(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	s := site{"lands", t}
	s.addNode("a1", "a", "a-1", "2")
	s.addNode("a2", "a", "a-2", "2")
	s.addNode("b1", "b", "b-1", "1")
	s.addNode("b2", "b", "b-1", "2")
	s.bind(ns)
	ns.Apply(s.set("{topologyName: lands, pack: {required: rack}}"))
	pods := ns.WaitForPods(3, time.Minute, framework.IsReady)
	if racks := s.racks(pods); racks["b-1"] != 3 {
		t.Errorf("pods by rack: %v", racks)
	}
	topologyIs(ns, "job", metav1.ConditionFalse, grovev1alpha1.ReasonAllTopologyLevelsAvailable, `"lands"`)

	// The next attempt is placed so as well.
	ns.Kubectl("annotate", "pod", pods[0].Name, "--overwrite", "kwok.copse.dev/exit-code=1", "kwok.copse.dev/exit-after=0s")
	ns.WaitForPods(3, time.Minute, func(pod *corev1.Pod) bool { return framework.IsReady(pod) && inAttempt(pod, "1") })
	if racks := s.racks(podsInAttempt(t, ns, "1")); racks["b-1"] != 3 {
		t.Errorf("pods of the next attempt by rack: %v", racks)
	}
}

// A gang that fits into no rack waits as a whole and says so, and runs once one has room.
func TestAGangThatFitsIntoNoRackWaits(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	s := site{"waits", t}
	s.addNode("a1", "a", "a-1", "2")
	s.addNode("a2", "a", "a-2", "2")
	s.bind(ns)
	ns.Apply(s.set("{topologyName: waits, pack: {required: rack}}"))
	gangSays(ns, "job-0", schedulerv1alpha1.ReasonTopologyUnsatisfied)
	ns.Eventually(time.Minute, func(context.Context) error {
		if out := ns.Kubectl("get", "pcs", "job"); !strings.Contains(out, schedulerv1alpha1.ReasonTopologyUnsatisfied) {
			return fmt.Errorf("kubectl get does not say what the set waits for:\n%s", out)
		}
		return nil
	})
	ns.Never(2*time.Second, func(ctx context.Context) error {
		pods, err := ns.Pods(ctx)
		if err != nil {
			return err
		}
		if racks := s.racks(pods); racks[""] != len(pods) {
			return fmt.Errorf("some have a node: %v", racks)
		}
		return nil
	})
	s.addNode("a3", "a", "a-2", "1")
	pods := ns.WaitForPods(3, time.Minute, framework.IsReady)
	if racks := s.racks(pods); racks["a-2"] != 3 {
		t.Errorf("pods by rack: %v", racks)
	}
}

// A set that comes with its topology is placed by it, though one is seen before the other.
func TestASetThatComesWithItsTopologyIsPlacedByIt(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	s := site{"together", t}
	s.addNode("a1", "a", "a-1", "2")
	s.addNode("a2", "a", "a-2", "3")
	// kubectl applies what it is given in turn.
	s.t.Cleanup(func() {
		_ = cluster.Copse.GroveV1alpha1().ClusterTopologyBindings().Delete(context.Background(), s.name, metav1.DeleteOptions{})
	})
	if out := ns.Apply(s.binding() + "---" + s.set("{topologyName: together, pack: {required: rack}}")); strings.Contains(out, "Warning") {
		t.Errorf("the set is warned about: %s", out)
	}
	pods := ns.WaitForPods(3, time.Minute, framework.IsReady)
	if racks := s.racks(pods); racks["a-2"] != 3 {
		t.Errorf("pods by rack: %v", racks)
	}
}

// Nothing waits for a topology that is not there. The gang says that it is placed without,
// also when the topology has come, until it is made anew.
func TestATopologyThatIsNotThereBlocksNothing(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	s := site{"later", t}
	s.addNode("a1", "a", "a-1", "2")
	s.addNode("a2", "a", "a-2", "2")
	if out := ns.Apply(s.set("{topologyName: later, pack: {required: rack}}")); !strings.Contains(out, `no ClusterTopologyBinding "later"`) {
		t.Errorf("the set is not warned about: %s", out)
	}
	pods := ns.WaitForPods(3, time.Minute, framework.IsReady)
	topologyIs(ns, "job", metav1.ConditionUnknown, grovev1alpha1.ReasonClusterTopologyNotFound, "pods are placed without the constraints")

	s.bind(ns)
	topologyIs(ns, "job", metav1.ConditionFalse, grovev1alpha1.ReasonAllTopologyLevelsAvailable, "until their next attempt: job-0")
	s.addNode("a3", "a", "a-2", "1")
	ns.Kubectl("annotate", "pod", pods[0].Name, "--overwrite", "kwok.copse.dev/exit-code=1", "kwok.copse.dev/exit-after=0s")
	ns.WaitForPods(3, time.Minute, func(pod *corev1.Pod) bool { return framework.IsReady(pod) && inAttempt(pod, "1") })
	if racks := s.racks(podsInAttempt(t, ns, "1")); racks["a-2"] != 3 {
		t.Errorf("pods of the next attempt by rack: %v", racks)
	}
	ns.Eventually(time.Minute, func(context.Context) error {
		condition := meta.FindStatusCondition(ns.Set("job").Status.Conditions, grovev1alpha1.ConditionTypeTopologyLevelsUnavailable)
		if strings.Contains(condition.Message, "attempt") {
			return fmt.Errorf("the set still says %q", condition.Message)
		}
		return nil
	})
}

// A level that the topology lacks is left out; one that no node has a label of is waited for.
func TestLevelsThatAreNotThere(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	s := site{"missing", t}
	s.addNode("a1", "a", "", "2")
	s.addNode("a2", "a", "", "2")
	s.bind(ns)
	ns.Apply(s.set("{topologyName: missing, pack: {required: block}}"))
	ns.WaitForPods(3, time.Minute, framework.IsReady)
	topologyIs(ns, "job", metav1.ConditionTrue, grovev1alpha1.ReasonTopologyLevelsUnavailable, "block")

	ns.Kubectl("delete", "pcs", "job", "--timeout=60s")
	ns.WaitForPods(0, time.Minute, func(*corev1.Pod) bool { return true })
	ns.Apply(strings.Replace(s.set("{topologyName: missing, pack: {required: rack}}"), "{name: job}", "{name: racks}", 1))
	gangSays(ns, "racks-0", schedulerv1alpha1.ReasonTopologyUnsatisfied)
	ns.Anywhere().Kubectl("label", "nodes", "missing-a1", "missing-a2", s.rack()+"=a-1")
	ns.WaitForPods(3, time.Minute, framework.IsReady)
}

// A pod that replaces another is placed where the others are.
func TestAReplacementIsPlacedWithTheOthers(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	s := site{"replaced", t}
	s.addNode("a1", "a", "a-1", "2")
	s.addNode("a2", "a", "a-1", "1")
	s.bind(ns)
	ns.Apply(strings.NewReplacer("workloadType: Training", "", "trainingSpec: {maxRestarts: 1}", "").Replace(s.set("{topologyName: replaced, pack: {required: rack}}")))
	pods := ns.WaitForPods(3, time.Minute, framework.IsReady)
	s.addNode("b1", "b", "b-1", "5")
	alone := slices.IndexFunc(pods, func(pod corev1.Pod) bool { return pod.Spec.NodeName == "replaced-a2" })
	if alone < 0 {
		t.Fatalf("pods by rack: %v", s.racks(pods))
	}
	ns.Anywhere().Kubectl("cordon", "replaced-a2")
	ns.Kubectl("delete", "pod", pods[alone].Name)
	gangSays(ns, "job-0", schedulerv1alpha1.ReasonTopologyUnsatisfied)
	ns.Anywhere().Kubectl("uncordon", "replaced-a2")
	after := ns.WaitForPods(3, time.Minute, framework.IsReady)
	if racks := s.racks(after); racks["a-1"] != 3 {
		t.Errorf("pods by rack: %v", racks)
	}
}

// Each copy of a scaling group is a rack's, be it in the base gang or a gang of its own.
func TestCopiesOfAScalingGroupArePlacedEachInARack(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	s := site{"copies", t}
	for _, rack := range []string{"1", "2"} {
		s.addNode("x"+rack, "a", "a-"+rack, "1")
		s.addNode("y"+rack, "a", "a-"+rack, "1")
	}
	s.bind(ns)
	pod := fmt.Sprintf(`{tolerations: [{key: %[1]s, operator: Exists}], containers: [{name: main, image: example.com/main, resources: {limits: {%[1]s: 1}}}]}`, s.unit())
	if out := ns.Apply(fmt.Sprintf(`
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: llm}
spec:
  replicas: 1
  template:
    topologyConstraint: {topologyName: copies, pack: {required: zone}}
    cliques:
      - name: leader
        spec: {replicas: 1, podSpec: %[1]s}
      - name: worker
        spec: {replicas: 1, podSpec: %[1]s}
    podCliqueScalingGroups:
      - name: decode
        cliqueNames: [leader, worker]
        replicas: 2
        topologyConstraint: {pack: {required: rack}}
`, pod)); strings.Contains(out, "Warning") {
		t.Errorf("the set is warned about: %s", out)
	}
	pods := ns.WaitForPods(4, time.Minute, framework.IsReady)
	byGang := map[string][]corev1.Pod{}
	for i := range pods {
		name := pods[i].Labels["grove.io/podgang"]
		byGang[name] = append(byGang[name], pods[i])
	}
	for name, members := range byGang {
		if racks := s.racks(members); len(members) != 2 || len(racks) != 1 {
			t.Errorf("pods of gang %s by rack: %v", name, racks)
		}
	}
}

// What is required of a part is not required of all, though the rest was scaled to 0 when the
// attempt began, and comes back in it.
func TestARestThatComesBackIsNotHeldToWhatIsRequiredOfAPart(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	s := site{"rest", t}
	s.addNode("a1", "a", "a-1", "1")
	s.addNode("a2", "a", "a-2", "2")
	s.bind(ns)
	pod := fmt.Sprintf(`{tolerations: [{key: %[1]s, operator: Exists}], containers: [{name: main, image: example.com/main, resources: {limits: {%[1]s: 1}}}]}`, s.unit())
	ns.Apply(fmt.Sprintf(`
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: rest}
value: 10
---
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: llm}
spec:
  replicas: 1
  template:
    cliques:
      - name: router
        topologyConstraint: {topologyName: rest, pack: {required: rack}}
        spec: {replicas: 1, podSpec: %[1]s}
      - name: worker
        spec: {replicas: 2, podSpec: %[1]s}
    podCliqueScalingGroups:
      - name: model
        cliqueNames: [worker]
`, pod))
	ns.WaitForPods(3, time.Minute, framework.IsReady)
	ns.Kubectl("scale", "pcsg", "llm-0-model", "--replicas=0")
	ns.WaitForPods(1, time.Minute, func(*corev1.Pod) bool { return true })
	ns.Kubectl("patch", "pcs", "llm", "--type=merge", "-p", `{"spec":{"template":{"priorityClassName":"rest"}}}`)
	ns.WaitForPods(1, time.Minute, func(pod *corev1.Pod) bool { return framework.IsReady(pod) && inAttempt(pod, "1") })
	ns.Kubectl("scale", "pcsg", "llm-0-model", "--replicas=1")
	ns.WaitForPods(3, time.Minute, framework.IsReady)
	topologyIs(ns, "llm", metav1.ConditionFalse, grovev1alpha1.ReasonAllTopologyLevelsAvailable, "is not told")
	if condition := meta.FindStatusCondition(ns.Set("llm").Status.Conditions, grovev1alpha1.ConditionTypeTopologyLevelsUnavailable); strings.Contains(condition.Message, "attempt") {
		t.Errorf("the set says %q", condition.Message)
	}
}

// With the feature gate on, a gang that wants no topology has one placement as well, which is
// no reason to speak of topology.
func TestAGangWithoutConstraintsThatDoesNotFit(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	s := site{"free", t}
	s.addNode("a1", "a", "a-1", "2")
	ns.Apply(strings.Replace(s.set(""), "    topologyConstraint: \n", "", 1))
	gangSays(ns, "job-0", schedulerv1alpha1.ReasonNotEnoughResources)
}

func inAttempt(pod *corev1.Pod, attempt string) bool {
	return pod.Labels["grove.io/restart-attempt"] == attempt
}

func podsInAttempt(t *testing.T, ns *framework.Namespace, attempt string) []corev1.Pod {
	t.Helper()
	pods, err := ns.Pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return !inAttempt(&pod, attempt) })
}

// gangSays waits until a gang tells a reason why it waits.
func gangSays(ns *framework.Namespace, gang, reason string) {
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		podGang, err := ns.PodGang(ctx, gang)
		if err != nil {
			return err
		}
		told := podGang.Status.SchedulingConditions
		if len(told) != 1 || len(told[0].Reasons) != 1 || told[0].Reasons[0].Reason != reason {
			return fmt.Errorf("the gang tells %+v", told)
		}
		return nil
	})
}
