package sharing

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

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

// The pods of a gang that share a claim are on nodes, all of them, once it is allocated for the
// first of them; and again when the gang is made anew (kubernetes/kubernetes#140053).
func TestAGangSharesAClaimThatIsNotAllocatedYet(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	publishDevices(t, ns.Name, 4)
	ns.Apply(strings.ReplaceAll(`
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: job}
spec:
  replicas: 4
  template:
    resourceClaimTemplates:
      - name: gpu
        templateSpec:
          spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: CLASS}}]}}
    resourceSharing: [{name: gpu, scope: PerReplica}]
    cliques:
      - name: worker
        spec:
          roleName: worker
          replicas: 8
          podSpec: {containers: [{name: main, image: example.com/trainer}]}
`, "CLASS", ns.Name))
	for round := range 2 {
		ns.WaitForPods(4*8, time.Minute, framework.IsReady)
		for name, count := range sharers(t, ns) {
			if count != 8 {
				t.Errorf("round %d: %d pods use claim %s", round, count, name)
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
		if round == 0 {
			pods, err := ns.Pods(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			old := map[types.UID]bool{}
			args := []string{"delete", "pod", "--wait=false"}
			for i := range pods {
				old[pods[i].UID] = true
				args = append(args, pods[i].Name)
			}
			ns.Kubectl(args...)
			ns.WaitForPods(4*8, time.Minute, func(pod *corev1.Pod) bool { return !old[pod.UID] })
		}
	}
}
