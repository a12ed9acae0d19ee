package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/copse-dev/copse/hack/cluster/internal/components"
	"github.com/copse-dev/copse/hack/cluster/internal/control"
	"github.com/copse-dev/copse/hack/cluster/internal/health"
	"github.com/copse-dev/copse/hack/cluster/internal/supervisor"
)

const (
	// startTimeout is how long it may take until the cluster is ready.
	startTimeout = 110 * time.Second
	// startRestarts is how often a component may end before its first health:
	// with a wrong flag it ends at once, each time.
	startRestarts = 3
	// stopGrace is short: nobody uses the cluster any more.
	stopGrace = 2 * time.Second
)

// cluster is a cluster that is being started, or runs.
type cluster struct {
	options    Options
	config     components.Config
	supervisor *supervisor.Supervisor
	prober     *health.Prober
	access     *rest.Config
	client     kubernetes.Interface
	report     func(format string, args ...any)
}

// Run brings the cluster up and keeps it running until the context ends. The
// calling process becomes its supervisor.
func Run(ctx context.Context, o Options, report func(format string, args ...any)) (err error) {
	if err := o.Validate(); err != nil {
		return err
	}
	if err := o.Dir.Make(); err != nil {
		return err
	}
	if err := o.Dir.Lock(); err != nil {
		return err
	}
	if err := o.Dir.SetReady(false); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	defer func() { err = errors.Join(err, CleanRealNode(context.Background(), o.Dir)) }()
	c, err := newCluster(ctx, o, report)
	if err != nil {
		return err
	}
	commands, err := control.Serve(o.Dir, c.supervisor, cancel)
	if err != nil {
		return err
	}
	defer func() {
		unready := o.Dir.SetReady(false)
		c.supervisor.Close(stopGrace)
		err = errors.Join(err, unready, commands.Close())
		report("all is stopped")
	}()

	starting, started := context.WithTimeout(ctx, startTimeout)
	err = c.start(starting)
	started()
	if err != nil && ctx.Err() == nil {
		return c.explain(err)
	}
	if ctx.Err() == nil {
		if err := o.Dir.SetReady(true); err != nil {
			return err
		}
		report("the cluster is ready")
		<-ctx.Done()
	}
	report("stopping")
	return nil
}

func newCluster(ctx context.Context, o Options, report func(format string, args ...any)) (*cluster, error) {
	config, err := prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	prober, err := health.NewProber(o.Dir.Certs())
	if err != nil {
		return nil, err
	}
	access, err := clientcmd.BuildConfigFromFlags("", o.Dir.Kubeconfig())
	if err != nil {
		return nil, err
	}
	access.QPS = -1 // no limit
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		return nil, err
	}
	return &cluster{
		options:    o,
		config:     config,
		supervisor: supervisor.New(report),
		prober:     prober,
		access:     access,
		client:     client,
		report:     report,
	}, nil
}

// start starts everything and returns when all of it is ready.
func (c *cluster) start(ctx context.Context) error {
	// kube-apiserver has a lot to do before it needs etcd.
	for _, name := range []string{components.Etcd, components.KubeAPIServer} {
		if err := c.run(name); err != nil {
			return err
		}
	}
	for _, name := range []string{components.Etcd, components.KubeAPIServer} {
		if err := c.await(ctx, name); err != nil {
			return err
		}
	}

	parts, ctx := errgroup.WithContext(ctx)
	for _, name := range []string{components.KubeControllerManager, components.KubeScheduler} {
		parts.Go(func() error { return c.runAndAwait(ctx, name) })
	}
	parts.Go(func() error { return c.awaitServiceAccount(ctx) })
	if c.options.KWOK {
		parts.Go(func() error { return c.runAndAwait(ctx, components.KWOK) })
		parts.Go(func() error { return c.startNodes(ctx) })
	}
	if c.options.RealNode {
		parts.Go(func() error { return c.startRealNode(ctx) })
	}
	if c.options.Copse {
		parts.Go(func() error { return c.startCopse(ctx) })
	}
	return parts.Wait()
}

// run starts a component.
func (c *cluster) run(name string) error {
	component, err := components.New(name, c.config)
	if err != nil {
		return err
	}
	return c.supervisor.Run(supervisor.Spec{
		Name:     name,
		Path:     component.Path,
		Args:     component.Args,
		Log:      component.Info.Log,
		Healthy:  func(ctx context.Context) error { return c.prober.Check(ctx, component.Info.Health) },
		Started:  c.whenStarted(name),
		StopLast: name == components.Etcd || name == components.CopseEtcd,
	})
}

func (c *cluster) await(ctx context.Context, name string) error {
	began := time.Now()
	if err := c.supervisor.WaitHealthy(ctx, name, startRestarts); err != nil {
		return &componentError{name: name, err: err}
	}
	c.report("%s is up after %.1f s", name, time.Since(began).Seconds())
	return nil
}

func (c *cluster) runAndAwait(ctx context.Context, name string) error {
	if err := c.run(name); err != nil {
		return err
	}
	return c.await(ctx, name)
}

// whenStarted returns what others have to know when a component has started.
func (c *cluster) whenStarted(name string) func(context.Context, bool) {
	switch {
	case c.options.KWOK && (name == components.Etcd || name == components.KubeAPIServer):
		return c.renewKWOK
	case name == components.CopseAPIServer:
		return c.announceCopse
	default:
		return nil
	}
}

// renewKWOK replaces KWOK after kube-apiserver or etcd was restarted. KWOK
// does not repeat a request that failed on the way, and then leaves the pod as
// it is for ever; a new one looks at all pods. A kubelet repeats it.
func (c *cluster) renewKWOK(ctx context.Context, restarted bool) {
	if !restarted || c.supervisor.WaitHealthy(ctx, components.KubeAPIServer, 0) != nil {
		return
	}
	// It fails when there is no KWOK to replace; the next one will be new anyway.
	if c.supervisor.Replace(components.KWOK) == nil {
		c.report("kwok is replaced")
	}
}

// componentError is the failure of a component to start.
type componentError struct {
	name string
	err  error
}

func (e *componentError) Error() string { return fmt.Sprintf("%s does not start: %v", e.name, e.err) }
func (e *componentError) Unwrap() error { return e.err }
