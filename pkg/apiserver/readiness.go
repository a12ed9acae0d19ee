package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// readinessPollInterval is how often a starting server looks whether it is ready.
const readinessPollInterval = 20 * time.Millisecond

// readiness answers requests for resources with 503 until the server can answer them
// rightly. A server that listens does not know its callers yet: the authorities that
// sign the aggregation layer's certificate are read by controllers that start with it.
// Until then every caller is anonymous, and a controller of the cluster would be told
// 403 where it should come again.
type readiness struct {
	codecs runtime.NegotiatedSerializer
	ready  atomic.Bool
}

// wrap puts the readiness in front of a handler chain.
func (r *readiness) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if r.ready.Load() || !strings.HasPrefix(req.URL.Path, "/api") {
			next.ServeHTTP(w, req)
			return
		}
		w.Header().Set("Retry-After", "1")
		responsewriters.ErrorNegotiated(apierrors.NewServiceUnavailable("the server is starting"), r.codecs, schema.GroupVersion{}, w, req)
	})
}

// hook opens the server once the callers' authorities and the informers of admission
// are there.
func (r *readiness) hook(generic *genericapiserver.RecommendedConfig) genericapiserver.PostStartHookFunc {
	return func(hook genericapiserver.PostStartHookContext) error {
		err := wait.PollUntilContextCancel(hook, readinessPollInterval, true, func(ctx context.Context) (bool, error) {
			return knowsCallers(generic) && informersSynced(ctx, generic), nil
		})
		if err != nil {
			return fmt.Errorf("wait until requests can be answered: %w", err)
		}
		r.ready.Store(true)
		return nil
	}
}

// knowsCallers says whether the authority of the aggregation layer has been read.
// Without the aggregation layer there is none to wait for.
func knowsCallers(generic *genericapiserver.RecommendedConfig) bool {
	config := generic.Authentication.RequestHeaderConfig
	return config == nil || len(config.CAContentProvider.CurrentCABundleContent()) > 0
}

func informersSynced(ctx context.Context, generic *genericapiserver.RecommendedConfig) bool {
	if generic.SharedInformerFactory == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, readinessPollInterval)
	defer cancel()
	for _, synced := range generic.SharedInformerFactory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return false
		}
	}
	return true
}
