package app

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/copse-dev/copse/pkg/podspec"
)

// Options are the flags of the controller manager.
type Options struct {
	// Kubeconfig is a file; empty means the pod's own service account.
	Kubeconfig string
	// MetricsBindAddress serves /metrics over HTTPS to whoever may read it; "0" for none.
	MetricsBindAddress string
	// HealthProbeBindAddress serves /healthz and /readyz.
	HealthProbeBindAddress string
	// WebhookBindAddress serves the webhook that puts pods into groups, over HTTPS; "0" for
	// none.
	WebhookBindAddress string
	// WebhookNames are DNS names and IP addresses of the webhook's certificate beside those of
	// its Service.
	WebhookNames []string
	// LeaderElect lets one of several replicas work at a time.
	LeaderElect bool
	// LeaderElectionNamespace holds the Lease.
	LeaderElectionNamespace string
	LeaseDuration           time.Duration
	RenewDeadline           time.Duration
	RetryPeriod             time.Duration
	// ClusterDomain is the domain of the cluster's DNS.
	ClusterDomain string
	// UnreadyNodeTimeout is how long a node may be not ready until pods that it should have
	// stopped are force-deleted; 0 for never.
	UnreadyNodeTimeout time.Duration
	// StartGateImage is the image of the container that holds a pod's own ones back.
	StartGateImage string
	// StartGateImagePullPolicy is when it is pulled; empty for the cluster's default.
	StartGateImagePullPolicy string
	// StartGateResources are its requests and limits.
	StartGateResources map[string]string
	// StartGateAPIServer is the host and port of kube-apiserver for it; empty for those that
	// Kubernetes gives to every container.
	StartGateAPIServer string
	// KAISchedulerNames are the schedulers that are told of gangs by KAI's groups.
	KAISchedulerNames []string
	// TopologyAwareScheduling has gangs placed by the topology constraints of their sets.
	TopologyAwareScheduling bool
	// PodGrouper puts pods of any workload into groups, where their namespace asks for it.
	PodGrouper bool
	// PodGrouperConfig is the name of the ConfigMap that configures it, in the namespace of
	// the Lease.
	PodGrouperConfig string
	// Workers is how many keys each controller works on at once.
	Workers int

	Logs *logsapi.LoggingConfiguration
}

// minUnreadyNodeTimeout is the time after which Kubernetes itself evicts pods from a node
// that is not ready; before that the node may well come back.
const minUnreadyNodeTimeout = 5 * time.Minute

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		MetricsBindAddress:      ":8443",
		HealthProbeBindAddress:  ":8081",
		WebhookBindAddress:      noAddress,
		LeaderElect:             true,
		LeaderElectionNamespace: "copse-system",
		LeaseDuration:           15 * time.Second,
		RenewDeadline:           10 * time.Second,
		RetryPeriod:             2 * time.Second,
		ClusterDomain:           "cluster.local",
		StartGateImage:          "start-gate:latest",
		StartGateResources:      map[string]string{"cpu": "50m", "memory": "32Mi"},
		KAISchedulerNames:       []string{"kai-scheduler"},
		TopologyAwareScheduling: true,
		PodGrouper:              true,
		PodGrouperConfig:        "copse-pod-grouper",
		Workers:                 8,
		Logs:                    logsapi.NewLoggingConfiguration(),
	}
}

// AddFlags adds the flags to a set.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Kubeconfig file. Empty for the service account of the pod.")
	fs.StringVar(&o.MetricsBindAddress, "metrics-bind-address", o.MetricsBindAddress, "Address of /metrics, served over HTTPS to those who may get it. 0 for none.")
	fs.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", o.HealthProbeBindAddress, "Address of /healthz and /readyz.")
	fs.StringVar(&o.WebhookBindAddress, "webhook-bind-address", o.WebhookBindAddress, "Address of the webhook that puts pods into groups while they are created, served over HTTPS. 0 for none.")
	fs.StringSliceVar(&o.WebhookNames, "webhook-names", o.WebhookNames, "DNS names and IP addresses by which the webhook is called beside those of its Service "+webhookService+", for its certificate.")
	fs.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "Let one of several replicas work at a time.")
	fs.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", o.LeaderElectionNamespace, "Namespace of the Lease of the leader.")
	fs.DurationVar(&o.LeaseDuration, "leader-election-lease-duration", o.LeaseDuration, "How long others wait for a leader that is not heard of.")
	fs.DurationVar(&o.RenewDeadline, "leader-election-renew-deadline", o.RenewDeadline, "How long a leader tries to renew its Lease before it gives up.")
	fs.DurationVar(&o.RetryPeriod, "leader-election-retry-period", o.RetryPeriod, "Time between tries to get or renew the Lease.")
	fs.StringVar(&o.ClusterDomain, "cluster-domain", o.ClusterDomain, "Domain of the cluster's DNS.")
	fs.DurationVar(&o.UnreadyNodeTimeout, "force-delete-after-node-unready", o.UnreadyNodeTimeout, "How long a node may be not ready until terminating pods on it are force-deleted, at least 5m. "+
		"A node that is cut off may still run them beside their replacements: set it only where something switches such nodes off. 0 for never.")
	fs.StringVar(&o.StartGateImage, "start-gate-image", o.StartGateImage, "Image of the init container in which pods wait to start, for cliqueStartupType and groupSchedulingConfig.")
	fs.StringVar(&o.StartGateImagePullPolicy, "start-gate-image-pull-policy", o.StartGateImagePullPolicy, "When that image is pulled: Always, IfNotPresent or Never. Empty for the cluster's default.")
	fs.StringToStringVar(&o.StartGateResources, "start-gate-resources", o.StartGateResources, "What that container requests, which is its limit as well: else a pod that is Guaranteed would be Burstable.")
	fs.StringVar(&o.StartGateAPIServer, "start-gate-api-server", o.StartGateAPIServer, "Host and port at which that container reaches kube-apiserver. Empty for those that Kubernetes gives to every container.")
	fs.StringSliceVar(&o.KAISchedulerNames, "kai-scheduler-names", o.KAISchedulerNames, "Schedulers that are told of gangs by PodGroups of scheduling.run.ai/v2alpha2, where the cluster has these when this program begins to lead. Empty for none.")
	fs.BoolVar(&o.TopologyAwareScheduling, "topology-aware-scheduling", o.TopologyAwareScheduling, "Place gangs by the topology constraints of their sets, as far as their scheduler can. Without it pods are placed freely, and the sets say so.")
	fs.BoolVar(&o.PodGrouper, "pod-grouper", o.PodGrouper, "Put pods of any workload into groups, in namespaces with the label scheduler.grove.io/pod-grouper=enabled.")
	fs.StringVar(&o.PodGrouperConfig, "pod-grouper-config", o.PodGrouperConfig, "Name of the ConfigMap that configures the pod grouper, in the namespace of the Lease of the leader.")
	fs.IntVar(&o.Workers, "workers", o.Workers, "How many objects each controller works on at once.")
	logsapi.AddFlags(o.Logs, fs)
}

// Validate returns everything that is wrong with the flags.
func (o *Options) Validate() error {
	var errs []error
	if o.Workers < 1 {
		errs = append(errs, errors.New("--workers must be at least 1"))
	}
	if o.ClusterDomain == "" {
		errs = append(errs, errors.New("--cluster-domain must not be empty"))
	}
	for i, name := range o.KAISchedulerNames {
		switch {
		case len(validation.IsDNS1123Subdomain(name)) > 0:
			errs = append(errs, fmt.Errorf("--kai-scheduler-names: %q is not the name of a scheduler", name))
		case name == corev1.DefaultSchedulerName:
			errs = append(errs, fmt.Errorf("--kai-scheduler-names: %s is Kubernetes' own scheduler", name))
		case slices.Contains(o.KAISchedulerNames[:i], name):
			errs = append(errs, fmt.Errorf("--kai-scheduler-names: %s is named twice", name))
		}
	}
	if o.PodGrouper && (o.PodGrouperConfig == "" || o.LeaderElectionNamespace == "") {
		errs = append(errs, errors.New("--pod-grouper needs --pod-grouper-config and --leader-election-namespace"))
	}
	if _, err := o.waiter(); err != nil {
		errs = append(errs, err)
	}
	if _, _, err := o.webhookAddress(); err != nil {
		errs = append(errs, err)
	}
	if _, err := o.webhookNames(); err != nil {
		errs = append(errs, err)
	}
	if o.UnreadyNodeTimeout != 0 && o.UnreadyNodeTimeout < minUnreadyNodeTimeout {
		errs = append(errs, fmt.Errorf("--force-delete-after-node-unready must be 0 or at least %s", minUnreadyNodeTimeout))
	}
	if o.LeaderElect && (o.LeaseDuration <= o.RenewDeadline || o.RenewDeadline <= o.RetryPeriod || o.RetryPeriod <= 0) {
		errs = append(errs, errors.New("the lease duration must be longer than the renew deadline, and that longer than the retry period"))
	}
	return utilerrors.NewAggregate(errs)
}

// waiter is how pods wait to start. It fails when a flag is wrong.
func (o *Options) waiter() (podspec.Waiter, error) {
	out := podspec.Waiter{Image: o.StartGateImage, ImagePullPolicy: corev1.PullPolicy(o.StartGateImagePullPolicy), Resources: corev1.ResourceList{}, APIServer: o.StartGateAPIServer}
	if o.StartGateImage == "" {
		return out, errors.New("--start-gate-image must not be empty")
	}
	switch out.ImagePullPolicy {
	case "", corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever:
	default:
		return out, fmt.Errorf("--start-gate-image-pull-policy is %q, not Always, IfNotPresent or Never", o.StartGateImagePullPolicy)
	}
	for name, text := range o.StartGateResources {
		quantity, err := resource.ParseQuantity(text)
		if err != nil || quantity.Sign() <= 0 {
			return out, fmt.Errorf("--start-gate-resources: %s=%s is not a quantity above 0", name, text)
		}
		out.Resources[corev1.ResourceName(name)] = quantity
	}
	if o.StartGateAPIServer != "" {
		if _, _, err := net.SplitHostPort(o.StartGateAPIServer); err != nil {
			return out, fmt.Errorf("--start-gate-api-server must be HOST:PORT: %w", err)
		}
	}
	return out, nil
}
