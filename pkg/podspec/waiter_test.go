package podspec

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

func waitingClique() *grovev1alpha1.PodClique {
	return &grovev1alpha1.PodClique{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job-1-worker", UID: "u", Labels: map[string]string{labels.ReplicaIndex: "1"}},
		Spec: grovev1alpha1.PodCliqueSpec{Attempt: 3, PodSpec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "fetch"}}, Containers: []corev1.Container{{Name: "main"}}, Volumes: []corev1.Volume{{Name: "data"}},
		}},
	}
}

func waitContext(container string) Context {
	return Context{
		Set: "job", Replica: 1, Wait: Wait{Container: container, Timeout: 5 * time.Minute},
		Waiter: Waiter{Image: "gate:1", ImagePullPolicy: corev1.PullNever, APIServer: "10.0.0.1:6443", Resources: corev1.ResourceList{"cpu": resource.MustParse("50m")}},
	}
}

// The order of the user's containers is kept, and the waiter is the last of them (grove#830).
func TestTheWaiterComesAfterTheUsersInitContainers(t *testing.T) {
	spec := Render(waitingClique(), 0, waitContext("group-scheduling-init")).Spec
	if len(spec.InitContainers) != 2 || spec.InitContainers[0].Name != "fetch" {
		t.Fatalf("init containers %+v", spec.InitContainers)
	}
	waiter := spec.InitContainers[1]
	want := corev1.Container{
		Name: "group-scheduling-init", Image: "gate:1", ImagePullPolicy: corev1.PullNever,
		Args: []string{"--namespace=ns", "--gate=job-1", "--podclique=job-1-worker", "--attempt=3", "--timeout=5m0s", "--file=/mnt/group-scheduling/started"},
		Env:  []corev1.EnvVar{{Name: "KUBERNETES_SERVICE_HOST", Value: "10.0.0.1"}, {Name: "KUBERNETES_SERVICE_PORT", Value: "6443"}},
		// Guaranteed stays Guaranteed.
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("50m")}, Limits: corev1.ResourceList{"cpu": resource.MustParse("50m")}},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "group-scheduling", MountPath: "/mnt/group-scheduling", ReadOnly: true},
			{Name: "start-gate-token", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true},
		},
		// What the profile restricted asks for.
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true), RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](65532), RunAsGroup: ptr.To[int64](65532),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
	if diff := cmp.Diff(want, waiter); diff != "" {
		t.Errorf("waiter (-want +got):\n%s", diff)
	}
	if len(spec.Volumes) != 3 || spec.Volumes[0].Name != "data" {
		t.Fatalf("volumes %+v", spec.Volumes)
	}
	configMap := spec.Volumes[1].ConfigMap
	if configMap == nil || configMap.Name != "job-1-group-scheduling" || !ptr.Deref(configMap.Optional, false) {
		t.Errorf("the ConfigMap %+v", spec.Volumes[1])
	}
	token := spec.Volumes[2].Projected
	if token == nil || len(token.Sources) != 2 || token.Sources[0].ServiceAccountToken == nil || token.Sources[1].ConfigMap.Name != "kube-root-ca.crt" {
		t.Errorf("the token %+v", spec.Volumes[2])
	}
	for _, container := range append(spec.InitContainers[:1:1], spec.Containers...) {
		if len(container.VolumeMounts) > 0 {
			t.Errorf("container %s mounts %+v", container.Name, container.VolumeMounts)
		}
	}
}

func TestPodsThatDoNotWaitHaveNoWaiter(t *testing.T) {
	spec := Render(waitingClique(), 0, waitContext("")).Spec
	if len(spec.InitContainers) != 1 || len(spec.Volumes) != 1 {
		t.Errorf("init containers %+v, volumes %+v", spec.InitContainers, spec.Volumes)
	}
	c := waitContext("grove-initc")
	c.Waiter.APIServer = ""
	if waiter := Render(waitingClique(), 0, c).Spec.InitContainers[1]; waiter.Name != "grove-initc" || len(waiter.Env) != 0 {
		t.Errorf("the waiter of an order, with the cluster's own address: %+v", waiter)
	}
}

func TestTheContextSaysWhoWaits(t *testing.T) {
	pcs := &grovev1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Name: "job"}, Spec: grovev1alpha1.PodCliqueSetSpec{
		GroupSchedulingConfig: &grovev1alpha1.GroupSchedulingConfig{TimeoutAfterSeconds: ptr.To[int32](7)},
		Template:              grovev1alpha1.PodCliqueSetTemplateSpec{Cliques: []grovev1alpha1.PodCliqueTemplateSpec{{Name: "worker"}}},
	}}
	if diff := cmp.Diff(Wait{Container: "group-scheduling-init", Timeout: 7 * time.Second}, ContextOf(pcs, waitingClique(), "d").Wait); diff != "" {
		t.Error(diff)
	}
}
