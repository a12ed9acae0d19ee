package integration

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The owners of 200,000 labels cost half a minute before admission and validation could
// say anything; a copy within a patch is a way to the same.
func TestABodyOfVeryManyValuesIsRefusedAtOnce(t *testing.T) {
	ns := cluster.Namespace(t)
	labels := make([]string, 200000)
	for i := range labels {
		labels[i] = fmt.Sprintf(`"k%d":"v"`, i)
	}
	body := `{"apiVersion":"grove.io/v1alpha1","kind":"PodCliqueSet","metadata":{"name":"hostile","labels":{` + strings.Join(labels, ",") + `}}}`
	result := cluster.Copse.GroveV1alpha1().RESTClient().Post().Namespace(ns.Name).Resource("podcliquesets").
		SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(t.Context())
	err := result.Error()
	var code int
	if result.StatusCode(&code); code != http.StatusUnprocessableEntity || !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "metadata.labels: Too many") {
		t.Errorf("answered with %d: %.300v", code, err)
	}

	ns.Apply(strings.Replace(training, "metadata: {name: job}", `metadata: {name: job, annotations: {a: "`+strings.Repeat("a", 10<<10)+`"}}`, 1))
	var copies []string
	for i := range 20 {
		copies = append(copies, fmt.Sprintf(`{"op":"copy","from":"/metadata/annotations/a","path":"/metadata/annotations/b%d"}`, i))
	}
	sets := cluster.Copse.GroveV1alpha1().PodCliqueSets(ns.Name)
	if _, err := sets.Patch(t.Context(), "job", types.JSONPatchType, []byte("["+strings.Join(copies[:10], ",")+"]"), metav1.PatchOptions{}); err != nil {
		t.Errorf("ten copies of 10 KiB: %v", err)
	}
	_, err = sets.Patch(t.Context(), "job", types.JSONPatchType, []byte("["+strings.Join(copies, ",")+"]"), metav1.PatchOptions{})
	if !apierrors.IsInvalid(err) && !apierrors.IsRequestEntityTooLargeError(err) {
		t.Errorf("twenty copies of 10 KiB: %v", err)
	}
}
