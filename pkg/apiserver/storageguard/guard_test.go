package storageguard

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestServersThatStartTogetherAgreeOnOneIdentity(t *testing.T) {
	etcd, w := startEtcd(t), newWorld(t)
	servers := []*server{w.server(etcd), w.server(etcd), w.server(etcd)}
	servers[0].is(t, ReasonUnverified)
	var looks sync.WaitGroup
	for _, s := range servers {
		looks.Go(func() {
			// Who comes second to the ConfigMap looks again.
			for s.look(t.Context()) == retryInterval {
			}
		})
	}
	looks.Wait()
	reading, err := etcd.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range servers {
		s.is(t, "")
		if s.memory.ID != reading.ID || reading.ID == "" {
			t.Errorf("a server knows the identity %q, etcd has %q", s.memory.ID, reading.ID)
		}
		if len(s.replaced) > 0 {
			t.Error(s.replaced)
		}
	}
	if record := w.record(); record.ID != reading.ID || record.Revision != reading.Revision {
		t.Errorf("recorded is %+v", record)
	}
}

// Owners are listed from the etcd that comes back, and the identity was read in the one before:
// the server had the right etcd's name and an empty cache.
func TestAnEtcdThatIsReplacedWhileOwnersAreListedStartsTheServerAnew(t *testing.T) {
	empty, right, w := startEtcd(t), startEtcd(t), newWorld(t, podOfClique())
	if _, err := right.bootstrap(t.Context(), "right"); err != nil {
		t.Fatal(err)
	}
	// Each of these etcds is in its first term, so the revisions have to tell.
	for range 2 {
		empty.put(t)
	}
	for range 4 {
		right.put(t)
	}
	s := w.server(empty)
	s.Watch(func(context.Context, map[string]bool) (Attempts, error) {
		s.etcd = right
		return Attempts{"clique": 0}, nil
	}, func(err error) { s.replaced = append(s.replaced, err) })
	s.look(t.Context())
	s.is(t, ReasonReplaced)
	if len(s.replaced) != 1 {
		t.Errorf("it starts anew because of %v", s.replaced)
	}
	if _, err := w.core.CoreV1().ConfigMaps("copse-system").Get(t.Context(), ConfigMapName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("it has recorded an identity: %v", err)
	}
}

func TestTheRevisionIsRaisedNowAndThen(t *testing.T) {
	etcd, w := startEtcd(t), newWorld(t)
	s := w.server(etcd)
	s.look(t.Context())
	first := w.record().Revision
	etcd.put(t)
	s.look(t.Context())
	w.clock.Step(raiseInterval)
	s.look(t.Context())
	if got := w.record().Revision; got != first+1 {
		t.Fatalf("revision %d is recorded, etcd is at %d", got, first+1)
	}
	etcd.put(t)
	w.clock.Step(raiseInterval - time.Millisecond)
	s.look(t.Context())
	if got := w.record().Revision; got != first+1 {
		t.Errorf("it was raised again within %s", raiseInterval)
	}
	w.clock.Step(time.Millisecond)
	s.look(t.Context())
	if got := w.record().Revision; got != first+2 {
		t.Errorf("revision %d is recorded, etcd is at %d", got, first+2)
	}
	writes := len(w.core.Actions())
	s.next(t, w)
	for _, action := range w.core.Actions()[writes:] {
		if action.GetVerb() != "get" {
			t.Errorf("etcd stands still, and there is a write: %v", action)
		}
	}
}

// The record of another server that has seen more is not lowered, it shuts.
func TestTheHighestRevisionOfAllServersCounts(t *testing.T) {
	etcd, w := startEtcd(t), newWorld(t)
	s := w.server(etcd)
	s.look(t.Context())
	w.change(func(c *corev1.ConfigMap) { c.Data["revision"] = "1000" })
	s.next(t, w)
	s.is(t, ReasonRevisionBehind)
	if got := w.record().Revision; got != 1000 {
		t.Errorf("revision %d is recorded", got)
	}
}

func TestAStartNeedsTheClusterAndARunningServerDoesNot(t *testing.T) {
	etcd, w := startEtcd(t), newWorld(t)
	w.away = true
	s := w.server(etcd)
	if wait := s.look(t.Context()); wait != retryInterval {
		t.Errorf("the next look is after %s", wait)
	}
	s.is(t, ReasonUnverified)
	if reading, err := etcd.read(t.Context()); err != nil || reading.ID != "" {
		t.Errorf("etcd has the identity %q (%v) before the cluster was asked", reading.ID, err)
	}
	w.away = false
	s.look(t.Context())
	s.is(t, "")
	w.away = true
	etcd.put(t)
	s.next(t, w)
	s.is(t, "")
	if err := s.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestPodsThatEtcdLacksKeepAStartShutUntilTheyAreAccepted(t *testing.T) {
	etcd, w := startEtcd(t), newWorld(t, podOfClique())
	s := w.server(etcd)
	s.look(t.Context())
	s.is(t, ReasonForeignPods)

	// The etcd that has them.
	w.have = Attempts{"clique": 0}
	s.next(t, w)
	s.is(t, "")

	// Another process, and an etcd that has lost them.
	w.have = nil
	s = w.server(etcd)
	s.look(t.Context())
	s.is(t, ReasonLostObjects)
	lists := len(w.meta.Actions())
	w.clock.Step(lookInterval)
	s.look(t.Context())
	if got := len(w.meta.Actions()); got != lists {
		t.Errorf("the pods were listed again after %s", lookInterval)
	}
	reading, err := etcd.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.accept(Acceptance(reading))
	w.clock.Step(lookInterval)
	s.look(t.Context())
	s.is(t, "")
	record := w.record()
	if record.Accept != "" || !record.Accepted.Equal(w.clock.Now()) {
		t.Errorf("recorded is %+v", record)
	}

	// The pods are still on their way when the next process starts.
	s = w.server(etcd)
	s.look(t.Context())
	s.is(t, "")
	if diff := cmp.Diff([]string{"Warning PodsOfAnotherInstallation", "Warning StorageLacksOwnersOfPods", "Warning StorageAccepted"}, w.warnings()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestAnEtcdThatIsReplacedShutsARunningServer(t *testing.T) {
	right, wrong, w := startEtcd(t), startEtcd(t), newWorld(t)
	for range 5 {
		right.put(t)
	}
	s := w.server(right)
	s.look(t.Context())
	s.is(t, "")

	s.etcd = wrong
	var decision *Decision
	if err := s.Verify(t.Context()); !errors.As(err, &decision) || decision.Reason != ReasonNoIdentity {
		t.Fatalf("an empty etcd is answered with %v", err)
	}
	s.is(t, ReasonNoIdentity)
	if len(s.replaced) > 0 {
		t.Error("the process ends though it cannot be open")
	}

	// Its caches may hold what was in the other one.
	s.etcd = right
	s.next(t, w)
	s.is(t, ReasonReplaced)
	if len(s.replaced) != 1 {
		t.Fatalf("the process was told to end %d times", len(s.replaced))
	}
	s = w.server(right)
	s.look(t.Context())
	s.is(t, "")
}

// What only this process has seen of etcd is recorded when etcd falls behind it: the next
// process, and the other servers, have to know it.
func TestAFallIsRecorded(t *testing.T) {
	right, older, w := startEtcd(t), startEtcd(t), newWorld(t)
	s := w.server(right)
	s.look(t.Context())
	recorded := w.record()
	if _, err := older.bootstrap(t.Context(), recorded.ID); err != nil {
		t.Fatal(err)
	}
	for range 9 {
		right.put(t)
	}
	older.put(t)
	if err := s.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.etcd = older
	if err := s.Verify(t.Context()); err == nil {
		t.Fatal("an etcd that has fallen behind is right")
	}
	s.is(t, ReasonRevisionFell)
	next := w.server(older)
	next.look(t.Context())
	next.is(t, ReasonRevisionBehind)

	reading, err := older.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.accept(Acceptance(reading))
	w.clock.Step(lookInterval)
	next.look(t.Context())
	next.is(t, "")
	if got := w.record(); got.Revision != reading.Revision {
		t.Errorf("recorded is %+v, etcd is at %d", got, reading.Revision)
	}
	// The server that has seen more takes it as accepted, and starts anew.
	s.next(t, w)
	s.is(t, ReasonReplaced)
	if len(s.replaced) != 1 {
		t.Errorf("the process was told to end %d times", len(s.replaced))
	}
}

// A restored snapshot may have a revision that was raised on purpose.
func TestAnEtcdOfAnotherClusterStartsTheServerAnew(t *testing.T) {
	etcd, w := startEtcd(t), newWorld(t)
	s := w.server(etcd)
	s.look(t.Context())
	s.last.Cluster++
	s.look(t.Context())
	s.is(t, ReasonReplaced)
}

func TestAnEmptyEtcdCanBeAccepted(t *testing.T) {
	first, second, w := startEtcd(t), startEtcd(t), newWorld(t)
	s := w.server(first)
	s.look(t.Context())
	before := w.record()

	s = w.server(second)
	s.next(t, w)
	s.is(t, ReasonNoIdentity)
	w.accept("none@1")
	s.next(t, w)
	s.is(t, "")
	if after := w.record(); after.ID == before.ID || after.ID == "" || after.Accept != "" {
		t.Errorf("recorded was %+v and is %+v", before, after)
	}
	if len(s.replaced) > 0 {
		t.Error(s.replaced)
	}
}

// It is left to the server that it is for, and would count at the next restore if it stayed.
func TestAnAcceptanceThatNothingAsksForGoes(t *testing.T) {
	etcd, w := startEtcd(t), newWorld(t)
	s := w.server(etcd)
	s.look(t.Context())
	w.accept("b@1")
	s.next(t, w)
	if got := w.record().Accept; got != "b@1" {
		t.Fatalf("after the first look it is %q", got)
	}
	for range 6 {
		s.next(t, w)
	}
	if got := w.record().Accept; got != "" {
		t.Errorf("after a minute it is %q", got)
	}
}

func TestDefinitionsKeepAStartShut(t *testing.T) {
	definition := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "podcliquesets.grove.io"},
	}
	etcd, w := startEtcd(t), newWorld(t, definition)
	s := w.server(etcd)
	s.look(t.Context())
	s.is(t, ReasonDefinitions)
	if reading, err := etcd.read(t.Context()); err != nil || reading.ID != "" {
		t.Errorf("etcd has the identity %q (%v)", reading.ID, err)
	}
}

// An answer rests on a look that began after the answer was read, and many answers share one.
func TestLooksAreSharedAndNeverOld(t *testing.T) {
	etcd, w := startEtcd(t), newWorld(t)
	s := w.server(etcd)
	s.look(t.Context())
	w.core.ClearActions()
	looks := s.begun.Load()

	const callers = 50
	s.mu.Lock()
	var calls sync.WaitGroup
	failed := make(chan error, callers)
	for range callers {
		calls.Go(func() { failed <- s.Verify(t.Context()) })
	}
	s.mu.Unlock()
	calls.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			t.Error(err)
		}
	}
	if got := s.begun.Load() - looks; got < 1 || got > callers/2 {
		t.Errorf("%d callers took %d looks", callers, got)
	}

	looks = s.begun.Load()
	if err := s.Verify(t.Context()); err != nil || s.begun.Load() != looks+1 {
		t.Errorf("a call rests on a look from before it (%v)", err)
	}
	if got := w.core.Actions(); len(got) > 0 {
		t.Errorf("what was recorded within %s was read again: %v", recordLifetime, got)
	}
}

// An etcd that cannot be read says nothing about an object.
func TestAnAnswerThatCannotBeVerifiedIsRefused(t *testing.T) {
	etcd, w := startEtcd(t), newWorld(t)
	s := w.server(etcd)
	s.look(t.Context())
	if err := etcd.client.Close(); err != nil {
		t.Fatal(err)
	}
	var decision *Decision
	if err := s.Verify(t.Context()); !errors.As(err, &decision) || decision.Reason != ReasonUnverified {
		t.Errorf("answered with %v", err)
	}
	s.is(t, "")
}
