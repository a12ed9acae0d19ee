package requestlimits

import (
	"bytes"
	"io"
	"mime"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Handler answers a request whose body has too many values with 422 and the path to them.
// The reader of a body reads no more than most bytes of it, 3 MiB in the generic server;
// what is longer is left to it to refuse.
func Handler(next http.Handler, codecs runtime.NegotiatedSerializer, most int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, ok := request.RequestInfoFrom(req.Context())
		if !ok || !info.IsResourceRequest || req.Body == nil || isSmall(req.ContentLength) {
			next.ServeHTTP(w, req)
			return
		}
		body, err := io.ReadAll(io.LimitReader(req.Body, most+1))
		if err != nil {
			responsewriters.ErrorNegotiated(apierrors.NewBadRequest("read the body: "+err.Error()), codecs, schema.GroupVersion{}, w, req)
			return
		}
		if int64(len(body)) <= most {
			if tooMany := check(body, isYAML(req)); tooMany != nil {
				refusal := apierrors.NewInvalid(schema.GroupKind{Group: info.APIGroup, Kind: info.Resource}, info.Name, field.ErrorList{tooMany})
				responsewriters.ErrorNegotiated(refusal, codecs, schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}, w, req)
				return
			}
		}
		req.Body = readCloser{Reader: io.MultiReader(bytes.NewReader(body), req.Body), Closer: req.Body}
		next.ServeHTTP(w, req)
	})
}

// isSmall says that a body is too short for too many values: an entry of a list takes two
// bytes. A negative length is not known.
func isSmall(length int64) bool {
	return length >= 0 && length <= 2*maxEntries
}

func isYAML(req *http.Request) bool {
	mediaType, _, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
	return err == nil && (mediaType == runtime.ContentTypeYAML || mediaType == "application/apply-patch+yaml")
}

type readCloser struct {
	io.Reader
	io.Closer
}
