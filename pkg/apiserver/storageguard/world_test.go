package storageguard

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	kubefake "k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/copse-dev/copse/pkg/apiserver/embeddedetcd"
)

// startEtcd runs a real etcd, and returns the guard's access to it.
func startEtcd(t *testing.T) *identity {
	t.Helper()
	// The path of a socket has to be short.
	dir, err := os.MkdirTemp("", "g")
	if err != nil {
		t.Fatal(err)
	}
	etcd, err := embeddedetcd.Start(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	config := storagebackend.Config{Prefix: "/registry/grove.io"}
	config.Transport.ServerList = []string{etcd.Endpoint()}
	access, err := newIdentity(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = access.client.Close()
		etcd.Stop()
		_ = os.RemoveAll(dir)
	})
	return access
}

// put moves the revision, as a write of an object does.
func (i *identity) put(t *testing.T) {
	t.Helper()
	if _, err := i.client.Put(t.Context(), "/registry/grove.io/object", "changed"); err != nil {
		t.Fatal(err)
	}
}

// world is a cluster whose kube-apiserver can be away.
type world struct {
	t     *testing.T
	core  *kubefake.Clientset
	meta  *metadatafake.FakeMetadataClient
	clock *clocktesting.FakeClock
	have  Attempts
	away  bool
	// servers are those whose events warnings sends.
	servers []*server
}

func newWorld(t *testing.T, objects ...runtime.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, core: kubefake.NewClientset(), meta: metadatafake.NewSimpleMetadataClient(scheme, objects...), clock: clocktesting.NewFakeClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))}
	w.core.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		if w.away {
			return true, nil, errors.New("kube-apiserver is away")
		}
		return false, nil, nil
	})
	return w
}

// server is a guard and what it has asked for.
type server struct {
	*Guard
	replaced []error
}

func (w *world) server(etcd *identity) *server {
	s := &server{Guard: newGuard(etcd, &cluster{core: w.core, metadata: w.meta, namespace: "copse-system"}, "test", w.clock)}
	s.Watch(func(context.Context, map[string]bool) (Attempts, error) { return w.have, nil }, func(err error) { s.replaced = append(s.replaced, err) })
	w.servers = append(w.servers, s)
	return s
}

// is expects a server to be open, for the empty reason, or shut.
func (s *server) is(t *testing.T, want Reason) {
	t.Helper()
	var got Reason
	message := ""
	if decision := s.shut.Load(); decision != nil {
		got, message = decision.Reason, decision.Message
	}
	if got != want {
		t.Fatalf("shut for %q (%s), want %q", got, message, want)
	}
	if err := s.Check(nil); (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), string(want))) {
		t.Errorf("readiness: %v", err)
	}
}

func (w *world) record() Record {
	w.t.Helper()
	configMap, err := w.core.CoreV1().ConfigMaps("copse-system").Get(w.t.Context(), ConfigMapName, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return recordOf(configMap)
}

func (w *world) change(change func(*corev1.ConfigMap)) {
	w.t.Helper()
	client := w.core.CoreV1().ConfigMaps("copse-system")
	configMap, err := client.Get(w.t.Context(), ConfigMapName, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	change(configMap)
	if _, err := client.Update(w.t.Context(), configMap, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) accept(acceptance string) {
	w.t.Helper()
	w.change(func(c *corev1.ConfigMap) { c.Annotations = map[string]string{AcceptAnnotation: acceptance} })
}

// warnings are the reasons of the events so far.
func (w *world) warnings() []string {
	w.t.Helper()
	for _, s := range w.servers {
		s.events.send(w.t.Context())
	}
	list, err := w.core.EventsV1().Events("copse-system").List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	var reasons []string
	for _, event := range list.Items {
		reasons = append(reasons, event.Type+" "+event.Reason)
	}
	return reasons
}

// next looks once more, after what was read is out of date.
func (s *server) next(t *testing.T, w *world) time.Duration {
	t.Helper()
	w.clock.Step(raiseInterval)
	return s.look(t.Context())
}

func podOfClique() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: "job-0-worker-0", Labels: map[string]string{"grove.io/restart-attempt": "0"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "grove.io/v1alpha1", Kind: "PodClique", Name: "job-0-worker", UID: "clique"}},
		},
	}
}
