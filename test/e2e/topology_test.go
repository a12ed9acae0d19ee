package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/test/framework"
)

// The cluster's scheduler has its feature gate for topology off; test/topology has it on.

// bindTopology makes the cluster have a topology of zones, racks and hosts while a test runs.
func bindTopology(t *testing.T, ns *framework.Namespace, name string) {
	t.Helper()
	ns.Anywhere().Apply(fmt.Sprintf(`
apiVersion: grove.io/v1alpha1
kind: ClusterTopologyBinding
metadata: {name: %s}
spec:
  levels: [{domain: zone, key: example.com/zone}, {domain: rack, key: example.com/rack}, {domain: host, key: kubernetes.io/hostname}]
`, name))
	t.Cleanup(func() {
		_ = cluster.Copse.GroveV1alpha1().ClusterTopologyBindings().Delete(context.Background(), name, metav1.DeleteOptions{})
	})
}

func topologyReason(ns *framework.Namespace, set, reason, words string) {
	ns.Eventually(time.Minute, func(context.Context) error {
		condition := meta.FindStatusCondition(ns.Set(set).Status.Conditions, grovev1alpha1.ConditionTypeTopologyLevelsUnavailable)
		if condition == nil || condition.Reason != reason || !strings.Contains(condition.Message, words) {
			return fmt.Errorf("the condition of the set is %+v", condition)
		}
		return nil
	})
}

// Where kube-apiserver drops the topology of groups, sets run without it, and say so.
func TestTopologyThatTheSchedulerDoesNotLookAt(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	bindTopology(t, ns, "untold")
	ns.Apply(`
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: llm}
spec:
  replicas: 1
  template:
    topologyConstraint: {topologyName: untold, pack: {required: rack}}
    cliques:
      - name: server
        spec:
          replicas: 3
          podSpec: {containers: [{name: main, image: example.com/server}]}
`)
	ns.WaitForPods(3, time.Minute, framework.IsReady)
	topologyReason(ns, "llm", grovev1alpha1.ReasonTopologyDisabled, "TopologyAwareWorkloadScheduling")
	if log := cluster.Log(t, "copse-controller-manager"); !strings.Contains(log, "TopologyAwareWorkloadScheduling") {
		t.Error("the log of the controller-manager does not name the feature gate")
	}
}

const packedByKAI = `
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: llm}
spec:
  replicas: 1
  template:
    topologyConstraint: {topologyName: told, pack: {required: zone}}
    cliques:
      - name: router
        topologyConstraint: {pack: {preferred: rack}}
        spec: {replicas: 1, podSpec: {schedulerName: kai-scheduler, containers: [{name: main, image: example.com/server}]}}
      - name: leader
        spec: {replicas: 1, podSpec: {schedulerName: kai-scheduler, containers: [{name: main, image: example.com/server}]}}
      - name: worker
        topologyConstraint: {pack: {required: host}}
        spec: {replicas: 2, podSpec: {schedulerName: kai-scheduler, containers: [{name: main, image: example.com/server}]}}
    podCliqueScalingGroups:
      - name: decode
        cliqueNames: [leader, worker]
        replicas: 2
        minAvailable: 1
        topologyConstraint: {pack: {required: rack, preferred: host}}
`

// KAI is told all constraints, by the topology that is made for it, and follows the levels.
func TestKAIIsToldOfTopology(t *testing.T) {
	installKAI(t)
	t.Parallel()
	ns := cluster.Namespace(t)
	addNode(t, "kai-topology", "example.com/kai-topology", "1")
	playKAI(t, ns, "kai-topology")
	bindTopology(t, ns, "told")
	if out := ns.Apply(packedByKAI); strings.Contains(out, "Warning") {
		t.Errorf("KAI is warned about: %s", out)
	}
	ns.WaitForPods(7, time.Minute, framework.IsReady)
	topologyReason(ns, "llm", grovev1alpha1.ReasonAllTopologyLevelsAvailable, "told")

	placed := func(required, preferred string) map[string]any {
		out := map[string]any{"topology": "told"}
		if required != "" {
			out["requiredTopologyLevel"] = required
		}
		if preferred != "" {
			out["preferredTopologyLevel"] = preferred
		}
		return out
	}
	const zone, rack, host = "example.com/zone", "example.com/rack", "kubernetes.io/hostname"
	base := kaiGroup(t, ns, "llm-0", "0")
	checkPlacement(t, base, placed(zone, ""), map[string]any{
		"llm-0-decode-0": placed(rack, host), "llm-0-router": placed("", rack), "llm-0-decode-0-worker": placed(host, ""),
	})
	checkPlacement(t, kaiGroup(t, ns, "llm-0-decode-0", "0"), placed(rack, host), map[string]any{"llm-0-decode-1-worker": placed(host, "")})

	// Its levels cannot be changed, so that KAI gets another topology.
	client, err := dynamic.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	topologies := client.Resource(schema.GroupVersionResource{Group: "kai.scheduler", Version: "v1alpha1", Resource: "topologies"})
	levels := func(want ...string) {
		t.Helper()
		ns.Eventually(time.Minute, func(ctx context.Context) error {
			topology, err := topologies.Get(ctx, "told", metav1.GetOptions{})
			if err != nil {
				return err
			}
			list, _, _ := unstructured.NestedSlice(topology.Object, "spec", "levels")
			var got []string
			for _, level := range list {
				fields, _ := level.(map[string]any)
				key, _ := fields["nodeLabel"].(string)
				got = append(got, key)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				return fmt.Errorf("levels (-want +got):\n%s", diff)
			}
			binding, err := cluster.Copse.GroveV1alpha1().ClusterTopologyBindings().Get(ctx, "told", metav1.GetOptions{})
			if err != nil {
				return err
			}
			if status := binding.Status; status.ObservedGeneration == nil || *status.ObservedGeneration != binding.Generation ||
				!meta.IsStatusConditionFalse(status.Conditions, grovev1alpha1.ConditionTypeSchedulerTopologyDrift) ||
				len(status.SchedulerTopologyStatuses) != 1 || !status.SchedulerTopologyStatuses[0].InSync {
				return fmt.Errorf("the status is %+v", status)
			}
			return nil
		})
	}
	levels(zone, rack, host)
	ns.Anywhere().Kubectl("patch", "clustertopologybinding", "told", "--type=merge", "-p", `{"spec":{"levels":[{"domain":"zone","key":"example.com/region"},{"domain":"rack","key":"example.com/rack"}]}}`)
	levels("example.com/region", rack)
	topologyReason(ns, "llm", grovev1alpha1.ReasonTopologyLevelsUnavailable, "host")
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		group, err := kaiGroups(t, ns).Get(ctx, base.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if whole, _, _ := unstructured.NestedString(group.Object, "spec", "topologyConstraint", "requiredTopologyLevel"); whole != "example.com/region" {
			return fmt.Errorf("the group is placed by %q", whole)
		}
		return nil
	})

	// It goes with its binding, and nothing is held up by that.
	ns.Anywhere().Kubectl("delete", "clustertopologybinding", "told", "--timeout=60s")
	topologyReason(ns, "llm", grovev1alpha1.ReasonClusterTopologyNotFound, "told")
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		group, err := kaiGroups(t, ns).Get(ctx, base.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if whole, found, _ := unstructured.NestedMap(group.Object, "spec", "topologyConstraint"); found {
			return fmt.Errorf("the group is placed by %v", whole)
		}
		if topology, err := topologies.Get(ctx, "told", metav1.GetOptions{}); err == nil {
			return fmt.Errorf("KAI's topology is left: %v", topology.GetOwnerReferences())
		}
		return nil
	})
}

// checkPlacement compares where a group, and those of its subgroups that say so, are placed.
func checkPlacement(t *testing.T, group *unstructured.Unstructured, whole map[string]any, parts map[string]any) {
	t.Helper()
	got, _, _ := unstructured.NestedMap(group.Object, "spec", "topologyConstraint")
	if diff := cmp.Diff(whole, got); diff != "" {
		t.Errorf("group %s (-want +got):\n%s", group.GetName(), diff)
	}
	placed := map[string]any{}
	subGroups, _, _ := unstructured.NestedSlice(group.Object, "spec", "subGroups")
	for _, subGroup := range subGroups {
		fields, _ := subGroup.(map[string]any)
		name, _ := fields["name"].(string)
		if constraint, found := fields["topologyConstraint"]; found {
			placed[name] = constraint
		}
	}
	if diff := cmp.Diff(parts, placed); diff != "" {
		t.Errorf("subgroups of %s (-want +got):\n%s", group.GetName(), diff)
	}
}
