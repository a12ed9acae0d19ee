// Package confirm looks at a breach past the cache before an attempt is ended because of
// it (D4). What is looked at, and what follows, is for pkg/gang to say.
package confirm

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/internal/live"
	"github.com/copse-dev/copse/pkg/gang"
)

// Breaches says that all cliques are breached still. It returns false when one is not, or
// not in the same attempt: its event is on the way then.
func Breaches(ctx context.Context, reader client.Reader, cliques []*grovev1alpha1.PodClique, now time.Time) (bool, error) {
	for _, clique := range cliques {
		ok, err := breach(ctx, reader, clique, now)
		if err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

func breach(ctx context.Context, reader client.Reader, clique *grovev1alpha1.PodClique, now time.Time) (bool, error) {
	current := &grovev1alpha1.PodClique{}
	if err := reader.Get(ctx, client.ObjectKeyFromObject(clique), current); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read clique %s live: %w", clique.Name, err)
	}
	if !gang.MayConfirm(clique, current) {
		return false, nil
	}
	if gang.BreachedByFailures(current, now) {
		return true, nil
	}
	pods, err := live.CliquePods(ctx, reader, current)
	if err != nil {
		return false, err
	}
	return gang.StillBreached(current, gang.NewPods(current, pods), now), nil
}
