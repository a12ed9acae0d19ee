package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
)

// Every example runs as its comments say: a training example to Succeeded, an inference
// example until all of it is available. None of them is warned about.
func TestEveryExampleRuns(t *testing.T) {
	installKAI(t)
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(cluster.Root(), "artifacts", "examples", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		if name := filepath.Base(file); strings.HasPrefix(name, "group-") || strings.HasPrefix(name, "admission-") {
			// Other workloads, below, and what refuses sets, in test/integration.
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			ns := cluster.Namespace(t)
			ns.PlayWaiters()
			if class := "gpu.example.com"; strings.Contains(string(text), class) {
				publishDevices(t, class, 3)
			}
			if strings.Contains(string(text), "schedulerName: kai-scheduler") {
				node := strings.TrimSuffix(filepath.Base(file), ".yaml")
				addNode(t, node, "example.com/"+node, "1")
				playKAI(t, ns, node)
			}
			if out := ns.Apply(string(text), "--server-side"); strings.Contains(out, "Warning") {
				t.Errorf("the example is warned about: %s", out)
			}
			ns.Eventually(2*time.Minute, func(ctx context.Context) error {
				sets, err := cluster.Copse.GroveV1alpha1().PodCliqueSets(ns.Name).List(ctx, metav1.ListOptions{})
				if err != nil || len(sets.Items) == 0 {
					return fmt.Errorf("no set: %w", err)
				}
				for i := range sets.Items {
					if err := isWell(&sets.Items[i]); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}

// The examples of groups of other workloads run as groups, in a namespace that asks for it.
func TestEveryExampleOfAGroupRuns(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(cluster.Root(), "artifacts", "examples", "group-*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			ns := groupedNamespace(t)
			ns.Apply(string(text))
			ns.Eventually(time.Minute, func(ctx context.Context) error {
				groups, err := cluster.Copse.SchedulerV1alpha1().PodGroups(ns.Name).List(ctx, metav1.ListOptions{})
				if err != nil || len(groups.Items) != 1 {
					return fmt.Errorf("%d groups: %w", len(groups.Items), err)
				}
				group := &groups.Items[0]
				if !meta.IsStatusConditionTrue(group.Status.Conditions, schedulerv1alpha1.PodGroupConditionScheduled) {
					return fmt.Errorf("the group is %+v", group.Status)
				}
				if *group.Spec.MinMember < 3 {
					return fmt.Errorf("the minimum is %d", *group.Spec.MinMember)
				}
				pods, err := ns.Pods(ctx)
				if err != nil {
					return err
				}
				for i := range pods {
					if pods[i].Spec.SchedulingGroup == nil {
						return fmt.Errorf("pod %s is in no group of the scheduler's", pods[i].Name)
					}
				}
				return nil
			})
		})
	}
}

func isWell(pcs *grovev1alpha1.PodCliqueSet) error {
	status := &pcs.Status
	if pcs.Spec.WorkloadType == grovev1alpha1.WorkloadTypeTraining {
		if status.Phase != grovev1alpha1.PodCliqueSetSucceeded {
			return fmt.Errorf("%s is %s", pcs.Name, status.Phase)
		}
		return nil
	}
	if status.AvailableReplicas != pcs.Spec.Replicas || status.AvailablePods != status.Pods || status.Pods == 0 {
		return fmt.Errorf("%s has %d of %d replicas and %d of %d pods available", pcs.Name, status.AvailableReplicas, pcs.Spec.Replicas, status.AvailablePods, status.Pods)
	}
	return nil
}
