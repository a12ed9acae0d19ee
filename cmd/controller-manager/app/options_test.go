package app

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func TestValidate(t *testing.T) {
	const (
		workers = "--workers must be at least 1"
		domain  = "--cluster-domain must not be empty"
		grouper = "--pod-grouper needs --pod-grouper-config and --leader-election-namespace"
		unready = "--force-delete-after-node-unready must be 0 or at least 5m0s"
		notDNS  = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character " +
			"(e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
		election = "the lease duration must be longer than the renew deadline, and that longer than the retry period"
	)
	tests := map[string]struct {
		change func(*Options)
		want   string
	}{
		"defaults":                              {func(*Options) {}, ""},
		"no image of the waiter":                {func(o *Options) { o.StartGateImage = "" }, "--start-gate-image must not be empty"},
		"an unknown pull policy":                {func(o *Options) { o.StartGateImagePullPolicy = "Often" }, `--start-gate-image-pull-policy is "Often", not Always, IfNotPresent or Never`},
		"a known one":                           {func(o *Options) { o.StartGateImagePullPolicy = "Never" }, ""},
		"resources that are none":               {func(o *Options) { o.StartGateResources = map[string]string{"cpu": "much"} }, "--start-gate-resources: cpu=much is not a quantity above 0"},
		"resources of nothing":                  {func(o *Options) { o.StartGateResources = map[string]string{"cpu": "0"} }, "--start-gate-resources: cpu=0 is not a quantity above 0"},
		"no resources":                          {func(o *Options) { o.StartGateResources = nil }, ""},
		"an API server without a port":          {func(o *Options) { o.StartGateAPIServer = "host" }, "--start-gate-api-server must be HOST:PORT: address host: missing port in address"},
		"an API server":                         {func(o *Options) { o.StartGateAPIServer = "[::1]:443" }, ""},
		"no worker":                             {func(o *Options) { o.Workers = 0 }, workers},
		"fewer":                                 {func(o *Options) { o.Workers = -1 }, workers},
		"one":                                   {func(o *Options) { o.Workers = 1 }, ""},
		"five minutes without a ready node":     {func(o *Options) { o.UnreadyNodeTimeout = 5 * time.Minute }, ""},
		"less than five minutes":                {func(o *Options) { o.UnreadyNodeTimeout = 5*time.Minute - 1 }, unready},
		"less than never":                       {func(o *Options) { o.UnreadyNodeTimeout = -time.Hour }, unready},
		"no KAI":                                {func(o *Options) { o.KAISchedulerNames = nil }, ""},
		"KAI by other names":                    {func(o *Options) { o.KAISchedulerNames = []string{"kai", "kai.example.com"} }, ""},
		"KAI without a name":                    {func(o *Options) { o.KAISchedulerNames = []string{""} }, `--kai-scheduler-names: "" is not the name of a scheduler`},
		"KAI by what is no name":                {func(o *Options) { o.KAISchedulerNames = []string{"a b"} }, `--kai-scheduler-names: "a b" is not the name of a scheduler`},
		"KAI in place of Kubernetes' own":       {func(o *Options) { o.KAISchedulerNames = []string{"default-scheduler"} }, "--kai-scheduler-names: default-scheduler is Kubernetes' own scheduler"},
		"KAI twice":                             {func(o *Options) { o.KAISchedulerNames = []string{"kai", "kai"} }, "--kai-scheduler-names: kai is named twice"},
		"no domain":                             {func(o *Options) { o.ClusterDomain = "" }, domain},
		"no port of the webhook":                {func(o *Options) { o.WebhookBindAddress = "host" }, "--webhook-bind-address must be HOST:PORT, or 0: address host: missing port in address"},
		"a port that is none":                   {func(o *Options) { o.WebhookBindAddress = ":70000" }, `--webhook-bind-address: "70000" is not a port from 1 to 65535`},
		"a port that is chosen by nobody":       {func(o *Options) { o.WebhookBindAddress = ":0" }, `--webhook-bind-address: "0" is not a port from 1 to 65535`},
		"an address of the webhook":             {func(o *Options) { o.WebhookBindAddress, o.WebhookNames = "[::1]:9443", []string{"::1", "host"} }, ""},
		"a name that is none":                   {func(o *Options) { o.WebhookNames = []string{"a_b"} }, `--webhook-names: "a_b" is no IP address and no DNS name: ` + notDNS},
		"a lease as long as the renew deadline": {func(o *Options) { o.LeaseDuration = o.RenewDeadline }, election},
		"a renew deadline as long as the retry": {func(o *Options) { o.RenewDeadline = o.RetryPeriod }, election},
		"a pod grouper without configuration":   {func(o *Options) { o.PodGrouperConfig = "" }, grouper},
		"or without a namespace":                {func(o *Options) { o.LeaderElectionNamespace = "" }, grouper},
		"no pod grouper needs none":             {func(o *Options) { o.PodGrouper, o.PodGrouperConfig = false, "" }, ""},
		"no retry":                              {func(o *Options) { o.RetryPeriod = 0 }, election},
		"a negative retry":                      {func(o *Options) { o.RetryPeriod = -time.Second }, election},
		"nobody looks at the lease when nobody is elected": {func(o *Options) { o.LeaderElect, o.LeaseDuration = false, 0 }, ""},
		"all that is wrong is told": {
			func(o *Options) { o.Workers, o.ClusterDomain, o.RetryPeriod = 0, "", 0 }, "[" + strings.Join([]string{workers, domain, election}, ", ") + "]",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			options := NewOptions()
			tc.change(options)
			got := ""
			if err := options.Validate(); err != nil {
				got = err.Error()
			}
			expect(t, "error", tc.want, got)
		})
	}
}

func TestFlagsReachTheOptions(t *testing.T) {
	options := NewOptions()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	options.AddFlags(flags)
	if err := flags.Parse([]string{
		"--kubeconfig=file", "--metrics-bind-address=0", "--health-probe-bind-address=:1", "--webhook-bind-address=:2", "--webhook-names=a,::1", "--topology-aware-scheduling=false", "--pod-grouper=false", "--pod-grouper-config=c", "--leader-elect=false", "--leader-election-namespace=n",
		"--leader-election-lease-duration=3s", "--leader-election-renew-deadline=2s", "--leader-election-retry-period=1s",
		"--cluster-domain=d", "--workers=5", "--force-delete-after-node-unready=7m",
		"--start-gate-image=i", "--start-gate-image-pull-policy=Never", "--start-gate-resources=cpu=1", "--start-gate-api-server=h:1",
		"--kai-scheduler-names=a,b",
	}); err != nil {
		t.Fatal(err)
	}
	logs := options.Logs
	options.Logs = nil
	expect(t, "options", &Options{
		Kubeconfig: "file", MetricsBindAddress: "0", HealthProbeBindAddress: ":1", WebhookBindAddress: ":2", WebhookNames: []string{"a", "::1"}, PodGrouperConfig: "c", LeaderElect: false, LeaderElectionNamespace: "n",
		LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: time.Second, ClusterDomain: "d", Workers: 5, UnreadyNodeTimeout: 7 * time.Minute,
		StartGateImage: "i", StartGateImagePullPolicy: "Never", StartGateResources: map[string]string{"cpu": "1"}, StartGateAPIServer: "h:1", KAISchedulerNames: []string{"a", "b"},
	}, options)
	if logs == nil || flags.Lookup("v") == nil {
		t.Error("the verbosity of the log cannot be set")
	}
}

func TestFlagsShowTheirDefaults(t *testing.T) {
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	NewOptions().AddFlags(flags)
	for name, want := range map[string]string{
		"workers": "8", "kai-scheduler-names": "[kai-scheduler]", "cluster-domain": "cluster.local", "force-delete-after-node-unready": "0s", "leader-elect": "true", "leader-election-namespace": "copse-system",
		"leader-election-lease-duration": "15s", "leader-election-renew-deadline": "10s", "leader-election-retry-period": "2s",
		"metrics-bind-address": ":8443", "health-probe-bind-address": ":8081", "webhook-bind-address": "0", "pod-grouper": "true", "pod-grouper-config": "copse-pod-grouper", "kubeconfig": "",
	} {
		flag := flags.Lookup(name)
		if flag == nil {
			t.Errorf("no flag %s", name)
			continue
		}
		expect(t, name, want, flag.DefValue)
	}
}
