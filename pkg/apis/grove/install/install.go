// Package install registers the hub and versioned types of the grove.io API on a
// scheme. It is the only place that knows which versions there are.
package install

import (
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/copse-dev/copse/pkg/apis/grove"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// Install registers the API group on scheme.
func Install(scheme *runtime.Scheme) {
	utilruntime.Must(grove.AddToScheme(scheme))
	utilruntime.Must(grovev1alpha1.AddToScheme(scheme))
	utilruntime.Must(scheme.SetVersionPriority(grovev1alpha1.SchemeGroupVersion))
}
