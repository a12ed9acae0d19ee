package podspec

import (
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
)

const (
	// GateFile is the key in the ConfigMap.
	GateFile = "started"

	gateFolder = "/mnt/group-scheduling"
	// accountFolder is where every client in a cluster looks for its token.
	accountFolder = "/var/run/secrets/kubernetes.io/serviceaccount"
	// tokenSeconds is how long a token is good for. The kubelet renews it.
	tokenSeconds = 3607
)

// Waiter is how the init container is run that holds a pod's own containers back.
type Waiter struct {
	// Image is that of cmd/start-gate.
	Image string
	// ImagePullPolicy of it; empty for the cluster's default.
	ImagePullPolicy corev1.PullPolicy
	// Resources are its requests and its limits: with less a pod that is Guaranteed would
	// be Burstable.
	Resources corev1.ResourceList
	// APIServer is the host and port of kube-apiserver for it; empty for those that each
	// container is given.
	APIServer string
}

// Wait is what the pods of a clique wait for.
type Wait struct {
	// Container is the name of the init container; empty when they do not wait.
	Container string
	// Timeout is that of the start barrier; 0 for none.
	Timeout time.Duration
}

// addWaiter puts the waiter behind the user's own init containers: what they prepare may
// take long, and a pod has started when they are done.
func addWaiter(spec *corev1.PodSpec, clique *grovev1alpha1.PodClique, c Context) {
	if c.Wait.Container == "" {
		return
	}
	gate := naming.Replica(c.Set, c.Replica)
	container := corev1.Container{
		Name:            c.Wait.Container,
		Image:           c.Waiter.Image,
		ImagePullPolicy: c.Waiter.ImagePullPolicy,
		Args: []string{
			"--namespace=" + clique.Namespace, "--gate=" + gate, "--podclique=" + clique.Name,
			"--attempt=" + labels.Index(clique.Spec.Attempt), "--timeout=" + c.Wait.Timeout.String(), "--file=" + gateFolder + "/" + GateFile,
		},
		Resources: corev1.ResourceRequirements{Requests: c.Waiter.Resources, Limits: c.Waiter.Resources},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true), RunAsNonRoot: ptr.To(true),
			RunAsUser: ptr.To[int64](65532), RunAsGroup: ptr.To[int64](65532),
			Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		VolumeMounts: []corev1.VolumeMount{
			{Name: naming.BarrierVolume, MountPath: gateFolder, ReadOnly: true},
			{Name: naming.TokenVolume, MountPath: accountFolder, ReadOnly: true},
		},
	}
	if host, port, err := net.SplitHostPort(c.Waiter.APIServer); err == nil {
		container.Env = []corev1.EnvVar{{Name: "KUBERNETES_SERVICE_HOST", Value: host}, {Name: "KUBERNETES_SERVICE_PORT", Value: port}}
	}
	spec.InitContainers = append(spec.InitContainers, container)
	spec.Volumes = append(spec.Volumes,
		corev1.Volume{Name: naming.BarrierVolume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: naming.GateConfigMap(c.Set, c.Replica)}, Optional: ptr.To(true),
		}}},
		corev1.Volume{Name: naming.TokenVolume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			// The waiter is no user's container: its own user may read it.
			DefaultMode: ptr.To[int32](0o444),
			Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: ptr.To[int64](tokenSeconds)}},
				{ConfigMap: &corev1.ConfigMapProjection{
					LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
				}},
			},
		}}},
	)
}
