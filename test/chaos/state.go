package chaos

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
)

// State is what both servers hold, without what may differ from run to run: times, UIDs
// and what is made of them, revisions, generations, messages, which count, and whether an
// index seemed to recover: to a cache that is behind, a pod that has failed is Ready. When
// the first pod came to a barrier is not on record if the others were seen with it. The
// minimum of a group is lowered when a pod seems to wait, which to such a cache may be
// every one. How an update has gone is of no interest once it has come to its end. A set that
// fails may do so by a pod that such a cache shows as not Ready, of which it is not on record
// any more that it has failed.
func (r *Run) State() (string, error) {
	mask := newMask(r)
	var lines []string
	for _, k := range allKinds() {
		for _, obj := range r.serverOf(k).all(k) {
			line, err := mask.render(k, obj)
			if err != nil {
				return "", err
			}
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n"), nil
}

type mask struct {
	names *strings.Replacer
	times *regexp.Regexp
}

// newMask knows the names that are made from UIDs.
func newMask(r *Run) mask {
	var pairs []string
	for _, obj := range r.cluster.all(KindPod) {
		pod := obj.(*corev1.Pod)
		pairs = append(pairs, pod.Name, fmt.Sprintf("%s-%s-HASH", pod.Labels[labels.PodClique], pod.Labels[labels.PodIndex]))
	}
	return mask{names: strings.NewReplacer(pairs...), times: regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)}
}

func (m mask) render(k Kind, obj client.Object) (string, error) {
	raw, err := json.Marshal(obj)
	if err != nil {
		return "", err
	}
	var document map[string]any
	if err := json.Unmarshal(raw, &document); err != nil {
		return "", err
	}
	metadata, _ := document["metadata"].(map[string]any)
	name := fmt.Sprint(metadata["name"])
	if k == KindPodGroup {
		name = fmt.Sprint(obj.GetLabels()[labels.PodGang], "-HASH-", obj.GetLabels()[labels.RestartAttempt])
	}
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "name", "ownerReferences"} {
		delete(metadata, field)
	}
	drop(document)
	if clique, ok := obj.(*grovev1alpha1.PodClique); ok && gang.KnowsOfFailure(clique) {
		unstructured.RemoveNestedField(document, "status", "failedIndexes")
	}
	if raw, err = json.Marshal(document); err != nil {
		return "", err
	}
	return m.names.Replace(m.times.ReplaceAllString(fmt.Sprintf("%s %s %s", k, name, raw), "TIME")), nil
}

// drop removes what may differ from everywhere below a value.
func drop(value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, field := range []string{"message", "observedGeneration", "podUID", "recoveredTime", "firstStarted", "podReferences", "schedulingGroup", "minCount", "updateProgress"} {
			delete(value, field)
		}
		for _, below := range value {
			drop(below)
		}
	case []any:
		for _, below := range value {
			drop(below)
		}
	}
}

// outcome is what came of a write, for the trace.
type outcome struct {
	verb string
	obj  client.Object
	err  error
}

// String tells of a status what it says.
func (o outcome) String() string {
	if o.err != nil {
		return o.err.Error()
	}
	if o.verb != "status" {
		return "ok"
	}
	raw, err := json.Marshal(o.obj)
	if err != nil {
		return err.Error()
	}
	var document struct {
		Status map[string]any `json:"status"`
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		return err.Error()
	}
	words := []string{"ok"}
	for _, name := range slices.Sorted(maps.Keys(document.Status)) {
		switch name {
		case "hpaPodSelector", "selector", "currentGenerationHash", "cliqueHashes", "observedGeneration":
		case "conditions":
			conditions, _ := document.Status[name].([]any)
			for _, c := range conditions {
				condition, _ := c.(map[string]any)
				words = append(words, fmt.Sprintf("%v=%v(%v)", condition["type"], condition["status"], condition["reason"]))
			}
		default:
			words = append(words, fmt.Sprintf("%s=%v", name, document.Status[name]))
		}
	}
	return strings.Join(words, " ")
}
