package framework

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// Follow watches what there is from a version on, and comes back to the server when it ends
// the watch, as servers do with clients that are slow. An event of type Error ends it: what
// has happened meanwhile cannot be told.
func Follow(ctx context.Context, t *testing.T, version string, open func(context.Context, metav1.ListOptions) (watch.Interface, error)) watch.Interface {
	t.Helper()
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, version, &cache.ListWatch{WatchFuncWithContext: open})
	if err != nil {
		t.Fatal(err)
	}
	return watcher
}
