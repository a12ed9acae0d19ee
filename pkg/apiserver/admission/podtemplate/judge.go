package podtemplate

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/gang"
)

// finding is what came out of trying one pod.
type finding struct {
	causes   []metav1.StatusCause
	warnings []string
}

// judge turns the answer to a dry run into what the author of the template is told.
func judge(err error, path *field.Path, clique *grove.PodCliqueTemplateSpec, pod *corev1.Pod) finding {
	if err == nil {
		return finding{}
	}
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return finding{warnings: []string{unchecked(path, clique, err.Error())}}
	}
	status := answer.Status()
	switch {
	case status.Code == http.StatusTooManyRequests, status.Code >= http.StatusInternalServerError, status.Code == 0:
		return finding{warnings: []string{unchecked(path, clique, status.Message)}}
	case isAboutAPod(&status):
		return judgeCauses(&status, path, clique, pod)
	case namespaceIsNew(&status, clique):
		return finding{}
	default:
		return finding{warnings: []string{refusedNow(path, clique, status.Message)}}
	}
}

// namespaceIsNew says whether a pod was refused because the account that each namespace
// gets is still being made. It is there before any pod, so nobody needs to hear of it.
func namespaceIsNew(status *metav1.Status, clique *grove.PodCliqueTemplateSpec) bool {
	return status.Code == http.StatusForbidden && clique.Spec.PodSpec.ServiceAccountName == "" &&
		strings.HasSuffix(status.Message, `serviceaccount "default" not found`)
}

// isAboutAPod says whether a refusal is the API server's own validation of a pod.
func isAboutAPod(status *metav1.Status) bool {
	return status.Code == http.StatusUnprocessableEntity && status.Reason == metav1.StatusReasonInvalid &&
		status.Details != nil && status.Details.Kind == "Pod" && len(status.Details.Causes) > 0
}

// judgeCauses keeps what the template's author can put right, under the field where it
// is; what is said of fields of ours is a warning.
func judgeCauses(status *metav1.Status, path *field.Path, clique *grove.PodCliqueTemplateSpec, pod *corev1.Pod) finding {
	var result finding
	for _, cause := range status.Details.Causes {
		in, ok := inTemplate(cause.Field, clique, pod)
		if !ok {
			result.warnings = append(result.warnings, refusedNow(path, clique, describe([]metav1.StatusCause{cause})))
			continue
		}
		cause.Field = path.String() + "." + in
		result.causes = append(result.causes, cause)
	}
	return result
}

func unchecked(path *field.Path, clique *grove.PodCliqueTemplateSpec, why string) string {
	return fmt.Sprintf("%s: the pods of clique %s were not tried out: %s", path, clique.Name, oneLine(why))
}

func refusedNow(path *field.Path, clique *grove.PodCliqueTemplateSpec, why string) string {
	return fmt.Sprintf("%s: a pod of clique %s would be refused now: %s", path, clique.Name, oneLine(why))
}

// isAboveGroups says whether a pod, as the API server makes it, has a priority that Kubernetes'
// own scheduler takes for no gang. Others place it.
func isAboveGroups(pod *corev1.Pod) bool {
	return pod.Spec.SchedulerName == corev1.DefaultSchedulerName && ptr.Deref(pod.Spec.Priority, 0) > gang.HighestPriority
}

func aboveGroups(path *field.Path, clique *grove.PodCliqueTemplateSpec, pod *corev1.Pod) string {
	return fmt.Sprintf("%s: the pods of clique %s have PriorityClass %q and a priority above %d, the highest that Kubernetes' scheduler takes for a gang: where it schedules gangs, they are never placed",
		path, clique.Name, pod.Spec.PriorityClassName, gang.HighestPriority)
}

// describe puts causes into one line.
func describe(causes []metav1.StatusCause) string {
	texts := make([]string, 0, len(causes))
	for _, cause := range causes {
		texts = append(texts, cause.Field+": "+cause.Message)
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// oneLine makes a text fit for a header.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }), " ")
}
