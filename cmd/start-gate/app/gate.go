package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// maxEvent is the most that one event of a watch may take: more than an etcd lets an
// object have.
const maxEvent = 2 << 20

// event is one event of a watch: a StartGate, or a Status that says why the watch ends.
type event struct {
	Type   string `json:"type"`
	Object struct {
		Metadata struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"metadata"`
		// Status is an object in a StartGate and a word in a Status.
		Status  json.RawMessage `json:"status"`
		Code    int             `json:"code"`
		Message string          `json:"message"`
	} `json:"object"`
}

// gateStatus is what is read of the status of a StartGate (pkg/apis/grove/v1alpha1).
type gateStatus struct {
	Cliques []struct {
		Name    string `json:"name"`
		Attempt int32  `json:"attempt"`
		Open    bool   `json:"open"`
		Expired bool   `json:"expired"`
	} `json:"cliques"`
}

// read returns what an event says of a PodClique, nil for nothing, and whether it speaks of
// the gate at all.
func (e *event) read(namespace, gate, podClique string) (*entry, bool, error) {
	switch e.Type {
	case "ADDED", "MODIFIED", "DELETED":
	case "BOOKMARK":
		return nil, false, nil
	case "ERROR":
		return nil, false, newStatusError(e.Object.Code, e.Object.Message)
	default:
		return nil, false, fmt.Errorf("the watch has an event of the unknown type %q", e.Type)
	}
	// Asked for by the selector; an open gate of somebody else must not depend on that alone.
	if e.Object.Metadata.Name != gate || e.Object.Metadata.Namespace != namespace {
		return nil, false, nil
	}
	if e.Type == "DELETED" || len(e.Object.Status) == 0 {
		return nil, true, nil
	}
	var status gateStatus
	if err := json.Unmarshal(e.Object.Status, &status); err != nil {
		return nil, false, fmt.Errorf("the status of the gate cannot be read: %w", err)
	}
	for _, clique := range status.Cliques {
		if clique.Name == podClique {
			return &entry{attempt: clique.Attempt, open: clique.Open, expired: clique.Expired}, true, nil
		}
	}
	return nil, true, nil
}

// statusError is an answer other than the one that was asked for.
type statusError struct {
	code    int
	message string
}

// newStatusError keeps of a message what fits into a line and into a termination message.
func newStatusError(code int, message string) *statusError {
	const most = 500
	if len(message) > most {
		message = strings.ToValidUTF8(message[:most], "") + "…"
	}
	return &statusError{code: code, message: message}
}

func (e *statusError) Error() string {
	text := fmt.Sprintf("the API server answers %d %s", e.code, http.StatusText(e.code))
	if e.message != "" {
		text += ": " + e.message
	}
	return text
}
