package chaos

import (
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// truncateTimes rounds the times in a value down to whole seconds, as they are after
// they have been written to a server and read back.
func truncateTimes(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			truncateTimes(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			truncateTimes(v.Index(i))
		}
	case reflect.Struct:
		if t, ok := v.Addr().Interface().(*metav1.Time); ok {
			t.Time = t.Truncate(time.Second)
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				truncateTimes(v.Field(i))
			}
		}
	}
}
