package app

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// gateServer answers watches of one gate over HTTP. What a real server makes of them is
// tested in test/integration; this one can also misbehave.
type gateServer struct {
	t *testing.T

	mu sync.Mutex
	// event is what there is to tell, nil for nothing; changed is closed by the next one.
	event   []byte
	changed chan struct{}
	// fault answers in place of the server, nil for no fault.
	fault http.HandlerFunc
	// requests are those received so far, and times when each of them was.
	requests []*http.Request
	times    []time.Time
}

func newGateServer(t *testing.T) *gateServer {
	return &gateServer{t: t, changed: make(chan struct{})}
}

// rawGate is a StartGate as the API writes it.
func rawGate(t *testing.T, namespace, name string, cliques ...grovev1alpha1.StartGateClique) runtime.RawExtension {
	t.Helper()
	text, err := json.Marshal(&grovev1alpha1.StartGate{
		TypeMeta:   metav1.TypeMeta{Kind: "StartGate", APIVersion: grovev1alpha1.SchemeGroupVersion.String()},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: "7"},
		Status:     grovev1alpha1.StartGateStatus{Cliques: cliques},
	})
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: text}
}

// set changes the gate team/job-0.
func (s *gateServer) set(cliques ...grovev1alpha1.StartGateClique) {
	s.t.Helper()
	text, err := json.Marshal(metav1.WatchEvent{Type: "MODIFIED", Object: rawGate(s.t, "team", "job-0", cliques...)})
	if err != nil {
		s.t.Fatal(err)
	}
	s.send(append(text, '\n'))
}

// send changes what there is to tell, in so many words.
func (s *gateServer) send(event []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.event = event
	close(s.changed)
	s.changed = make(chan struct{})
}

// fail lets a fault answer what comes from now on; nil ends it.
func (s *gateServer) fail(fault http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
}

// status is a fault that answers with a Status.
func status(code int, message string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Message: message})
	}
}

func (s *gateServer) received() ([]*http.Request, []time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*http.Request(nil), s.requests...), append([]time.Time(nil), s.times...)
}

func (s *gateServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests, s.times = append(s.requests, r), append(s.times, time.Now())
	fault := s.fault
	s.mu.Unlock()
	if fault != nil {
		fault(w, r)
		return
	}
	seconds, err := strconv.Atoi(r.URL.Query().Get("timeoutSeconds"))
	if err != nil {
		status(http.StatusBadRequest, err.Error())(w, r)
		return
	}
	ends := time.NewTimer(time.Duration(seconds) * time.Second)
	defer ends.Stop()
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	var sent []byte
	for {
		s.mu.Lock()
		event, changed := s.event, s.changed
		s.mu.Unlock()
		if string(event) != string(sent) {
			if _, err := w.Write(event); err != nil {
				return
			}
			sent = event
		}
		if err := flush.Flush(); err != nil {
			return
		}
		select {
		case <-changed:
		case <-ends.C:
			return
		case <-r.Context().Done():
			return
		}
	}
}
