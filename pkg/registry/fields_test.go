package registry_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	apilabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/scheduler"
	"github.com/copse-dev/copse/pkg/registry/grove/podclique"
	"github.com/copse-dev/copse/pkg/registry/grove/podcliquescalinggroup"
	"github.com/copse-dev/copse/pkg/registry/grove/podcliqueset"
	"github.com/copse-dev/copse/pkg/registry/scheduler/podgang"
	"github.com/copse-dev/copse/pkg/registry/scheduler/podgroup"
)

// A kind can be selected by what its storage knows of an object, and clients can name that
// and nothing else.
func TestObjectsAreSelectedByTheirFields(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "one", Namespace: "ns", Labels: map[string]string{"a": "b"}}
	for name, tc := range map[string]struct {
		object      runtime.Object
		attrs       func(runtime.Object) (apilabels.Set, fields.Set, error)
		conversions func(*runtime.Scheme) error
		want        map[string]string
	}{
		"PodCliqueSet": {
			&grove.PodCliqueSet{
				ObjectMeta: meta, Spec: grove.PodCliqueSetSpec{WorkloadType: grove.WorkloadTypeTraining},
				Status: grove.PodCliqueSetStatus{Phase: grove.PodCliqueSetFailed},
			},
			podcliqueset.GetAttrs, podcliqueset.AddFieldLabelConversions,
			map[string]string{"spec.workloadType": "Training", "status.phase": "Failed"},
		},
		"PodClique": {
			&grove.PodClique{ObjectMeta: meta, Spec: grove.PodCliqueSpec{WorkloadType: grove.WorkloadTypeTraining}},
			podclique.GetAttrs, podclique.AddFieldLabelConversions,
			map[string]string{"spec.workloadType": "Training"},
		},
		"PodCliqueScalingGroup": {
			&grove.PodCliqueScalingGroup{ObjectMeta: meta, Spec: grove.PodCliqueScalingGroupSpec{WorkloadType: grove.WorkloadTypeTraining}},
			podcliquescalinggroup.GetAttrs, podcliquescalinggroup.AddFieldLabelConversions,
			map[string]string{"spec.workloadType": "Training"},
		},
		"PodGang": {
			&scheduler.PodGang{ObjectMeta: meta, Status: scheduler.PodGangStatus{Phase: scheduler.PodGangStarting}},
			podgang.GetAttrs, podgang.AddFieldLabelConversions,
			map[string]string{"status.phase": "Starting"},
		},
		"PodGroup": {
			&scheduler.PodGroup{ObjectMeta: meta, Status: scheduler.PodGroupStatus{Phase: scheduler.PodGroupFinished}},
			podgroup.GetAttrs, podgroup.AddFieldLabelConversions,
			map[string]string{"status.phase": "Finished"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			labels, got, err := tc.attrs(tc.object)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]string{"a": "b"}, map[string]string(labels)); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			tc.want["metadata.name"], tc.want["metadata.namespace"] = "one", "ns"
			if diff := cmp.Diff(tc.want, map[string]string(got)); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
			if _, _, err := tc.attrs(&runtime.Unknown{}); err == nil {
				t.Error("another kind has its fields")
			}

			scheme := bothGroups()
			if err := tc.conversions(scheme); err != nil {
				t.Fatal(err)
			}
			kind := schema.FromAPIVersionAndKind(kinds()[name].apiVersion, name)
			_, _, refusal := scheme.ConvertFieldLabel(kind, "spec.nonsense", "1")
			if refusal == nil {
				t.Fatal("spec.nonsense can be named though it is not offered")
			}
			for field := range got {
				if label, value, err := scheme.ConvertFieldLabel(kind, field, "value"); err != nil || label != field || value != "value" {
					t.Errorf("field %s is read as %q = %q, error %v", field, label, value, err)
				}
				if !strings.Contains(refusal.Error(), field) {
					t.Errorf("who names another field is not told of %s: %v", field, refusal)
				}
			}
		})
	}
}
