package nodes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestParseResources(t *testing.T) {
	got, err := ParseResources("cpu=32, memory=256Gi,nvidia.com/gpu=8")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[corev1.ResourceName]string{"cpu": "32", "memory": "256Gi", "nvidia.com/gpu": "8"} {
		q := got[name]
		if q.String() != want {
			t.Errorf("%s is %s, want %s", name, q.String(), want)
		}
	}
	for _, bad := range []string{"", "cpu", "=1", "cpu=many", "cpu=-1", "cpu=1,cpu=2", "cpu=1,"} {
		if got, err := ParseResources(bad); err == nil {
			t.Errorf("ParseResources(%q) = %v, want an error", bad, got)
		}
	}
}

func TestNew(t *testing.T) {
	nodes := New(3, corev1.ResourceList{})
	for i, want := range []struct{ name, zone string }{{"node-0", "zone-a"}, {"node-1", "zone-b"}, {"node-2", "zone-a"}} {
		n := nodes[i]
		if n.Name != want.name || n.Labels[corev1.LabelHostname] != want.name || n.Labels[corev1.LabelTopologyZone] != want.zone {
			t.Errorf("node %d is %s with labels %v", i, n.Name, n.Labels)
		}
		if n.Labels["type"] != "kwok" {
			t.Errorf("node %s is not for KWOK: %v", n.Name, n.Labels)
		}
	}
}

func TestTakesPods(t *testing.T) {
	ready := func(status corev1.ConditionStatus) corev1.NodeStatus {
		return corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}}
	}
	taint := corev1.NodeSpec{Taints: []corev1.Taint{{Key: corev1.TaintNodeNotReady}}}
	for _, tc := range []struct {
		name string
		node corev1.Node
		want bool
	}{
		{"new", corev1.Node{}, false},
		{"ready", corev1.Node{Status: ready(corev1.ConditionTrue)}, true},
		{"unknown", corev1.Node{Status: ready(corev1.ConditionUnknown)}, false},
		{"for those who ask for it", corev1.Node{
			Spec:   corev1.NodeSpec{Taints: []corev1.Taint{{Key: "type", Value: "kubelet"}}},
			Status: ready(corev1.ConditionTrue),
		}, true},
		{"still tainted", corev1.Node{Spec: taint, Status: ready(corev1.ConditionTrue)}, false},
	} {
		if got := takesPods(&tc.node); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}
