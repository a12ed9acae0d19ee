package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/test/framework"
)

// publishDevices has the cluster know devices that every node reaches, under a class, as a driver
// does.
func publishDevices(t *testing.T, class string, count int) {
	t.Helper()
	api := cluster.Kube.ResourceV1()
	driver := class + ".example.com"
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: class},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, AllNodes: ptr.To(true), Pool: resourcev1.ResourcePool{Name: class, Generation: 1, ResourceSliceCount: 1},
		},
	}
	for i := range count {
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprintf("device-%d", i)})
	}
	if _, err := api.ResourceSlices().Create(t.Context(), slice, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	deviceClass := &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: class},
		Spec:       resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "` + driver + `"`}}}},
	}
	if _, err := api.DeviceClasses().Create(t.Context(), deviceClass, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, err := range []error{api.DeviceClasses().Delete(ctx, class, metav1.DeleteOptions{}), api.ResourceSlices().Delete(ctx, class, metav1.DeleteOptions{})} {
			if err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		}
	})
}

// claimsOf are the claims of a namespace, by name.
func claimsOf(ctx context.Context, ns *framework.Namespace) (map[string]resourcev1.ResourceClaim, error) {
	list, err := cluster.Kube.ResourceV1().ResourceClaims(ns.Name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	out := map[string]resourcev1.ResourceClaim{}
	for i := range list.Items {
		out[list.Items[i].Name] = list.Items[i]
	}
	return out, nil
}

// waitForClaims waits until there are the claims with some names and no others.
func waitForClaims(ns *framework.Namespace, names ...string) map[string]types.UID {
	uids := map[string]types.UID{}
	slices.Sort(names)
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		claims, err := claimsOf(ctx, ns)
		if err != nil {
			return err
		}
		if got := slices.Sorted(maps.Keys(claims)); !slices.Equal(got, names) {
			return fmt.Errorf("claims %q, want %q", got, names)
		}
		for name := range claims {
			uids[name] = claims[name].UID
		}
		return nil
	})
	return uids
}

// sharers are how many pods use each claim, as kube-scheduler says.
func sharers(t *testing.T, ns *framework.Namespace) map[string]int {
	t.Helper()
	claims, err := claimsOf(t.Context(), ns)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for name := range claims {
		claim := claims[name]
		out[name] = len(claim.Status.ReservedFor)
		if claim.Status.Allocation == nil {
			t.Errorf("claim %s is not allocated", name)
		}
	}
	return out
}

const sharingSet = `
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: llm}
spec:
  replicas: 2
  template:
    resourceClaimTemplates:
      - name: gpu
        templateSpec:
          metadata: {labels: {team: red}, annotations: {note: kept}}
          spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: CLASS}}]}}
    resourceSharing:
      - {name: gpu, scope: AllReplicas, filter: {childCliqueNames: [router]}}
    cliques:
      - name: router
        resourceSharing: [{name: gpu, scope: PerReplica}]
        spec:
          roleName: router
          replicas: 2
          minAvailable: 1
          podSpec:
            initContainers: [{name: init, image: example.com/init}]
            containers: [{name: main, image: example.com/router}]
      - name: leader
        spec:
          roleName: leader
          replicas: 1
          podSpec: {containers: [{name: main, image: example.com/server}]}
      - name: worker
        resourceSharing: [{name: gpu, scope: AllReplicas}]
        spec:
          roleName: worker
          replicas: 2
          podSpec: {containers: [{name: main, image: example.com/server}, {name: log, image: example.com/log}]}
    podCliqueScalingGroups:
      - name: decode
        cliqueNames: [leader, worker]
        replicas: 2
        minAvailable: 1
        resourceSharing: [{name: gpu, scope: PerReplica}]
`

// Pods of a set share claims on each level, kube-scheduler allocates them, and they go with what
// they are for.
func TestPodsShareClaims(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	publishDevices(t, ns.Name, 20)
	if out := ns.Apply(strings.ReplaceAll(sharingSet, "CLASS", ns.Name)); strings.Contains(out, "Warning") {
		t.Errorf("the set is warned about: %s", out)
	}
	ns.WaitForPods(2*(2+2*3), time.Minute, framework.IsReady)

	of := func(replica string, copies int, routers int) []string {
		prefix := "llm-" + replica
		var names []string
		for i := range routers {
			names = append(names, fmt.Sprintf("%s-router-%d-gpu", prefix, i))
		}
		for i := range copies {
			names = append(names, fmt.Sprintf("%s-decode-%d-gpu", prefix, i), fmt.Sprintf("%s-decode-%d-worker-all-gpu", prefix, i))
		}
		return names
	}
	uids := waitForClaims(ns, append(append(of("0", 2, 2), of("1", 2, 2)...), "llm-all-gpu")...)
	want := map[string]int{"llm-all-gpu": 4}
	for name := range uids {
		switch {
		case strings.Contains(name, "worker"):
			want[name] = 2
		case strings.Contains(name, "decode"):
			want[name] = 3
		case strings.Contains(name, "router"):
			want[name] = 1
		}
	}
	if got := sharers(t, ns); !maps.Equal(got, want) {
		t.Errorf("claims are used by %v pods, want %v", got, want)
	}

	t.Run("all containers of a pod use them", func(t *testing.T) {
		pods, err := ns.Pods(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range pods {
			want := ""
			switch pods[i].Spec.Hostname {
			case "llm-1-router-0":
				want = "llm-all-gpu llm-1-router-0-gpu"
			case "llm-1-decode-1-worker-1":
				want = "llm-1-decode-1-gpu llm-1-decode-1-worker-all-gpu"
			case "llm-0-decode-0-leader-0":
				want = "llm-0-decode-0-gpu"
			default:
				continue
			}
			for _, container := range append(slices.Clone(pods[i].Spec.InitContainers), pods[i].Spec.Containers...) {
				var got []string
				for _, claim := range container.Resources.Claims {
					got = append(got, claim.Name)
				}
				if strings.Join(got, " ") != want {
					t.Errorf("container %s of %s uses %q, want %s", container.Name, pods[i].Name, got, want)
				}
			}
		}
	})
	t.Run("they belong to what asks for them", func(t *testing.T) {
		claims, err := claimsOf(t.Context(), ns)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{
			"llm-all-gpu": "PodCliqueSet llm", "llm-1-decode-0-gpu": "PodCliqueScalingGroup llm-1-decode", "llm-0-router-1-gpu": "PodClique llm-0-router",
		} {
			claim := claims[name]
			ref := metav1.GetControllerOf(&claim)
			if ref == nil || ref.Kind+" "+ref.Name != want {
				t.Errorf("claim %s is controlled by %+v, want %s", name, ref, want)
			}
			if claim.Labels["team"] != "red" || claim.Annotations["note"] != "kept" || claim.Labels["app.kubernetes.io/component"] != "resource-claim" {
				t.Errorf("claim %s has labels %v and annotations %v", name, claim.Labels, claim.Annotations)
			}
		}
	})
	t.Run("a pod that is replaced has the same", func(t *testing.T) {
		pods, err := ns.Pods(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(pods, func(pod corev1.Pod) bool { return pod.Spec.Hostname == "llm-0-router-0" })
		ns.Kubectl("delete", "pod", pods[i].Name)
		ns.WaitForPods(2*(2+2*3), time.Minute, framework.IsReady)
		if got := waitForClaims(ns, slices.Collect(maps.Keys(uids))...); !maps.Equal(got, uids) {
			t.Errorf("the claims are others: %v, were %v", got, uids)
		}
	})
	t.Run("what is scaled in takes its claims along", func(t *testing.T) {
		ns.Kubectl("scale", "pcsg", "llm-0-decode", "--replicas=1")
		ns.Kubectl("scale", "pclq", "llm-0-router", "--replicas=1")
		ns.Kubectl("scale", "pcs", "llm", "--replicas=1")
		left := waitForClaims(ns, append(of("0", 1, 1), "llm-all-gpu")...)
		for name, uid := range left {
			if uids[name] != uid {
				t.Errorf("claim %s is another", name)
			}
		}
		ns.WaitForPods(1+3, time.Minute, framework.IsReady)
		// Kept are those that are used, by as many as before.
		if got := sharers(t, ns)["llm-0-decode-0-gpu"]; got != 3 {
			t.Errorf("%d pods use the claim of the copy that stays", got)
		}
		ns.Kubectl("scale", "pcs", "llm", "--replicas=2")
		ns.Kubectl("scale", "pcsg", "llm-0-decode", "--replicas=2")
		ns.WaitForPods(1+6+2+6, time.Minute, framework.IsReady)
		waitForClaims(ns, append(append(of("0", 2, 1), of("1", 2, 2)...), "llm-all-gpu")...)
	})
	ns.Kubectl("delete", "pcs", "llm", "--timeout=60s")
	// Nothing is left when the set has gone.
	claims, err := claimsOf(t.Context(), ns)
	if err != nil || len(claims) > 0 {
		t.Errorf("claims are left: %v, %v", slices.Collect(maps.Keys(claims)), err)
	}
}

// A template may come after the set that refers to it, and be of another namespace. Until then the
// set says what its pods wait for.
func TestATemplateOfClaimsIsWaitedFor(t *testing.T) {
	t.Parallel()
	ns, other := cluster.Namespace(t), cluster.Namespace(t)
	publishDevices(t, ns.Name, 2)
	ns.Apply(fmt.Sprintf(`
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: llm}
spec:
  replicas: 1
  template:
    resourceSharing:
      - {name: a.device, namespace: %s, scope: AllReplicas}
    cliques:
      - name: server
        spec:
          roleName: server
          replicas: 2
          podSpec: {containers: [{name: main, image: example.com/server}]}
`, other.Name))
	ns.WaitForPods(2, time.Minute, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "" })
	ns.Eventually(time.Minute, func(context.Context) error {
		condition := meta.FindStatusCondition(ns.Set("llm").Status.Conditions, grovev1alpha1.ConditionTypeResourceClaimsMissing)
		if condition == nil || condition.Reason != grovev1alpha1.ReasonResourceClaimTemplateNotFound || !strings.Contains(condition.Message, other.Name+"/a.device") {
			return fmt.Errorf("condition %+v", condition)
		}
		if events := ns.Kubectl("describe", "pcs", "llm"); !strings.Contains(events, "ResourceClaimTemplateNotFound") {
			return fmt.Errorf("nothing tells of it:\n%s", events)
		}
		return nil
	})
	other.Apply(fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: a.device}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: %s}}]}}}
`, ns.Name))
	ns.WaitForPods(2, time.Minute, framework.IsReady)
	ns.Eventually(time.Minute, func(context.Context) error {
		if condition := meta.FindStatusCondition(ns.Set("llm").Status.Conditions, grovev1alpha1.ConditionTypeResourceClaimsMissing); condition != nil {
			return fmt.Errorf("condition %+v", condition)
		}
		return nil
	})
	// Of a template that has gone the claims stay, and nothing is missing.
	other.Kubectl("delete", "resourceclaimtemplate", "a.device")
	claims, err := claimsOf(t.Context(), ns)
	if err != nil || len(claims) != 1 {
		t.Errorf("claims %v, %v", slices.Collect(maps.Keys(claims)), err)
	}
}

// Pods of a gang that share claims are on nodes, all of them, once these are allocated; and again
// when the gang is made anew. Some pods share one claim with some of the gang and one with others:
// such a pod may have written the one, and be too late for the other. Each allocation is shown to
// the scheduler (kubernetes/kubernetes#140053).
func TestAGangSharesClaimsThatAreNotAllocatedYet(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	publishDevices(t, ns.Name, 12)
	ns.Apply(strings.ReplaceAll(`
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: job}
spec:
  replicas: 6
  template:
    resourceClaimTemplates:
      - name: gpu
        templateSpec: &any
          spec: {devices: {requests: [{name: any, exactly: {deviceClassName: CLASS}}]}}
      - name: nic
        templateSpec: *any
    resourceSharing:
      - {name: gpu, scope: PerReplica, filter: {childCliqueNames: [both, compute]}}
      - {name: nic, scope: PerReplica, filter: {childCliqueNames: [both, network]}}
    cliques:
      - name: both
        spec: &pods
          roleName: worker
          replicas: 4
          podSpec: {containers: [{name: main, image: example.com/trainer}]}
      - name: compute
        spec: {<<: *pods, replicas: 1, roleName: compute}
      - name: network
        spec: {<<: *pods, replicas: 3, roleName: network}
`, "CLASS", ns.Name))
	old := map[types.UID]bool{}
	for round := range 2 {
		ns.WaitForPods(6*8, time.Minute, func(pod *corev1.Pod) bool { return !old[pod.UID] && framework.IsReady(pod) })
		for name, count := range sharers(t, ns) {
			if want := map[bool]int{true: 5, false: 7}[strings.HasSuffix(name, "-gpu")]; count != want {
				t.Errorf("round %d: %d pods use claim %s, want %d", round, count, name, want)
			}
		}
		ns.Eventually(time.Minute, func(ctx context.Context) error {
			claims, err := claimsOf(ctx, ns)
			for name := range claims {
				claim := claims[name]
				seen, pods := claim.Annotations[labels.AllocationSeen], claim.Status.ReservedFor
				if len(pods) == 0 || seen != string(pods[0].UID) {
					return fmt.Errorf("claim %s: seen for %q, allocated for %v", name, seen, pods)
				}
			}
			return err
		})
		pods, err := ns.Pods(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		args := []string{"delete", "pod", "--wait=false"}
		for i := range pods {
			old[pods[i].UID] = true
			args = append(args, pods[i].Name)
		}
		if round == 0 {
			ns.Kubectl(args...)
		}
	}
}
