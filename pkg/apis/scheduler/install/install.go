// Package install registers the hub and versioned types of the scheduler.grove.io API on a
// scheme. It is the only place that knows which versions there are.
package install

import (
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/copse-dev/copse/pkg/apis/scheduler"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
)

// Install registers the API group on scheme.
func Install(scheme *runtime.Scheme) {
	utilruntime.Must(scheduler.AddToScheme(scheme))
	utilruntime.Must(schedulerv1alpha1.AddToScheme(scheme))
	utilruntime.Must(scheme.SetVersionPriority(schedulerv1alpha1.SchemeGroupVersion))
}
