package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/test/framework"
)

// Whatever process is killed while a job runs, and started again, the job ends right,
// with each of its pods made once. The tests are not parallel: others would see the
// fault too.
func TestAJobEndsRightThoughAProcessIsKilledUnderIt(t *testing.T) {
	for _, component := range []string{
		"copse-controller-manager", "copse-apiserver", "copse-etcd",
		"kube-apiserver", "kube-scheduler", "kube-controller-manager", "etcd", "kwok",
	} {
		t.Run(component, func(t *testing.T) {
			ns := cluster.Namespace(t)
			ns.Apply(training("job", 1, 4, "4s"))
			before := ns.WaitForPods(4, time.Minute, framework.IsReady)
			cluster.Kill(t, component)
			if component == "kwok" {
				ns.AwaitExits(2 * time.Minute)
			}

			pcs := ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetSucceeded, 2*time.Minute)
			if pcs.Status.RestartCount != 0 {
				t.Errorf("restartCount is %d", pcs.Status.RestartCount)
			}
			after := ns.WaitForPods(4, time.Minute, func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodSucceeded })
			for i := range before {
				if find(after, before[i].Spec.Hostname).UID != before[i].UID {
					t.Errorf("pod %s was made anew", before[i].Name)
				}
			}
		})
	}
}

// A controller manager that is killed while it makes pods goes on where it was: no pod
// is made twice, none is missing.
func TestPodsAreMadeOnceThoughTheControllerManagerIsKilledWhileItMakesThem(t *testing.T) {
	ns := cluster.Namespace(t)
	ns.Apply(training("job", 1, 200, "1s"))
	ns.WaitForPods(1, time.Minute, func(pod *corev1.Pod) bool { return pod.Spec.Hostname == "job-0-worker-0" })
	cluster.Kill(t, "copse-controller-manager")
	ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetSucceeded, 3*time.Minute)
	pods, err := ns.Pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i := range pods {
		if seen[pods[i].Spec.Hostname] {
			t.Errorf("there are two pods %s", pods[i].Spec.Hostname)
		}
		seen[pods[i].Spec.Hostname] = true
	}
	if len(seen) != 200 {
		t.Errorf("%d pods were made", len(seen))
	}
}

// With Copse's API server down, pods go on, and so does deleting them through the
// garbage collector of other kinds; when it is back, everything is as it was.
func TestPodsOutliveAnOutageOfTheAPIServer(t *testing.T) {
	ns := cluster.Namespace(t)
	ns.Apply(training("job", 1, 4, "1h"))
	before := ns.WaitForPods(4, time.Minute, framework.IsReady)
	cluster.Stop(t, "copse-apiserver")
	// The finished pods are seen when the server is back.
	for i := range before {
		ns.Kubectl("annotate", "pod", before[i].Name, "--overwrite", "kwok.copse.dev/exit-after=0s")
	}
	ns.WaitForPods(4, time.Minute, func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodSucceeded })
	cluster.Start(t, "copse-apiserver")
	ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetSucceeded, 2*time.Minute)
}

// A controller manager that starts before the API it needs waits for it.
func TestTheControllerManagerWaitsForTheAPI(t *testing.T) {
	ns := cluster.Namespace(t)
	cluster.Stop(t, "copse-controller-manager")
	ns.Apply(training("job", 1, 2, "1s"))
	cluster.Stop(t, "copse-apiserver")
	started := make(chan struct{})
	go func() {
		defer close(started)
		// Ready only when the API is there.
		cluster.Start(t, "copse-controller-manager")
	}()
	cluster.Start(t, "copse-apiserver")
	<-started
	ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetSucceeded, 2*time.Minute)
}
