package faults

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// blindfold is a rule that breaks the watch of pods when the controller manager begins to
// delete some, and lets no other begin until it is lifted: a network that fails for a
// moment at the wrong time.
type blindfold struct {
	mu      sync.Mutex
	on      bool
	breaks  map[*http.Request]context.CancelFunc
	deletes int
}

func (b *blindfold) rule(r *http.Request, passOn func()) {
	switch {
	case strings.Contains(r.URL.Path, "/pods") && r.Method == http.MethodDelete:
		b.cover()
		passOn()
	case r.URL.Path == "/api/v1/pods":
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		if !b.begin(r, cancel) {
			return
		}
		*r = *r.WithContext(ctx)
		passOn()
	default:
		passOn()
	}
}

// begin notes a list or a watch of all pods, and says whether it may be.
func (b *blindfold) begin(r *http.Request, cancel context.CancelFunc) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.on {
		return false
	}
	if b.breaks == nil {
		b.breaks = map[*http.Request]context.CancelFunc{}
	}
	b.breaks[r] = cancel
	return true
}

// cover breaks what is under way.
func (b *blindfold) cover() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.deletes++; b.deletes > 1 {
		return
	}
	b.on = true
	for _, cancel := range b.breaks {
		cancel()
	}
}

func (b *blindfold) lift() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.on = false
}

const lonely = `
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: job}
spec:
  replicas: 1
  workloadType: Training
  trainingSpec: {maxRestarts: 1}
  template:
    cliques:
      - {name: worker, spec: {replicas: 3, podSpec: {containers: [{name: main, image: example.com/trainer}]}}}
`

// A restart goes on though the old pods went while nobody watched, and the server that
// comes back can only list what there is: nothing else ever happens to a pod of Copse's
// in this cluster that would tell the cache how far it is.
func TestARestartGoesOnThoughTheOldPodsWentUnseen(t *testing.T) {
	if !*deep {
		t.Skip("it waits for kube-apiserver, and for the back-off of whoever watches it, longer than the fast tier has time: FAULTS_DEEP=1 runs it")
	}
	gateway, blind := newGateway(t), &blindfold{}
	startManager(t, gateway)
	gateway.obey(blind.rule)
	ns := cluster.Namespace(t)
	ns.Apply(lonely)
	g := &gangs{t: t, ns: ns}
	before := g.ready("job", 3, "0")
	g.exit(before[0], 1)
	g.try(func(ctx context.Context) error {
		pods, err := ns.Pods(ctx)
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("%d old pods are there", len(pods))
		}
		return err
	})
	// It has forgotten the revisions that the watch would go on from.
	cluster.Outage(t, "kube-apiserver", 0, blind.lift)

	after := g.ready("job", 3, "1")
	for _, pod := range after {
		g.exit(pod, 0)
	}
	if n := ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetSucceeded, time.Minute).Status.RestartCount; n != 1 {
		t.Errorf("restartCount is %d", n)
	}
}
