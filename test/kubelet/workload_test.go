package kubelet

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/test/framework"
)

// patience bounds waits for what comes in seconds on a machine that has nothing else to do.
const patience = 3 * time.Minute

// attemptVariable has the attempt of a pod, for containers that behave in one as they do
// not in the next.
const attemptVariable = "ATTEMPT"

// indexVariable has the index of a pod in its clique.
const indexVariable = "GROVE_PCLQ_POD_INDEX"

// runs is a container of the test program that takes steps.
func runs(name string, steps ...string) corev1.Container {
	return corev1.Container{
		Name:            name,
		Image:           cluster.RealNode.Image,
		ImagePullPolicy: corev1.PullNever,
		Args:            steps,
		Env: []corev1.EnvVar{{Name: attemptVariable, ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: fmt.Sprintf("metadata.labels['%s']", labels.RestartAttempt)},
		}}},
	}
}

// onRealNode is a pod for the real node.
func onRealNode(containers ...corev1.Container) corev1.PodSpec {
	return corev1.PodSpec{
		NodeSelector: map[string]string{"type": "kubelet"},
		Tolerations:  []corev1.Toleration{{Key: "type", Value: "kubelet", Effect: corev1.TaintEffectNoSchedule}},
		Containers:   containers,
	}
}

// probe asks the test program every second.
func probe(step string) *corev1.Probe {
	return &corev1.Probe{
		PeriodSeconds:    1,
		TimeoutSeconds:   5,
		FailureThreshold: 1,
		ProbeHandler:     corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/testpod", step}}},
	}
}

// set is a set named job of one clique of workers.
func set(workload grovev1alpha1.WorkloadType, workers int32, pod corev1.PodSpec) *grovev1alpha1.PodCliqueSet {
	return &grovev1alpha1.PodCliqueSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: grovev1alpha1.SchemeGroupVersion.String(), Kind: "PodCliqueSet"},
		ObjectMeta: metav1.ObjectMeta{Name: "job"},
		Spec: grovev1alpha1.PodCliqueSetSpec{
			Replicas:     1,
			WorkloadType: workload,
			Template: grovev1alpha1.PodCliqueSetTemplateSpec{
				Cliques: []grovev1alpha1.PodCliqueTemplateSpec{{
					Name: "worker",
					Spec: grovev1alpha1.PodCliqueSpec{RoleName: "worker", Replicas: workers, PodSpec: pod},
				}},
			},
		},
	}
}

// apply applies a set through kubectl, as a user does.
func apply(t *testing.T, ns *framework.Namespace, pcs *grovev1alpha1.PodCliqueSet) {
	t.Helper()
	manifest, err := json.Marshal(pcs)
	if err != nil {
		t.Fatal(err)
	}
	ns.Apply(string(manifest))
}

// letGo makes a file that a container waits for. A container that ends by that takes the
// command with it, whose work is done then.
func letGo(t *testing.T, ns *framework.Namespace, pod *corev1.Pod, container, path string) {
	t.Helper()
	out, err := ns.Exec(pod, container, "touch="+path)
	if err != nil && !strings.Contains(out, "exit code 137") {
		t.Fatalf("touch %s in %s: %v: %s", path, pod.Name, err, out)
	}
}

// podOf is the pod of an index.
func podOf(t *testing.T, pods []corev1.Pod, index string) *corev1.Pod {
	t.Helper()
	for i := range pods {
		if pods[i].Labels[labels.PodIndex] == index {
			return &pods[i]
		}
	}
	t.Fatalf("there is no pod of index %s", index)
	return nil
}
