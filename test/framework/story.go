package framework

import (
	"context"
	"fmt"
	"time"

	"github.com/copse-dev/copse/test/story"
)

// Describes waits until kubectl describe tells of a set what happened and when: whole lines, in
// the words of package story.
func (n *Namespace) Describes(set string, lines ...string) {
	n.t.Helper()
	n.DescribesWithin(30*time.Second, set, lines...)
}

// DescribesWithin waits for longer.
func (n *Namespace) DescribesWithin(timeout time.Duration, set string, lines ...string) {
	n.t.Helper()
	n.Eventually(timeout, func(context.Context) error {
		text := n.Kubectl("describe", "pcs", set)
		told, err := story.Read(text, time.Now())
		if err == nil {
			err = told.Tells(lines...)
		}
		if err != nil {
			return fmt.Errorf("kubectl describe pcs %s: %w\n%s", set, err, text)
		}
		return nil
	})
}
