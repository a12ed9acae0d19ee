package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/copse-dev/copse/test/framework"
)

// The cluster's own autoscaler reads /scale, finds the pods by its selector and writes
// the size, with no more than its own role, although what it scales is protected.
func TestAutoscalersOfTheUsersOwnScaleCliquesAndGroups(t *testing.T) {
	ns := cluster.Namespace(t)
	// The autoscalers are the user's own; the set asks for none.
	ns.Apply(strings.Replace(grouped, ", scaleConfig: {maxReplicas: 3}", "", 1))
	ns.WaitForPods(5, time.Minute, framework.IsReady)
	// No metrics are needed to grow to the autoscaler's own minimum.
	ns.Kubectl("autoscale", "pcsg", "llm-0-decode", "--min=2", "--max=3", "--cpu=80%")
	ns.Kubectl("autoscale", "pclq", "llm-0-server", "--min=3", "--max=4", "--cpu=80%")
	ns.Eventually(90*time.Second, func(context.Context) error {
		got := ns.Kubectl("get", "pcsg/llm-0-decode", "pclq/llm-0-server", "-o", "jsonpath={.items[*].spec.replicas}")
		if got != "2 3" {
			return fmt.Errorf("sizes are %s, want 2 3", got)
		}
		return nil
	})
	ns.WaitForPods(9, time.Minute, framework.IsReady)
	for _, name := range []string{"llm-0-decode", "llm-0-server"} {
		ns.Eventually(90*time.Second, func(context.Context) error {
			out := ns.Kubectl("get", "hpa", name, "-o", `jsonpath={range .status.conditions[*]}{.type}={.status}:{.reason} {end}`)
			// Past the scale and its selector, all that it lacks are metrics.
			if !strings.Contains(out, "AbleToScale=True") || !strings.Contains(out, "ScalingActive=False:FailedGetResourceMetric") {
				return fmt.Errorf("%s: %s", name, out)
			}
			return nil
		})
	}
	owner := `jsonpath={.metadata.managedFields[?(@.subresource=="scale")].manager}`
	for _, child := range []string{"pcsg/llm-0-decode", "pclq/llm-0-server"} {
		contains(t, ns.Kubectl("get", child, "--show-managed-fields", "-o", owner), "kube-controller-manager")
	}
}

func TestScaleSaysWhatItsBoundsAre(t *testing.T) {
	ns := cluster.Namespace(t)
	ns.Apply(grouped)
	ns.WaitForPods(5, time.Minute, framework.IsReady)
	for _, tc := range []struct {
		object string
		size   int
		want   string
	}{
		{"pcs/llm", 4001, "must be from 0 to 4000 (5 pods in each replica, of at most 20000 in a set)"},
		{"pcsg/llm-0-decode", 4, "must be from 0 to 3 (scaleConfig.maxReplicas of decode in PodCliqueSet llm)"},
		{"pclq/llm-0-server", 1, "must be 0, or from 2 (spec.minAvailable) to 20000 (the most pods of a set)"},
	} {
		contains(t, ns.KubectlFails("scale", tc.object, fmt.Sprintf("--replicas=%d", tc.size)), "spec.replicas: Invalid value", tc.want)
	}
	contains(t, ns.KubectlFails("scale", "pcs/llm", "--replicas=2", "--current-replicas=7"), "7")
	contains(t, ns.KubectlFails("scale", "pcs/llm", "--replicas=2", "--resource-version=1"), "1")
	for _, kind := range []string{"merge", "strategic", "json"} {
		patch := `{"spec":{"replicas":0}}`
		if kind == "json" {
			patch = `[{"op":"replace","path":"/spec/replicas","value":0}]`
		}
		ns.Kubectl("patch", "pcsg", "llm-0-decode", "--subresource=scale", "--type="+kind, "-p", patch)
		ns.Kubectl("patch", "pcsg", "llm-0-decode", "--subresource=scale", "--type=merge", "-p", `{"spec":{"replicas":1}}`)
	}
}
