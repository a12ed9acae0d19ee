package app

import (
	"errors"
	"fmt"
	"net"
	"time"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	cliflag "k8s.io/component-base/cli/flag"
	basecompatibility "k8s.io/component-base/compatibility"
	logsapi "k8s.io/component-base/logs/api/v1"
	netutils "k8s.io/utils/net"

	"github.com/copse-dev/copse/pkg/apiserver"
	"github.com/copse-dev/copse/pkg/apiserver/admission"
	"github.com/copse-dev/copse/pkg/apiserver/storageguard"
	"github.com/copse-dev/copse/pkg/registry/grove/podcliqueset"
	"github.com/copse-dev/copse/pkg/version"
)

// etcdPrefix keeps Copse's keys apart from others', should an etcd be shared.
const etcdPrefix = "/registry/grove.io"

// storageGuardNamespace is where the manifests install the server.
const storageGuardNamespace = "copse-system"

// Options are the flags of the API server.
type Options struct {
	ServerRun   *genericoptions.ServerRunOptions
	Recommended *genericoptions.RecommendedOptions
	Logs        *logsapi.LoggingConfiguration

	// DataDir holds the embedded etcd, which runs when no --etcd-servers are given.
	DataDir string
	// StorageGuardNamespace is where the storage guard keeps its ConfigMap.
	StorageGuardNamespace string
	// DefaultTerminationDelay is given to new inference sets that name none; 0 leaves
	// gang termination off.
	DefaultTerminationDelay time.Duration

	scheme *runtime.Scheme
	codecs serializer.CodecFactory
}

// maxPatchCopyBytes is how much the copies of a JSON patch may add to an object. The
// result is not counted again (package requestlimits), so it has to be far less than what
// a body may have.
const maxPatchCopyBytes = 128 << 10

// NewOptions returns the defaults.
func NewOptions() *Options {
	scheme := apiserver.NewScheme()
	codecs := serializer.NewCodecFactory(scheme)
	o := &Options{
		// The generic server asks the feature gate of its options for Kubernetes' own
		// features, so the options have to be those of the kube component.
		ServerRun:   genericoptions.NewServerRunOptions(),
		Recommended: genericoptions.NewRecommendedOptions(etcdPrefix, apiserver.StorageCodec(codecs)),
		Logs:        logsapi.NewLoggingConfiguration(),
		scheme:      scheme,
		codecs:      codecs,

		StorageGuardNamespace: storageGuardNamespace,
	}
	admission.AddTo(o.Recommended)
	o.Recommended.Etcd.StorageConfig.EncodeVersioner = apiserver.StorageVersioner()
	o.Recommended.SecureServing.BindPort = 8443
	// Without these the end of the server waits a minute for watches, which end by
	// themselves only when their clients do.
	o.ServerRun.ShutdownSendRetryAfter = true
	o.ServerRun.JSONPatchMaxCopyBytes = maxPatchCopyBytes
	o.ServerRun.ShutdownWatchTerminationGracePeriod = 10 * time.Second
	return o
}

// Flags returns the flags in named groups.
func (o *Options) Flags() cliflag.NamedFlagSets {
	var groups cliflag.NamedFlagSets
	copse := groups.FlagSet("copse")
	copse.StringVar(&o.DataDir, "data-dir", o.DataDir,
		"Directory of the embedded etcd, which runs when --etcd-servers is not given. One replica of the API server only.")
	copse.StringVar(&o.StorageGuardNamespace, "storage-guard-namespace", o.StorageGuardNamespace,
		"Namespace of the ConfigMap "+storageguard.ConfigMapName+", by which the server knows its etcd again. It answers no request when etcd is another one, or older than it was.")
	copse.DurationVar(&o.DefaultTerminationDelay, "default-termination-delay", o.DefaultTerminationDelay,
		"terminationDelay of new inference PodCliqueSets that name none. 0 leaves gang termination off for them. It acts on creation only: a replace without the field, or terminationDelay: null, switches a delay given by this flag off.")
	o.ServerRun.AddUniversalFlags(groups.FlagSet("generic"))
	o.Recommended.AddFlags(groups.FlagSet("recommended"))
	logsapi.AddFlags(o.Logs, groups.FlagSet("logs"))
	// The generic options offer these though the storage of one codec ignores them.
	for _, name := range []string{"storage-media-type", "etcd-servers-overrides"} {
		if flag := groups.FlagSet("recommended").Lookup(name); flag != nil {
			flag.Hidden = true
		}
	}
	return groups
}

// EmbedsEtcd says whether the server runs an etcd of its own.
func (o *Options) EmbedsEtcd() bool {
	return len(o.Recommended.Etcd.StorageConfig.Transport.ServerList) == 0
}

// Validate returns everything that is wrong with the flags.
func (o *Options) Validate() error {
	var errs []error
	if o.EmbedsEtcd() {
		if o.DataDir == "" {
			errs = append(errs, errors.New("give --etcd-servers, or --data-dir to run an embedded etcd"))
		}
	} else if o.DataDir != "" {
		errs = append(errs, errors.New("--data-dir is for the embedded etcd and excludes --etcd-servers"))
	}
	if o.DefaultTerminationDelay < 0 {
		errs = append(errs, errors.New("--default-termination-delay must not be negative"))
	}
	for _, problem := range apivalidation.ValidateNamespaceName(o.StorageGuardNamespace, false) {
		errs = append(errs, fmt.Errorf("--storage-guard-namespace: %s", problem))
	}
	errs = append(errs, o.ServerRun.Validate()...)
	errs = append(errs, o.Recommended.SecureServing.Validate()...)
	errs = append(errs, o.Recommended.Authentication.Validate()...)
	errs = append(errs, o.Recommended.Authorization.Validate()...)
	errs = append(errs, o.Recommended.Audit.Validate()...)
	errs = append(errs, o.Recommended.Features.Validate()...)
	errs = append(errs, o.Recommended.Admission.Validate()...)
	return utilerrors.NewAggregate(errs)
}

// Config turns the flags into the configuration of a server. etcd is the endpoint of
// the embedded etcd, or empty.
func (o *Options) Config(etcd string) (*apiserver.Config, error) {
	if etcd != "" {
		o.Recommended.Etcd.StorageConfig.Transport.ServerList = []string{etcd}
	}
	if errs := o.Recommended.Etcd.Validate(); len(errs) > 0 {
		return nil, utilerrors.NewAggregate(errs)
	}
	if err := o.Recommended.SecureServing.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{netutils.ParseIPSloppy("127.0.0.1")}); err != nil {
		return nil, fmt.Errorf("make a serving certificate: %w", err)
	}
	config := apiserver.NewConfig(o.scheme, o.codecs)
	// The options of the run come first: priority and fairness is sized by them.
	if err := o.ServerRun.ApplyTo(&config.Generic.Config); err != nil {
		return nil, err
	}
	// The options took the version of the libraries; /version tells Copse's own.
	config.Generic.EffectiveVersion = basecompatibility.NewEffectiveVersionFromString(version.APIServer, version.APIServer, version.APIServer)
	if err := o.Recommended.ApplyTo(config.Generic); err != nil {
		return nil, err
	}
	guard, err := storageguard.New(storageguard.Options{
		Storage:   o.Recommended.Etcd.StorageConfig,
		Cluster:   config.Generic.ClientConfig,
		Namespace: o.StorageGuardNamespace,
	})
	if err != nil {
		return nil, fmt.Errorf("storage guard: %w", err)
	}
	config.Guard = guard
	if o.DefaultTerminationDelay > 0 {
		config.Defaults = podcliqueset.Defaults{TerminationDelay: &metav1.Duration{Duration: o.DefaultTerminationDelay}}
	}
	return config, nil
}
