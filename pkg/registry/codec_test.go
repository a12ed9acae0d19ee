package registry_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/copse-dev/copse/pkg/apis/grove"
	groveinstall "github.com/copse-dev/copse/pkg/apis/grove/install"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/apis/scheduler"
	schedulerinstall "github.com/copse-dev/copse/pkg/apis/scheduler/install"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
)

// codec is how a request becomes a hub object, and how that is stored.
type codec struct {
	decoder runtime.Decoder
	encoder runtime.Encoder
}

func newCodec() codec {
	scheme := runtime.NewScheme()
	groveinstall.Install(scheme)
	schedulerinstall.Install(scheme)
	codecs := runtimeserializer.NewCodecFactory(scheme)
	return codec{
		decoder: codecs.UniversalDecoder(grove.SchemeGroupVersion, scheduler.SchemeGroupVersion),
		encoder: codecs.LegacyCodec(grovev1alpha1.SchemeGroupVersion, schedulerv1alpha1.SchemeGroupVersion),
	}
}

// decode reads an object of a kind, which it need not name, as the server does.
func (c codec) decode(text []byte, kind schema.GroupVersionKind) (runtime.Object, error) {
	obj, _, err := c.decoder.Decode(text, &kind, nil)
	return obj, err
}

func (c codec) encode(t testing.TB, obj runtime.Object) []byte {
	t.Helper()
	text, err := runtime.Encode(c.encoder, obj)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
