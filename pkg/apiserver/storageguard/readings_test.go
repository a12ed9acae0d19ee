package storageguard

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// Between a server's look at etcd and at the record, another one may be the first.
func TestAServerThatIsOvertakenAtTheStartDoesNotShut(t *testing.T) {
	etcd, w := startEtcd(t), newWorld(t)
	overtaken := false
	w.core.PrependReactor("get", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if overtaken {
			return false, nil, nil
		}
		overtaken = true
		reading, err := etcd.bootstrap(t.Context(), "of-the-other")
		if err != nil {
			return true, nil, err
		}
		record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "copse-system", Name: ConfigMapName}}
		Record{ID: reading.ID, Revision: reading.Revision}.write(record)
		return false, nil, w.core.Tracker().Create(action.GetResource(), record, "copse-system")
	})
	s := w.server(etcd)
	s.look(t.Context())
	s.is(t, "")
	if len(s.replaced) > 0 || s.memory.ID != "of-the-other" {
		t.Errorf("it knows the identity %q; %v", s.memory.ID, s.replaced)
	}
	if got := w.warnings(); len(got) > 0 {
		t.Errorf("events: %q", got)
	}
}

// While a server lists pods and owners, another one may be the first, in two steps.
func TestAServerThatIsOvertakenWhileItListsOwnersDoesNotWarn(t *testing.T) {
	for name, recorded := range map[string]bool{"the other one has recorded its identity": true, "the other one is about to record it": false} {
		t.Run(name, func(t *testing.T) {
			etcd, w := startEtcd(t), newWorld(t, podOfClique())
			s, other := w.server(etcd), w.server(etcd)
			s.Watch(func(ctx context.Context, _ map[string]bool) (Attempts, error) {
				if recorded {
					other.look(ctx)
					return w.have, nil
				}
				_, err := etcd.bootstrap(ctx, "of-the-other")
				return w.have, err
			}, func(err error) { s.replaced = append(s.replaced, err) })
			w.have = Attempts{"clique": 0}
			if wait := s.look(t.Context()); wait != lookInterval {
				t.Errorf("the next look is after %s", wait)
			}
			s.is(t, "")
			if reading, err := etcd.read(t.Context()); err != nil || w.record().ID != reading.ID || s.memory.ID != reading.ID {
				t.Errorf("recorded is %+v, known is %q, etcd has %q (%v)", w.record(), s.memory.ID, reading.ID, err)
			}
			if got := w.warnings(); len(got) > 0 || len(s.replaced) > 0 {
				t.Errorf("events: %q; %v", got, s.replaced)
			}

			// A record that is lost later is told of.
			if err := w.core.CoreV1().ConfigMaps("copse-system").Delete(t.Context(), ConfigMapName, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			s.next(t, w)
			if got := w.warnings(); !cmp.Equal(got, []string{"Warning StorageRecordRecreated"}) {
				t.Errorf("events: %q", got)
			}
		})
	}
}

// Between a server's look at etcd and at the record, another one may see a later revision,
// and record it. An etcd that is behind that shuts the server still.
func TestAServerWhoseReadingIsOvertakenDoesNotShut(t *testing.T) {
	for name, test := range map[string]struct {
		beyond int64
		want   Reason
	}{
		"the record is of a later revision of this etcd":   {},
		"the record is of a revision that this etcd lacks": {beyond: 1, want: ReasonRevisionBehind},
	} {
		t.Run(name, func(t *testing.T) {
			etcd, w := startEtcd(t), newWorld(t)
			s := w.server(etcd)
			s.look(t.Context())
			overtaken := false
			w.core.PrependReactor("get", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
				if overtaken {
					return false, nil, nil
				}
				overtaken = true
				etcd.put(t)
				reading, err := etcd.read(t.Context())
				if err != nil {
					return true, nil, err
				}
				record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "copse-system", Name: ConfigMapName}}
				Record{ID: reading.ID, Revision: reading.Revision + test.beyond}.write(record)
				return false, nil, w.core.Tracker().Update(action.GetResource(), record, "copse-system")
			})
			s.next(t, w)
			s.is(t, test.want)
			if !overtaken || len(s.replaced) > 0 {
				t.Errorf("overtaken: %t; %v", overtaken, s.replaced)
			}
		})
	}
}
