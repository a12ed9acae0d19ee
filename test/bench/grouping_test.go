package bench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/test/framework"
)

var (
	groupedPods = flag.Int("bench.grouped", 1000, "pods whose admission is timed, in a namespace that has them grouped, and as many in one that has not")
	groupedRate = flag.Int("bench.grouped-rate", 50, "pods of each that are created in a second")
)

// podsOfOwner is how many pods an owner has: the first of them pays for the look at it.
const podsOfOwner = 10

// admissions times the creation of pods in one namespace. They are not kept, so neither the
// scheduler nor etcd is in what is measured.
type admissions struct {
	ns     *framework.Namespace
	owners []batchv1.Job

	mu   sync.Mutex
	took []time.Duration
	errs []error
}

func newAdmissions(t *testing.T, pods int) *admissions {
	t.Helper()
	a := &admissions{ns: cluster.Namespace(t, framework.Unrecorded("it has none of our workloads"))}
	for i := range (pods + podsOfOwner - 1) / podsOfOwner {
		template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}}}}
		job, err := cluster.Kube.BatchV1().Jobs(a.ns.Name).Create(t.Context(), &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("job-%d", i)}, Spec: batchv1.JobSpec{Suspend: ptr.To(true), Template: template},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		a.owners = append(a.owners, *job)
	}
	return a
}

// create creates a pod, and says whether it is in a group.
func (a *admissions) create(ctx context.Context, i int) (grouped bool, err error) {
	owner := &a.owners[i/podsOfOwner%len(a.owners)]
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: owner.Name + "-", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, batchv1.SchemeGroupVersion.WithKind("Job"))}},
		Spec:       owner.Spec.Template.Spec,
	}
	created, err := cluster.Kube.CoreV1().Pods(a.ns.Name).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err == nil && created.Spec.SchedulingGroup != nil, err
}

func (a *admissions) measure(ctx context.Context, i int, wantGrouped bool) {
	began := time.Now()
	grouped, err := a.create(ctx, i)
	took := time.Since(began)
	if err == nil && grouped != wantGrouped {
		err = fmt.Errorf("pod %d is grouped: %t", i, grouped)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.took, a.errs = append(a.took, took), append(a.errs, err)
}

// Pods of two namespaces are created in turn, at a fixed rate whatever the answers take. What
// they take more where pods are grouped is what grouping adds.
func TestWhatGroupingAddsToAdmission(t *testing.T) {
	plain, grouped := newAdmissions(t, *groupedPods), newAdmissions(t, *groupedPods)
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: podgrouper.TrainPriorityClass}, Value: 50}
	if _, err := cluster.Kube.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	grouped.ns.Kubectl("label", "namespace", grouped.ns.Name, podgrouper.NamespaceLabel+"="+podgrouper.NamespaceEnabled)
	grouped.ns.Eventually(time.Minute, func(ctx context.Context) error {
		is, err := grouped.create(ctx, *groupedPods-1)
		if err == nil && !is {
			err = errors.New("pods are not grouped")
		}
		return err
	})
	// The first of each pay for connections.
	for range 20 {
		if _, err := plain.create(t.Context(), *groupedPods-1); err != nil {
			t.Fatal(err)
		}
		if _, err := grouped.create(t.Context(), *groupedPods-1); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	ticker := time.NewTicker(time.Second / time.Duration(2**groupedRate))
	defer ticker.Stop()
	for i := range *groupedPods {
		<-ticker.C
		all.Go(func() { plain.measure(t.Context(), i, false) })
		<-ticker.C
		all.Go(func() { grouped.measure(t.Context(), i, true) })
	}
	all.Wait()
	if err := errors.Join(append(plain.errs, grouped.errs...)...); err != nil {
		t.Fatal(err)
	}
	slices.Sort(plain.took)
	slices.Sort(grouped.took)
	added := func(p int) time.Duration {
		return (percentile(grouped.took, p) - percentile(plain.took, p)).Round(10 * time.Microsecond)
	}
	t.Logf("admission of %d pods at %d a second: p50 %s, p99 %s without grouping; p50 %s, p99 %s with it; it adds %s at p50 and %s at p99 (wanted: at most 5 ms and 30 ms)",
		*groupedPods, *groupedRate, milliseconds(plain.took, 50), milliseconds(plain.took, 99), milliseconds(grouped.took, 50), milliseconds(grouped.took, 99), added(50), added(99))
}
