package framework

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// nudgeInterval is how long KWOK may take for a step before it is reminded.
const nudgeInterval = 15 * time.Second

// AwaitExits waits until every pod of the namespace that is told to exit has ended. KWOK
// drops a step whose write fails, as some do when it is killed or what it looks at is out
// of date, and takes it up again at the next event of the pod only: so there is one.
func (n *Namespace) AwaitExits(timeout time.Duration) {
	n.t.Helper()
	reminded := time.Now()
	n.Eventually(timeout, func(ctx context.Context) error {
		pods, err := n.Pods(ctx)
		if err != nil {
			return err
		}
		var late []string
		for i := range pods {
			if pods[i].Annotations["kwok.copse.dev/exit-after"] != "" && pods[i].Status.Phase != corev1.PodSucceeded && pods[i].Status.Phase != corev1.PodFailed {
				late = append(late, pods[i].Name)
			}
		}
		if len(late) == 0 {
			return nil
		}
		if time.Since(reminded) >= nudgeInterval {
			reminded = time.Now()
			n.t.Logf("KWOK is reminded of pods %s", strings.Join(late, ", "))
			n.Kubectl(append(append([]string{"annotate", "pods", "--overwrite"}, late...), fmt.Sprintf("kwok.copse.dev/reminded=%d", reminded.Unix()))...)
		}
		return fmt.Errorf("pods %s have not ended", strings.Join(late, ", "))
	})
}
