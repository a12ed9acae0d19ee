package storageguard

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
)

// retryAfterSeconds is what a refused client is told. Clients of Kubernetes wait that
// long up to ten times before they show the answer, so it is short.
const retryAfterSeconds = 1

// Error makes a decision to shut the error of a request.
func (d *Decision) Error() string { return d.Message }

// Status is the answer to a request while the server is shut.
func (d *Decision) Status() metav1.Status {
	return metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusServiceUnavailable,
		Reason:  metav1.StatusReasonServiceUnavailable,
		Message: d.Message,
		Details: &metav1.StatusDetails{
			Causes:            []metav1.StatusCause{{Type: metav1.CauseType(d.Reason), Message: d.Message}},
			RetryAfterSeconds: retryAfterSeconds,
		},
	}
}

// Handler answers requests for resources with 503 while the server is shut, and looks at
// the storage once more before an answer says that something does not exist. It belongs
// behind authorization, since its answers name pods.
//
// Discovery goes on: kubectl finds the resource, and shows why it is not to be had.
func (g *Guard) Handler(next http.Handler, codecs runtime.NegotiatedSerializer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, ok := request.RequestInfoFrom(req.Context())
		if !ok || !info.IsResourceRequest {
			next.ServeHTTP(w, req)
			return
		}
		refuse := func(w http.ResponseWriter, err error) {
			responsewriters.ErrorNegotiated(err, codecs, schema.GroupVersion{}, w, req)
		}
		if decision := g.shut.Load(); decision != nil {
			refuse(w, decision)
			return
		}
		verify := g.Verify
		if info.Verb == "watch" {
			from := req.URL.Query().Get("resourceVersion")
			verify = func(ctx context.Context) error { return g.verifyWatch(ctx, from) }
		}
		ctx, cancel := context.WithCancel(req.Context())
		defer cancel()
		next.ServeHTTP(responsewriter.WrapForHTTP1Or2(&verifier{
			ResponseWriter: w,
			// A list without an object says that it does not exist, and so does a watch to
			// whoever has the object from before.
			lists:  slices.Contains([]string{"list", "watch"}, info.Verb),
			verify: func() error { return verify(ctx) },
			refuse: refuse,
			stop:   cancel,
		}), req.WithContext(ctx))
	})
}

// verifyWatch verifies the storage, and refuses a watch from a revision that it has not
// reached, as 410. Only a client that knows it from before an older etcd was accepted asks
// for one: etcd would keep silent until it gets there, and the client would miss all that
// happens until then. One that gets a 410 lists anew.
func (g *Guard) verifyWatch(ctx context.Context, from string) error {
	if err := g.Verify(ctx); err != nil {
		return err
	}
	revision, err := strconv.ParseInt(from, 10, 64)
	if current := g.revision.Load(); err == nil && revision > current {
		return apierrors.NewResourceExpired(fmt.Sprintf("resourceVersion %d is not there yet, the storage is at %d: it was replaced by an older one. List anew.", revision, current))
	}
	return nil
}

// verifier holds back the answer of a handler that says that something does not exist
// until the storage was verified, and gives another one if it is not the right one.
type verifier struct {
	http.ResponseWriter
	lists  bool
	verify func() error
	refuse func(http.ResponseWriter, error)
	// stop ends a watch whose answer was refused.
	stop func()

	answered, refused bool
}

// Unwrap returns what is wrapped, for http.ResponseController and the like.
func (v *verifier) Unwrap() http.ResponseWriter { return v.ResponseWriter }

// WriteHeader verifies, and then answers.
func (v *verifier) WriteHeader(code int) {
	if v.answered {
		return
	}
	v.answered = true
	if code == http.StatusNotFound || (v.lists && code == http.StatusOK) {
		if err := v.verify(); err != nil {
			v.refused = true
			for _, name := range []string{"Content-Encoding", "Content-Length", "Content-Type", "Transfer-Encoding"} {
				v.Header().Del(name)
			}
			v.refuse(v.ResponseWriter, err)
			v.stop()
			return
		}
	}
	v.ResponseWriter.WriteHeader(code)
}

// Write writes the body, after the header. That of a refused answer goes nowhere: the
// handler has nothing to report.
func (v *verifier) Write(body []byte) (int, error) {
	v.WriteHeader(http.StatusOK)
	if v.refused {
		return len(body), nil
	}
	return v.ResponseWriter.Write(body)
}
