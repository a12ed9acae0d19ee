package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
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
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			ns := cluster.Namespace(t)
			ns.PlayWaiters()
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
