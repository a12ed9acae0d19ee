package validation

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func at(seconds int64) *metav1.Time { return ptr.To(metav1.Unix(seconds, 0)) }
