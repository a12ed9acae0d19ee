// Package apiserver puts Copse's API server together: Kubernetes' generic server, the
// scheme, and the two API groups. Flags are in cmd/apiserver, the rules of each kind
// in pkg/registry.
package apiserver

import (
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/scheduler"
	"github.com/copse-dev/copse/pkg/apiserver/requestlimits"
	"github.com/copse-dev/copse/pkg/apiserver/storageguard"
	generatedopenapi "github.com/copse-dev/copse/pkg/generated/openapi"
	"github.com/copse-dev/copse/pkg/metrics"
	groveregistry "github.com/copse-dev/copse/pkg/registry/grove"
	"github.com/copse-dev/copse/pkg/registry/grove/podcliqueset"
	schedulerregistry "github.com/copse-dev/copse/pkg/registry/scheduler"
)

// Config is what the server is made from.
type Config struct {
	// Generic is the configuration of the generic server.
	Generic *genericapiserver.RecommendedConfig
	// Scheme is what NewScheme returns, and Codecs are its codecs.
	Scheme *runtime.Scheme
	Codecs serializer.CodecFactory
	// Metrics is where the server's own metrics are registered.
	Metrics prometheus.Registerer
	// Defaults are the defaults of new sets that flags can change.
	Defaults podcliqueset.Defaults
	// Guard keeps the server shut while its etcd may be the wrong one (D25). A server
	// without one, which belongs to no cluster, is never shut.
	Guard *storageguard.Guard
	// StorageReplaced is told when etcd was replaced under the server, which then has to
	// end and to be started anew. It goes with Guard.
	StorageReplaced func(error)
}

// NewConfig returns a configuration with everything that does not depend on flags.
func NewConfig(scheme *runtime.Scheme, codecs serializer.CodecFactory) *Config {
	generic := genericapiserver.NewRecommendedConfig(codecs)
	namer := openapi.NewDefinitionNamer(scheme)
	generic.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(generatedopenapi.GetOpenAPIDefinitions, namer)
	generic.OpenAPIConfig.Info.Title = "Copse"
	generic.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(generatedopenapi.GetOpenAPIDefinitions, namer)
	generic.OpenAPIV3Config.Info.Title = "Copse"
	return &Config{
		Generic: generic,
		Scheme:  scheme,
		Codecs:  codecs,
		// The one that the generic server shows at /metrics.
		Metrics: legacyregistry.Registerer(),
	}
}

// New returns a server that serves both API groups. It does not listen yet.
func (c *Config) New() (*genericapiserver.GenericAPIServer, error) {
	ready := &readiness{codecs: c.Codecs}
	buildChain := c.Generic.BuildHandlerChainFunc
	c.Generic.BuildHandlerChainFunc = func(handler http.Handler, config *genericapiserver.Config) http.Handler {
		if c.Guard != nil {
			handler = c.Guard.Handler(handler, c.Codecs)
		}
		handler = requestlimits.Handler(handler, c.Codecs, config.MaxRequestBodyBytes)
		return ready.wrap(buildChain(handler, config))
	}
	own, err := metrics.NewServer(c.Metrics)
	if err != nil {
		return nil, fmt.Errorf("register the metrics: %w", err)
	}
	server, err := c.Generic.Complete().New("copse-apiserver", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("make the generic server: %w", err)
	}
	optsGetter := sizedStorage{c.Generic.RESTOptionsGetter}
	groveStorage, err := groveregistry.NewStorage(c.Scheme, c.Defaults, own, optsGetter)
	if err != nil {
		return nil, err
	}
	schedulerStorage, err := schedulerregistry.NewStorage(c.Scheme, own, optsGetter)
	if err != nil {
		return nil, err
	}
	groups := []*genericapiserver.APIGroupInfo{
		c.groupInfo(grove.GroupName, groveStorage),
		c.groupInfo(scheduler.GroupName, schedulerStorage),
	}
	if err := server.InstallAPIGroups(groups...); err != nil {
		return nil, fmt.Errorf("install the API groups: %w", err)
	}
	// The generic server collects the readiness of watch caches but leaves it to each
	// server to wait for it: without this hook the first lists after a start get 429.
	if err := server.AddPostStartHook("storage-readiness", server.StorageReadinessHook.Hook); err != nil {
		return nil, err
	}
	if err := server.AddPostStartHook("open-for-requests", ready.hook(c.Generic)); err != nil {
		return nil, err
	}
	if c.Guard != nil {
		if err := c.installGuard(server, groveStorage, schedulerStorage); err != nil {
			return nil, fmt.Errorf("install the storage guard: %w", err)
		}
	}
	return server, nil
}

// installGuard lets the guard look from the start on, and makes it part of the readiness.
func (c *Config) installGuard(server *genericapiserver.GenericAPIServer, storages ...map[string]rest.Storage) error {
	owners, err := storageguard.OwnersIn(c.Scheme, storages...)
	if err != nil {
		return err
	}
	c.Guard.Watch(owners, c.StorageReplaced)
	if err := server.AddReadyzChecks(healthz.NamedCheck("storage-guard", c.Guard.Check)); err != nil {
		return err
	}
	return server.AddPostStartHook("storage-guard", func(hook genericapiserver.PostStartHookContext) error {
		go c.Guard.Run(hook)
		go func() {
			// Requests are verified until the last one is answered.
			<-c.Generic.DrainedNotify()
			if err := c.Guard.Close(); err != nil {
				klog.V(2).InfoS("The storage guard's connection to etcd is not closed", "err", err)
			}
		}()
		return nil
	})
}

func (c *Config) groupInfo(group string, storage map[string]rest.Storage) *genericapiserver.APIGroupInfo {
	info := genericapiserver.NewDefaultAPIGroupInfo(group, c.Scheme, runtime.NewParameterCodec(c.Scheme), c.Codecs)
	info.NegotiatedSerializer = jsonSerializer{c.Codecs}
	info.VersionedResourcesStorageMap["v1alpha1"] = storage
	return &info
}
