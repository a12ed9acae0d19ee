package topology

import (
	"context"
	"fmt"
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
	again := ns.WaitForPods(3, time.Minute, func(pod *corev1.Pod) bool {
		return framework.IsReady(pod) && pod.Labels["grove.io/restart-attempt"] == "1"
	})
	var current []corev1.Pod
	for i := range again {
		if again[i].Labels["grove.io/restart-attempt"] == "1" {
			current = append(current, again[i])
		}
	}
	if racks := s.racks(current); racks["b-1"] != 3 {
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
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		podGang, err := ns.PodGang(ctx, "job-0")
		if err != nil {
			return err
		}
		told := podGang.Status.SchedulingConditions
		if len(told) != 1 || len(told[0].Reasons) != 1 || told[0].Reasons[0].Reason != schedulerv1alpha1.ReasonTopologyUnsatisfied {
			return fmt.Errorf("the gang tells %+v", told)
		}
		t.Logf("message: %s", told[0].Reasons[0].Message)
		return nil
	})
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
