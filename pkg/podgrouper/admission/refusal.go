package admission

import (
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// refusal is why a pod cannot be created, or cannot yet.
type refusal struct {
	status metav1.Status
	cause  error
}

// Error says it for people.
func (r *refusal) Error() string { return r.status.Message }

// Unwrap is what led to it.
func (r *refusal) Unwrap() error { return r.cause }

// notYet refuses for a reason that may pass. Whoever creates pods for a workload tries again,
// as it does when the API server itself is short of something.
func notYet(err error) error {
	return &refusal{cause: err, status: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable,
		Message: fmt.Sprintf("the group of the pod is not known yet, try again: %s", err),
	}}
}

// never refuses for a reason that somebody has to see to.
func never(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &refusal{cause: err, status: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: err.Error(),
	}}
}
