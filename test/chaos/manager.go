package chaos

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// fakeManager is the manager that controllers.Setup sees. What it does not define the
// set-up does not use.
type fakeManager struct {
	manager.Manager
	instance  *instance
	logger    logr.Logger
	runnables []manager.Runnable
}

func (m *fakeManager) Add(r manager.Runnable) error {
	m.runnables = append(m.runnables, r)
	return nil
}

func (m *fakeManager) GetScheme() *runtime.Scheme     { return m.instance.run.scheme }
func (m *fakeManager) GetRESTMapper() meta.RESTMapper { return m.instance.run.mapper }
func (m *fakeManager) GetClient() client.Client       { return apiClient{m.instance} }
func (m *fakeManager) GetAPIReader() client.Reader    { return liveReader{m.instance} }
func (m *fakeManager) GetLogger() logr.Logger         { return m.logger }
func (m *fakeManager) GetCache() cache.Cache          { return fakeCache{m.instance.cached(), m.instance} }
func (m *fakeManager) GetFieldIndexer() client.FieldIndexer {
	return fakeCache{m.instance.cached(), m.instance}
}

func (m *fakeManager) GetControllerOptions() config.Controller {
	return config.Controller{SkipNameValidation: ptr.To(true), UsePriorityQueue: ptr.To(true)}
}

func (m *fakeManager) GetEventRecorder(string) recorder.EventRecorder {
	return eventRecorder{m.instance}
}

// eventRecorder puts events into the trace.
type eventRecorder struct {
	instance *instance
}

func (e eventRecorder) Eventf(regarding, _ runtime.Object, _, reason, _, note string, args ...any) {
	if e.instance.isDead() {
		return
	}
	name := ""
	if obj, ok := regarding.(client.Object); ok {
		name = obj.GetName()
	}
	e.instance.run.trace("    event: %s %s: "+note, append([]any{name, reason}, args...)...)
}

// AnnotatedEventf is Eventf: annotations are not shown.
func (e eventRecorder) AnnotatedEventf(regarding, related runtime.Object, _ map[string]string, eventType, reason, action, note string, args ...any) {
	e.Eventf(regarding, related, eventType, reason, action, note, args...)
}

// fakeCache gives out the informers of an instance, and reads without waiting.
type fakeCache struct {
	cachedReader
	instance *instance
}

var _ cache.Cache = fakeCache{}

func (c fakeCache) GetInformer(_ context.Context, obj client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	k, err := kindOf(obj)
	if err != nil {
		return nil, err
	}
	return registrar{informer: c.instance.informers[k], instance: c.instance}, nil
}

func (c fakeCache) IndexField(_ context.Context, obj client.Object, field string, f client.IndexerFunc) error {
	k, err := kindOf(obj)
	if err != nil {
		return err
	}
	c.instance.informers[k].indexes[field] = f
	return nil
}

func (c fakeCache) GetInformerForKind(context.Context, schema.GroupVersionKind, ...cache.InformerGetOption) (cache.Informer, error) {
	return nil, errUnsupported
}

func (c fakeCache) RemoveInformer(context.Context, client.Object) error { return errUnsupported }
func (c fakeCache) Start(context.Context) error                         { return nil }
func (c fakeCache) WaitForCacheSync(context.Context) bool               { return true }

// registrar lets controllers put handlers on an informer.
type registrar struct {
	cache.Informer
	informer *informer
	instance *instance
}

func (r registrar) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, _ toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	r.instance.mu.Lock()
	defer r.instance.mu.Unlock()
	r.informer.handlers = append(r.informer.handlers, handler)
	return registration{}, nil
}

func (r registrar) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return r.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{})
}

func (r registrar) AddEventHandlerWithResyncPeriod(handler toolscache.ResourceEventHandler, _ time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return r.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{})
}

// registration is in sync from the start: the driver delivers the first list itself.
type registration struct {
	toolscache.ResourceEventHandlerRegistration
}

func (registration) HasSynced() bool { return true }
