package storageguard

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestARecordIsReadAsItWasWritten(t *testing.T) {
	for name, record := range map[string]Record{
		"new":      {ID: "a", Revision: 12},
		"accepted": {ID: "a", Revision: 12, Accepted: time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC)},
	} {
		configMap := &corev1.ConfigMap{}
		record.write(configMap)
		if diff := cmp.Diff(record, recordOf(configMap)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestWhatIsWrongWithARecordIsTold(t *testing.T) {
	for name, tc := range map[string]struct {
		data map[string]string
		want Record
	}{
		"no data":             {nil, Record{}},
		"no number":           {map[string]string{"id": "a", "revision": "many"}, Record{ID: "a", Defect: `revision is "many", not a revision`}},
		"a negative revision": {map[string]string{"id": "a", "revision": "-1"}, Record{ID: "a", Revision: -1, Defect: `revision is "-1", not a revision`}},
		"no time":             {map[string]string{"id": "a", "accepted": "now"}, Record{ID: "a", Defect: `accepted is "now", not a time`}},
	} {
		if diff := cmp.Diff(tc.want, recordOf(&corev1.ConfigMap{Data: tc.data})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// One that stayed would count again after the next restore.
func TestAnAcceptanceIsUsedUp(t *testing.T) {
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AcceptAnnotation: "a@12", "other": "stays"}}}
	record := recordOf(configMap)
	if record.Accept != "a@12" {
		t.Fatalf("read as %q", record.Accept)
	}
	record.write(configMap)
	if record = recordOf(configMap); record.Accept != "a@12" {
		t.Errorf("a record that keeps it lost it")
	}
	Record{ID: "a"}.write(configMap)
	if diff := cmp.Diff(map[string]string{"other": "stays"}, configMap.Annotations); diff != "" {
		t.Error(diff)
	}
}
