package storageguard

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// ConfigMapName is the name of the ConfigMap that holds the record.
	ConfigMapName = "copse-storage"
	// AcceptAnnotation on it accepts a storage that the guard keeps the server shut for. The
	// guard removes it when it has acted on it, or has nothing to do with it: one that stayed
	// would count again after the next restore.
	AcceptAnnotation = "copse.dev/accept-storage"

	idKey       = "id"
	revisionKey = "revision"
	acceptedKey = "accepted"
)

// recordOf reads the record in a ConfigMap.
func recordOf(configMap *corev1.ConfigMap) Record {
	record := Record{ID: configMap.Data[idKey], Accept: configMap.Annotations[AcceptAnnotation]}
	if text, ok := configMap.Data[revisionKey]; ok {
		if record.Revision, ok = parseRevision(text); !ok {
			record.Defect = fmt.Sprintf("%s is %q, not a revision", revisionKey, text)
		}
	}
	if text, ok := configMap.Data[acceptedKey]; ok {
		var err error
		if record.Accepted, err = time.Parse(time.RFC3339Nano, text); err != nil {
			record.Defect = fmt.Sprintf("%s is %q, not a time", acceptedKey, text)
		}
	}
	return record
}

// write puts a record into a ConfigMap.
func (r Record) write(configMap *corev1.ConfigMap) {
	data := map[string]string{idKey: r.ID, revisionKey: strconv.FormatInt(r.Revision, 10)}
	if !r.Accepted.IsZero() {
		data[acceptedKey] = r.Accepted.UTC().Format(time.RFC3339Nano)
	}
	configMap.Data = data
	if r.Accept == "" {
		delete(configMap.Annotations, AcceptAnnotation)
	}
}

func parseRevision(text string) (int64, bool) {
	revision, err := strconv.ParseInt(text, 10, 64)
	return revision, err == nil && revision >= 0
}
