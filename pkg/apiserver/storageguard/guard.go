package storageguard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// raiseInterval is how often at most the recorded revision is raised (D25).
	raiseInterval = 10 * time.Second
	// recordLifetime is how old what was read of the ConfigMap may be before an answer says
	// that something does not exist (D25).
	recordLifetime = time.Second
	// lookInterval is between looks at etcd that nobody asks for.
	lookInterval = time.Second
	// evidenceInterval is between lists of all pods while those keep the server shut.
	evidenceInterval = 10 * time.Second
	// idleAcceptance is how long an acceptance stays that nothing here asks for: another
	// server may.
	idleAcceptance = time.Minute
	// retryInterval is between tries while something cannot be read.
	retryInterval = 250 * time.Millisecond
)

// Options are what a guard needs.
type Options struct {
	// Storage is where the objects are.
	Storage storagebackend.Config
	// Cluster connects to kube-apiserver.
	Cluster *rest.Config
	// Namespace is where the ConfigMap is.
	Namespace string
}

// Guard looks at etcd and the cluster, and knows whether the server may answer.
type Guard struct {
	etcd      *identity
	cluster   *cluster
	events    *events
	clock     clock.Clock
	configMap string

	// owners and replaced are set before Run.
	owners   Owners
	replaced func(error)

	// shut is why the server is shut, nil while it is open.
	shut atomic.Pointer[Decision]
	// revision is that of etcd at the last look that found the storage right.
	revision atomic.Int64
	// begun counts the looks that have begun.
	begun atomic.Int64

	// mu is held during a look: there is one at a time.
	mu sync.Mutex
	// ended is the number of the last look, and failure what it failed with.
	ended   int64
	failure error
	memory  Memory
	// last is the last reading of etcd, and changed says that an earlier one was of another
	// history than its successor.
	last    *Reading
	changed bool
	// unnamed says that etcd had no identity when this process looked first: there was no
	// record to lose.
	unnamed bool
	// read and record are what was last read of the ConfigMap.
	read      *corev1.ConfigMap
	record    Record
	readAt    time.Time
	writtenAt time.Time
	// idleSince is since when an acceptance is seen that nothing asks for.
	idleSince time.Time
	// evidence is what was last found, while that keeps the server shut.
	evidence   *Evidence
	evidenceAt time.Time
}

// New returns a guard that keeps its server shut until Run has found the storage right.
func New(o Options) (*Guard, error) {
	etcd, err := newIdentity(o.Storage)
	if err != nil {
		return nil, err
	}
	instance, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name of this host: %w", err)
	}
	c, err := newCluster(o.Cluster, o.Namespace)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return newGuard(etcd, c, instance, clock.RealClock{}), nil
}

func newGuard(etcd *identity, c *cluster, instance string, clk clock.Clock) *Guard {
	e := &events{core: c.core, namespace: c.namespace, instance: instance}
	g := &Guard{etcd: etcd, cluster: c, events: e, clock: clk, configMap: c.namespace + "/" + ConfigMapName}
	g.shut.Store(&Decision{Step: Shut, Reason: ReasonUnverified, Message: "the storage has not been looked at yet"})
	return g
}

// Watch says how owners are listed, and whom to tell when etcd was replaced under this
// process, which then has to end and to be started anew. It is called before Run.
func (g *Guard) Watch(owners Owners, replaced func(error)) {
	g.owners, g.replaced = owners, replaced
}

// Run looks at the storage until ctx ends.
func (g *Guard) Run(ctx context.Context) {
	for {
		timer := g.clock.NewTimer(g.look(ctx))
		g.events.send(ctx)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
	}
}

// Close ends the connection to etcd, when no request is left to verify for.
func (g *Guard) Close() error {
	return g.etcd.client.Close()
}

// look looks once, and returns when to look again.
func (g *Guard) look(ctx context.Context) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	lifetime := recordLifetime
	if g.shut.Load() == nil {
		lifetime = raiseInterval
	}
	if err := g.check(ctx, lifetime); err != nil {
		klog.V(2).InfoS("The storage cannot be verified", "err", err)
		return retryInterval
	}
	return lookInterval
}

// Check is the readiness of the server: nil while it is open.
func (g *Guard) Check(*http.Request) error {
	if decision := g.shut.Load(); decision != nil {
		return fmt.Errorf("%s: %s", decision.Reason, decision.Message)
	}
	return nil
}

// Verify looks again at a storage that was found right. The look begins after the call,
// so that what was read from the storage before the call came from what is looked at;
// calls that come during a look share the next one.
func (g *Guard) Verify(ctx context.Context) error {
	called := g.begun.Load()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended <= called {
		// A client that goes away must not fail the others that share the look.
		_ = g.check(context.WithoutCancel(ctx), recordLifetime)
	}
	if g.failure != nil {
		return &Decision{Step: Shut, Reason: ReasonUnverified, Message: fmt.Sprintf("it cannot be verified that the storage is the right one: %v", g.failure)}
	}
	if decision := g.shut.Load(); decision != nil {
		return decision
	}
	return nil
}

// check reads, decides and acts. It fails when something could not be read or written;
// then an open server stays open, and a shut one shut.
func (g *Guard) check(ctx context.Context, lifetime time.Duration) error {
	number := g.begun.Add(1)
	err := g.try(ctx, lifetime)
	g.ended, g.failure = number, err
	if err == nil {
		return nil
	}
	// What was read may be out of date: a conflict says so.
	g.readAt = time.Time{}
	if !g.memory.Verified && ctx.Err() == nil {
		g.close(Decision{Step: Shut, Reason: ReasonUnverified, Message: fmt.Sprintf("the storage cannot be verified, which a start needs: %v", err)})
	}
	return err
}

func (g *Guard) try(ctx context.Context, lifetime time.Duration) error {
	reading, err := g.compare(ctx, lifetime)
	if err != nil {
		return err
	}
	situation := Situation{Reading: reading, Record: g.record, Memory: g.memory, Evidence: g.recentEvidence(), ConfigMap: g.configMap}
	decision := Decide(situation)
	// What was found a while ago keeps the server shut, and never opens it.
	if decision.Step == Look || (decision.Step != Shut && situation.Evidence != nil) {
		if g.changed {
			// Owners are listed from caches that are filled from the etcd before. The next
			// process looks.
			g.end()
			return nil
		}
		if situation.Evidence, err = g.gather(ctx); err != nil {
			return err
		}
		// That takes its time, and waits for an etcd that is away: the owners may be of another
		// one than was read before, and another server may have been the first to record.
		if reading, err = g.compare(ctx, 0); err != nil {
			return err
		}
		if g.changed {
			g.end()
			return nil
		}
		situation.Reading, situation.Record = reading, g.record
		decision = Decide(situation)
	}
	return g.act(ctx, reading, decision)
}

func (g *Guard) recentEvidence() *Evidence {
	if g.evidence == nil || g.clock.Since(g.evidenceAt) >= evidenceInterval {
		return nil
	}
	return g.evidence
}

// gather asks the cluster. Pods are listed before their owners: an owner that was made
// meanwhile is found.
func (g *Guard) gather(ctx context.Context) (*Evidence, error) {
	definitions, err := g.cluster.definitions(ctx)
	if err != nil {
		return nil, err
	}
	pods, err := g.cluster.dependents(ctx)
	if err != nil {
		return nil, err
	}
	kinds := map[string]bool{}
	for _, pod := range pods {
		for _, owner := range pod.owners {
			kinds[owner.kind] = true
		}
	}
	have, err := g.owners(ctx, kinds)
	if err != nil {
		return nil, err
	}
	g.evidence, g.evidenceAt = &Evidence{Definitions: definitions, Findings: findings(pods, have)}, g.clock.Now()
	return g.evidence, nil
}

// act does what was decided.
func (g *Guard) act(ctx context.Context, reading Reading, decision Decision) error {
	switch decision.Step {
	case Shut:
		g.close(decision)
		return g.recordFall(ctx, decision)
	case Bootstrap:
		current, err := g.identify(ctx)
		if err != nil {
			return err
		}
		if err := g.write(ctx, Record{ID: current.ID, Revision: current.Revision, Accepted: g.record.Accepted}); err != nil {
			return err
		}
		klog.InfoS("The storage has an identity now", "id", current.ID, "configMap", g.configMap)
		return g.open(current)
	case Recreate:
		// Without a record another server may have given etcd its identity just now.
		if g.memory.Verified || !g.unnamed {
			g.events.warn("StorageRecordRecreated",
				fmt.Sprintf("There was no record of the storage; it is recorded now as found in etcd, with the identity %s. Without the record a wrong etcd is noticed late, or not at all.", reading.ID))
		}
		if err := g.write(ctx, Record{ID: reading.ID, Revision: g.highest(reading), Accepted: g.record.Accepted}); err != nil {
			return err
		}
		return g.open(reading)
	case Accept:
		return g.accept(ctx, reading)
	case Open:
		if err := g.raise(ctx, reading); err != nil {
			return err
		}
		return g.open(reading)
	}
	return fmt.Errorf("the decision %q does not follow from evidence", decision.Step)
}

// identify gives etcd an identity, or finds that of another server that was faster.
func (g *Guard) identify(ctx context.Context) (Reading, error) {
	reading, err := g.etcd.bootstrap(ctx, string(uuid.NewUUID()))
	if err == nil {
		g.follow(reading)
	}
	return reading, err
}

// accept records what somebody accepts. The next look opens the server by it.
func (g *Guard) accept(ctx context.Context, reading Reading) error {
	acceptance := g.record.Accept
	if reading.ID == "" {
		var err error
		if reading, err = g.identify(ctx); err != nil {
			return err
		}
	}
	g.events.warn("StorageAccepted",
		fmt.Sprintf("The storage %s was accepted by annotation. Pods that it does not know are deleted.", acceptance))
	if err := g.write(ctx, Record{ID: reading.ID, Revision: reading.Revision, Accepted: g.clock.Now().UTC()}); err != nil {
		return err
	}
	g.evidence = nil
	return g.try(ctx, recordLifetime)
}

// recordFall records the revision that etcd has fallen from: this process alone knows it,
// and the next one has to know it too.
func (g *Guard) recordFall(ctx context.Context, decision Decision) error {
	if decision.Reason != ReasonRevisionFell || g.record.ID != g.memory.ID || g.record.Revision >= g.memory.Revision {
		return nil
	}
	fallen := g.record
	fallen.Revision = g.memory.Revision
	return g.write(ctx, fallen)
}

// raise records how far etcd is, now and then; of several servers the one that has seen
// the highest revision wins. An acceptance that nothing asks for goes: it would count at
// the next restore.
func (g *Guard) raise(ctx context.Context, reading Reading) error {
	now := g.clock.Now()
	if g.record.Accept == "" {
		g.idleSince = time.Time{}
	} else if g.idleSince.IsZero() {
		g.idleSince = now
	}
	idle := !g.idleSince.IsZero() && now.Sub(g.idleSince) >= idleAcceptance
	raises := reading.Revision > g.record.Revision && (g.writtenAt.IsZero() || now.Sub(g.writtenAt) >= raiseInterval)
	if !raises && !idle {
		return nil
	}
	raised := g.record
	raised.Revision = max(raised.Revision, reading.Revision)
	if idle {
		raised.Accept = ""
	}
	// One that fails is not tried at once again either.
	g.writtenAt = now
	if err := g.write(ctx, raised); err != nil {
		if !g.memory.Verified {
			return err
		}
		// Another server wrote it meanwhile, or the cluster is away.
		klog.V(2).InfoS("The revision of the storage is not recorded", "err", err)
		g.readAt = time.Time{}
	}
	return nil
}

func (g *Guard) highest(reading Reading) int64 {
	if g.memory.ID == reading.ID {
		return max(reading.Revision, g.memory.Revision)
	}
	return reading.Revision
}

func (g *Guard) write(ctx context.Context, record Record) error {
	written, err := g.cluster.writeRecord(ctx, g.read, record)
	if err != nil {
		return err
	}
	now := g.clock.Now()
	g.read, g.record, g.readAt, g.writtenAt = written, recordOf(written), now, now
	return nil
}

// open lets requests in, unless this process has seen another etcd.
func (g *Guard) open(reading Reading) error {
	if g.changed {
		g.end()
		return nil
	}
	g.memory = Memory{Verified: true, ID: reading.ID, Revision: g.highest(reading), Accepted: g.record.Accepted}
	g.evidence = nil
	g.revision.Store(reading.Revision)
	g.events.forget()
	if before := g.shut.Swap(nil); before != nil {
		klog.InfoS("The storage is the right one: requests are answered", "id", reading.ID, "revision", reading.Revision)
	}
	return nil
}

// end has the process end, to be started anew.
func (g *Guard) end() {
	before := g.shut.Swap(&Decision{Step: Shut, Reason: ReasonReplaced, Message: "etcd was replaced while this server ran: it ends, to be started anew"})
	if before == nil || before.Reason != ReasonReplaced {
		g.replaced(errors.New("etcd was replaced while this server ran, and its caches may hold what is not there: it has to start anew"))
	}
}

// close shuts the server, and tells it once.
func (g *Guard) close(decision Decision) {
	before := g.shut.Swap(&decision)
	if before != nil && before.Reason == decision.Reason {
		return
	}
	klog.ErrorS(nil, "The server is shut: every request is answered with 503", "reason", decision.Reason, "message", decision.Message)
	if decision.Reason != ReasonUnverified {
		g.events.warn(string(decision.Reason), decision.Message)
	}
}
