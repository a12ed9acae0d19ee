package apiserver

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// jsonSerializer offers a codec factory's encodings of text alone. The types of Copse
// have no protobuf form. A server that offers one all the same answers 406 to clients
// that would rather have protobuf and would take JSON as well: the cluster's namespace
// controller is one, and with it every namespace would be stuck on its way out.
type jsonSerializer struct {
	runtime.NegotiatedSerializer
}

// SupportedMediaTypes are JSON and YAML.
func (s jsonSerializer) SupportedMediaTypes() []runtime.SerializerInfo {
	return slices.DeleteFunc(slices.Clone(s.NegotiatedSerializer.SupportedMediaTypes()), func(info runtime.SerializerInfo) bool {
		return info.MediaType != runtime.ContentTypeJSON && info.MediaType != runtime.ContentTypeYAML
	})
}
