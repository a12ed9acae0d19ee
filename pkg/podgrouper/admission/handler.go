package admission

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Path at which the webhook is served.
const Path = "/group-pod"

// answerWithin leaves the API server, which waits for five seconds, the time to hear why.
const answerWithin = 4 * time.Second

// Handler answers the API server's questions.
type Handler struct {
	// Members is nil when pods are not grouped.
	Members *Members
	Decoder admission.Decoder
}

var _ admission.Handler = &Handler{}

// Handle puts a pod into its group.
func (h *Handler) Handle(ctx context.Context, req admission.Request) admission.Response {
	if req.Operation != admissionv1.Create || req.SubResource != "" || h.Members == nil {
		return admission.Allowed("")
	}
	pod := &corev1.Pod{}
	if err := h.Decoder.Decode(req, pod); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	// The request has it; the pod need not.
	pod.Namespace = req.Namespace
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	grouped := pod.DeepCopy()
	warnings, err := h.Members.Add(ctx, grouped, Request{ID: string(req.UID), DryRun: req.DryRun != nil && *req.DryRun})
	if err != nil {
		klog.V(2).InfoS("Pod is refused", "namespace", req.Namespace, "pod", pod.Name, "generateName", pod.GenerateName, "err", err)
		return refused(err)
	}
	return patch(pod, grouped).WithWarnings(warnings...)
}

func refused(err error) admission.Response {
	var why *refusal
	if !errors.As(err, &why) {
		why = &refusal{status: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: err.Error()}}
	}
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &why.status}}
}

// patch is the difference between two pods of ours. One to the pod as it was sent would take
// away what we do not know of, fields of a newer API server.
func patch(before, after *corev1.Pod) admission.Response {
	original, err := json.Marshal(before)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	current, err := json.Marshal(after)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(original, current)
}
