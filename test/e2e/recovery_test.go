package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/test/framework"
)

// Ten workers fail and are replaced. The failures of two of them are kept in short with the
// next failure, and are still known when one of these two fails again: it waits for twice as
// long (D8, D10).
func TestAnIndexThatRecoveredLongBeforeOthersIsRemembered(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	const workers, failing = 12, 10
	ns.Apply(strings.Replace(restartable(1, workers, "", ""), fmt.Sprintf("replicas: %d\n", workers), fmt.Sprintf("replicas: %d\n          minAvailable: 1\n", workers), 1))
	first := ns.WaitForPods(workers+1, time.Minute, inAttempt("0"))
	waitWasAvailable(ns, "job-0-worker")
	clique := func(ctx context.Context) (*grovev1alpha1.PodCliqueStatus, error) {
		clique, err := cluster.Copse.GroveV1alpha1().PodCliques(ns.Name).Get(ctx, "job-0-worker", metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return &clique.Status, nil
	}
	for index := range failing {
		fail(ns, podOf(t, first, "job-0-worker", fmt.Sprint(index)).Name, 1)
	}
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		status, err := clique(ctx)
		if err != nil {
			return err
		}
		well := 0
		for _, failed := range status.FailedIndexes {
			if failed.RecoveredTime != nil {
				well++
			}
		}
		if well != failing {
			return fmt.Errorf("%d of %d indexes are well again", well, failing)
		}
		return nil
	})
	fail(ns, podOf(t, first, "job-0-worker", fmt.Sprint(failing)).Name, 1)
	var short string
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		status, err := clique(ctx)
		if err != nil {
			return err
		}
		if len(status.RecoveredIndexes) != failing-8 || len(status.FailedIndexes) != 9 {
			return fmt.Errorf("%d failures in short, %d in full", len(status.RecoveredIndexes), len(status.FailedIndexes))
		}
		short, _, _ = strings.Cut(status.RecoveredIndexes[0], "@")
		return nil
	})
	now, err := ns.Pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again := podOf(t, now, "job-0-worker", short)
	failedAt := time.Now()
	fail(ns, again.Name, 1)
	ns.WaitForPods(1, time.Minute, func(pod *corev1.Pod) bool {
		return pod.Name == again.Name && pod.UID != again.UID && framework.IsReady(pod)
	})
	// The time of a failure is told in whole seconds.
	if waited := time.Since(failedAt); waited < 19*time.Second {
		t.Errorf("index %s, which failed for the second time, was replaced after %v", short, waited)
	}
}
