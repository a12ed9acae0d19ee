package podtemplate

import (
	"context"
	"slices"
	"sync"

	"k8s.io/client-go/rest"
)

// heard collects what the cluster warns of while a pod is tried out, such as a security
// profile that only warns.
type heard struct {
	mu   sync.Mutex
	said []string
}

func (h *heard) add(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said = append(h.said, text)
}

func (h *heard) texts() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.said)
}

// heardKey finds what is heard in a context.
type heardKey struct{}

func withHeard(ctx context.Context, h *heard) context.Context {
	return context.WithValue(ctx, heardKey{}, h)
}

// WarningHandler is for the plugin's client: it hands the cluster's warnings about a pod
// on to the user whose set is admitted, and is silent about all others.
type WarningHandler struct{}

var _ rest.WarningHandlerWithContext = WarningHandler{}

// HandleWarningHeaderWithContext takes one warning.
func (WarningHandler) HandleWarningHeaderWithContext(ctx context.Context, code int, _ string, text string) {
	// 299 is the code of warnings that are for people.
	const persistent = 299
	if h, ok := ctx.Value(heardKey{}).(*heard); ok && code == persistent && text != "" {
		h.add(text)
	}
}
