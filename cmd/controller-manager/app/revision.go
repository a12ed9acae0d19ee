package app

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// revisionInterval is how often the revision of our storage is asked for.
const revisionInterval = 5 * time.Second

// revisionWatch ends the process when the revision of our storage falls, which it does when
// somebody accepts an older etcd (D25). What this process knows is then of a history that is
// lost: its caches hold what never was, and its reads wait for revisions that are not there
// yet. A new process knows nothing.
type revisionWatch struct {
	reader client.Reader
	// last is the highest revision that was seen, empty at first.
	last string
}

// Start asks until ctx ends. It fails when the revision has fallen.
func (w *revisionWatch) Start(ctx context.Context) error {
	err := wait.PollUntilContextCancel(ctx, revisionInterval, true, func(ctx context.Context) (bool, error) {
		return false, w.look(ctx)
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// look asks once. A server that does not answer is asked again later.
func (w *revisionWatch) look(ctx context.Context) error {
	list := &grovev1alpha1.PodCliqueSetList{}
	if err := w.reader.List(ctx, list, client.Limit(1)); err != nil {
		klog.V(2).InfoS("The revision of the storage cannot be asked for", "err", err)
		return nil
	}
	if w.last != "" {
		order, err := resourceversion.CompareResourceVersion(list.ResourceVersion, w.last)
		if err != nil {
			return fmt.Errorf("compare revisions of the storage: %w", err)
		}
		if order < 0 {
			return fmt.Errorf("the revision of the storage fell from %s to %s: it was replaced by an older one, and this process has to start anew", w.last, list.ResourceVersion)
		}
	}
	w.last = list.ResourceVersion
	return nil
}
