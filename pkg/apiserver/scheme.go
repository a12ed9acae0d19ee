package apiserver

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	scalescheme "k8s.io/client-go/scale/scheme"
	scaleschemev1 "k8s.io/client-go/scale/scheme/autoscalingv1"

	groveinstall "github.com/copse-dev/copse/pkg/apis/grove/install"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerinstall "github.com/copse-dev/copse/pkg/apis/scheduler/install"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/registry/grove/podclique"
	"github.com/copse-dev/copse/pkg/registry/grove/podcliquescalinggroup"
	"github.com/copse-dev/copse/pkg/registry/grove/podcliqueset"
	"github.com/copse-dev/copse/pkg/registry/scheduler/podgang"
	"github.com/copse-dev/copse/pkg/registry/scheduler/podgroup"
)

// NewScheme returns a scheme with everything that the server decodes, encodes or
// converts.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	groveinstall.Install(scheme)
	schedulerinstall.Install(scheme)
	for _, add := range []func(*runtime.Scheme) error{
		podcliqueset.AddFieldLabelConversions,
		podclique.AddFieldLabelConversions,
		podcliquescalinggroup.AddFieldLabelConversions,
		podgang.AddFieldLabelConversions,
		podgroup.AddFieldLabelConversions,
	} {
		utilruntime.Must(add(scheme))
	}

	// Patches of /scale convert to a hub version of Scale before they are applied, so
	// both versions have to be known.
	utilruntime.Must(scalescheme.AddToScheme(scheme))
	utilruntime.Must(scaleschemev1.AddToScheme(scheme))

	// The types of every API server's own answers and options.
	unversioned := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, unversioned)
	scheme.AddUnversionedTypes(unversioned,
		&metav1.Status{},
		&metav1.APIVersions{},
		&metav1.APIGroupList{},
		&metav1.APIGroup{},
		&metav1.APIResourceList{},
	)
	return scheme
}

// StorageCodec encodes objects for etcd: as JSON, each group in its own version.
func StorageCodec(codecs serializer.CodecFactory) runtime.Codec {
	return codecs.LegacyCodec(storageVersions()...)
}

func storageVersions() []schema.GroupVersion {
	return []schema.GroupVersion{grovev1alpha1.SchemeGroupVersion, schedulerv1alpha1.SchemeGroupVersion}
}

// StorageVersioner names the storage versions in discovery.
func StorageVersioner() runtime.GroupVersioner {
	return schema.GroupVersions(storageVersions())
}
