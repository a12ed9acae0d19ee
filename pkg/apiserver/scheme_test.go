package apiserver

import (
	"encoding/json"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/scheduler"
)

// A codec of one version alone would refuse the other group.
func TestObjectsAreStoredAsJSONOfTheirOwnVersion(t *testing.T) {
	codec := StorageCodec(serializer.NewCodecFactory(NewScheme()))
	for name, tc := range map[string]struct {
		obj                    runtime.Object
		apiVersion, kind, name string
	}{
		"grove":     {&grove.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Name: "llm"}}, "grove.io/v1alpha1", "PodCliqueSet", "llm"},
		"scheduler": {&scheduler.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "job"}}, "scheduler.grove.io/v1alpha1", "PodGroup", "job"},
	} {
		data, err := runtime.Encode(codec, tc.obj)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var stored metav1.PartialObjectMetadata
		if err := json.Unmarshal(data, &stored); err != nil {
			t.Errorf("%s is not stored as JSON: %v", name, err)
		}
		if stored.APIVersion != tc.apiVersion || stored.Kind != tc.kind || stored.Name != tc.name {
			t.Errorf("%s is stored as %s %s %q", name, stored.APIVersion, stored.Kind, stored.Name)
		}
		back, err := runtime.Decode(codec, data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, want := reflect.TypeOf(back), reflect.TypeOf(tc.obj); got != want {
			t.Errorf("%s is read as %s, want the hub type %s", name, got, want)
		}
	}
}
