package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// lifetime is how long a watch lasts at least, and twice of it at most: each waiter
	// chooses, so that they do not come back together. A watch that ended unnoticed costs
	// no more than that.
	lifetime = 2 * time.Minute
	// overtime is how long the server may take to end a watch.
	overtime = 15 * time.Second
	// maxAnswer is what is read of an answer that is no watch.
	maxAnswer = 16 << 10
)

// newBackoff returns the pauses between tries: from half a second to 15 s, and at each step
// spread by three times the shortest. So a thousand waiters that lose their server at once
// come back over a second, and over ten when it stays away.
func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 2, Cap: 5 * time.Second, Steps: 10}
}

// settledAfter is how long a watch lasts until the server counts as well again.
const settledAfter = 15 * time.Second

// reading is what the watch has to tell: nothing but that it reads, what it has read, or why
// it does not.
type reading struct {
	gate    *entry
	hasGate bool
	failure error
}

// follower watches one gate.
type follower struct {
	namespace string
	gate      string
	podClique string
	userAgent string
	connect   func() (session, error)
	backoff   func() wait.Backoff
}

// follow watches until ctx ends, whatever comes, and tells.
//
// Each watch begins at version 0: the server first sends the gate as its cache has it, from
// memory, and then each change. So there is no list, no version to remember and none that
// can expire. The cache may be behind, which only means that the change is still to come.
func (f *follower) follow(ctx context.Context, tell func(reading)) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	backoff := f.backoff()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		began := time.Now()
		err := f.watch(ctx, tell)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) >= settledAfter {
			backoff = f.backoff()
		}
		var next time.Duration
		if err != nil {
			tell(reading{failure: err})
			next = backoff.Step()
		}
		pause.Reset(next)
	}
}

// watch watches once. It returns nil when the watch has lasted for its time.
func (f *follower) watch(ctx context.Context, tell func(reading)) error {
	asked := (lifetime + rand.N(lifetime)).Truncate(time.Second)
	ends := time.Now().Add(asked)
	ctx, cancel := context.WithDeadline(ctx, ends.Add(overtime))
	defer cancel()
	response, err := f.request(ctx, asked)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return answer(response)
	}
	tell(reading{})

	body := &io.LimitedReader{R: response.Body}
	decoder := json.NewDecoder(body)
	for {
		body.N = maxEvent
		var e event
		if err := decoder.Decode(&e); err != nil {
			switch {
			case body.N == 0:
				return fmt.Errorf("an event of the watch is larger than %d bytes", maxEvent)
			case !time.Now().Before(ends):
				return nil
			case errors.Is(err, io.EOF):
				return errors.New("the API server has ended the watch")
			}
			return fmt.Errorf("the watch is broken: %w", err)
		}
		gate, ours, err := e.read(f.namespace, f.gate, f.podClique)
		if err != nil {
			return err
		}
		if ours {
			tell(reading{gate: gate, hasGate: true})
		}
	}
}

// request asks for a watch of the gate, and of nothing else.
func (f *follower) request(ctx context.Context, lasting time.Duration) (*http.Response, error) {
	to, err := f.connect()
	if err != nil {
		return nil, err
	}
	address := to.server.JoinPath("apis", "grove.io", "v1alpha1", "namespaces", f.namespace, "startgates")
	address.RawQuery = url.Values{
		"watch":           {"true"},
		"fieldSelector":   {"metadata.name=" + f.gate},
		"resourceVersion": {"0"},
		"timeoutSeconds":  {strconv.Itoa(int(lasting.Seconds()))},
	}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Authorization", "Bearer "+to.token)
	request.Header.Set("User-Agent", f.userAgent)
	response, err := to.client.Do(request)
	// Which request it was is known; the address would hide the cause in a long line.
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return response, err
}

// answer makes an error of an answer that is no watch. The message is in a Status, if the
// API server wrote it and nobody in between.
func answer(response *http.Response) error {
	var status struct {
		Message string `json:"message"`
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err == nil {
		// Whoever answers with something else has said enough with the code.
		_ = json.Unmarshal(text, &status)
	}
	return newStatusError(response.StatusCode, status.Message)
}
