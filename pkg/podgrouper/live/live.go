package live

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/copse-dev/copse/pkg/eventnote"
	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/config"
	"github.com/copse-dev/copse/pkg/podgrouper/owners"
)

// ReasonInvalidConfiguration is the reason of events about what is wrong in the ConfigMap.
const ReasonInvalidConfiguration = "InvalidConfiguration"

// Options of a Live.
type Options struct {
	// Namespace of the ConfigMap, which is the program's own; its pods are not grouped.
	Namespace string
	// ConfigMap is the name of the one that configures the pod grouper.
	ConfigMap string
	// NativeGangs says whether Kubernetes' own scheduler takes groups. It is asked once, and
	// may take its time.
	NativeGangs func(ctx context.Context) bool
	// KAISchedulers are the names that pods give KAI.
	KAISchedulers []string
	// Recorder tells what is wrong in the ConfigMap.
	Recorder events.EventRecorder
	// Mapper says which kinds there are.
	Mapper meta.RESTMapper
	// Reader reads live.
	Reader client.Reader
}

// Live is a pod grouper as the cluster wants it now.
type Live struct {
	options  Options
	cache    crcache.Cache
	resolver *owners.Resolver
	native   bool
	current  atomic.Pointer[podgrouper.Grouper]
	ready    chan struct{}

	mu        sync.Mutex
	listeners []func()
}

var _ manager.LeaderElectionRunnable = &Live{}

// New returns a Live, which has a grouper once it was started.
func New(restConfig *rest.Config, scheme *runtime.Scheme, options Options) (*Live, error) {
	informers, err := crcache.New(restConfig, crcache.Options{
		Scheme:           scheme,
		Mapper:           options.Mapper,
		DefaultTransform: crcache.TransformStripManagedFields(),
		ByObject: map[client.Object]crcache.ByObject{
			&corev1.ConfigMap{}: {
				Namespaces: map[string]crcache.Config{options.Namespace: {}},
				Field:      fields.OneTermEqualSelector("metadata.name", options.ConfigMap),
			},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make the cache of the pod grouper: %w", err)
	}
	return newLive(informers, options), nil
}

func newLive(informers crcache.Cache, options Options) *Live {
	return &Live{
		options:  options,
		cache:    informers,
		resolver: owners.New(options.Reader, options.Mapper, owners.Options{}),
		ready:    make(chan struct{}),
	}
}

// NeedLeaderElection says that every replica groups pods.
func (*Live) NeedLeaderElection() bool { return false }

// Current is the grouper as it is configured now; nil before it is known how.
func (l *Live) Current() *podgrouper.Grouper { return l.current.Load() }

// Resolver finds the owners of pods.
func (l *Live) Resolver() *owners.Resolver { return l.resolver }

// Classes are the PriorityClasses of the cluster.
func (l *Live) Classes() Classes { return Classes{l.cache} }

// WaitReady returns when there is a grouper, or the context ends.
func (l *Live) WaitReady(ctx context.Context) error {
	select {
	case <-l.ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// OnChange has a function called after the configuration or the PriorityClasses have
// changed. It must not take long.
func (l *Live) OnChange(changed func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listeners = append(l.listeners, changed)
}

// Start follows the cluster until ctx ends.
func (l *Live) Start(ctx context.Context) error {
	l.native = l.options.NativeGangs(ctx)
	ended := make(chan error, 1)
	go func() { ended <- l.cache.Start(ctx) }()
	configured, err := l.follow(ctx, &corev1.ConfigMap{}, l.configure)
	if err != nil {
		return err
	}
	known, err := l.follow(ctx, &schedulingv1.PriorityClass{}, func(any) { l.changed() })
	if err != nil {
		return err
	}
	if !cache.WaitForCacheSync(ctx.Done(), configured, known) {
		return <-ended
	}
	if l.current.Load() == nil {
		// There is no ConfigMap.
		l.configure(nil)
	}
	close(l.ready)
	return <-ended
}

// follow calls a function with each object of a kind that comes or changes, and with nil
// when one has gone.
func (l *Live) follow(ctx context.Context, obj client.Object, do func(obj any)) (synced func() bool, err error) {
	informer, err := l.cache.GetInformer(ctx, obj)
	if err != nil {
		return nil, fmt.Errorf("watch %T: %w", obj, err)
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: do,
		UpdateFunc: func(before, after any) {
			if versionOf(before) != versionOf(after) {
				do(after)
			}
		},
		DeleteFunc: func(any) { do(nil) },
	})
	if err != nil {
		return nil, fmt.Errorf("watch %T: %w", obj, err)
	}
	return registration.HasSynced, nil
}

func versionOf(obj any) string {
	if object, ok := obj.(client.Object); ok {
		return object.GetResourceVersion()
	}
	return ""
}

// configure makes a grouper of what comes with the program and what a ConfigMap has.
func (l *Live) configure(obj any) {
	merged, errs := config.Shipped()
	if own, ok := obj.(*corev1.ConfigMap); ok {
		over, wrong := config.Parse(own.Data)
		merged = config.Merge(merged, over)
		errs = append(errs, wrong...)
		l.tell(own, wrong)
	}
	for _, err := range errs {
		klog.ErrorS(err, "The configuration of the pod grouper has a mistake, which is left out")
	}
	l.current.Store(merged.Grouper(l.grouperOptions()))
	l.changed()
}

func (l *Live) grouperOptions() podgrouper.Options {
	schedulers := map[string]podgrouper.BackEnd{}
	for _, name := range l.options.KAISchedulers {
		schedulers[name] = podgrouper.KAI
	}
	if l.native {
		schedulers[corev1.DefaultSchedulerName] = podgrouper.Native
	}
	return podgrouper.Options{Schedulers: schedulers, ExemptNamespaces: sets.New(l.options.Namespace), PriorityClasses: l.Classes()}
}

// tell says what is wrong in a ConfigMap where its author looks.
func (l *Live) tell(own *corev1.ConfigMap, wrong field.ErrorList) {
	if len(wrong) == 0 || l.options.Recorder == nil {
		return
	}
	l.options.Recorder.Eventf(own, nil, corev1.EventTypeWarning, ReasonInvalidConfiguration, "Configure", "%s", eventnote.Fit(fmt.Sprintf("left out: %v", wrong.ToAggregate())))
}

func (l *Live) changed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, changed := range l.listeners {
		changed()
	}
}
