package components

import (
	"slices"
	"strings"
	"testing"

	"github.com/copse-dev/copse/hack/cluster/internal/state"
)

func testConfig() Config {
	c := Config{
		Dir:         state.Dir("/state"),
		BinDir:      "/bin",
		Port:        map[string]int{},
		ExtraPort:   map[string]int{},
		WebhookPort: 3000,
		Verbosity:   2,
		ExtraArgs:   map[string][]string{KubeScheduler: {"--v=9"}},
	}
	for i, name := range Names(Parts{KWOK: true, Copse: true}) {
		c.Port[name] = 1000 + i
		if NeedsExtraPort(name) {
			c.ExtraPort[name] = 2000 + i
		}
	}
	return c
}

func TestNames(t *testing.T) {
	if got := Names(Parts{}); slices.Contains(got, KWOK) || slices.Contains(got, CopseEtcd) {
		t.Errorf("the bare cluster has %q", got)
	}
	if got := Names(Parts{KWOK: true, RealNode: true, Copse: true}); len(got) != 11 || got[0] != Etcd {
		t.Errorf("the whole cluster has %q", got)
	}
	if _, err := New("kube-proxy", testConfig()); err == nil {
		t.Error("an unknown component has no error")
	}
}

// What a component is called with decides what the tests on top can see.
func TestFlags(t *testing.T) {
	for _, tc := range []struct {
		component string
		want      []string
	}{
		{Etcd, []string{"--name=etcd", "--data-dir=/state/data/etcd", "--listen-client-urls=http://127.0.0.1:1000",
			"--listen-peer-urls=http://127.0.0.1:2000", "--unsafe-no-fsync=true"}},
		{CopseEtcd, []string{"--name=copse-etcd", "--data-dir=/state/data/copse-etcd", "--initial-cluster=copse-etcd=http://127.0.0.1:2005"}},
		{KubeAPIServer, []string{"--etcd-servers=http://127.0.0.1:1000", "--secure-port=1001", "--feature-gates=GenericWorkload=true",
			"--runtime-config=scheduling.k8s.io/v1beta1=true", "--endpoint-reconciler-type=none",
			"--requestheader-client-ca-file=/state/certs/front-proxy-ca.crt", "--requestheader-allowed-names=front-proxy-client"}},
		{KubeControllerManager, []string{"--kubeconfig=/state/kubeconfigs/kube-controller-manager", "--feature-gates=GenericWorkload=true",
			"--kube-api-qps=1000", "--leader-elect=false", "--use-service-account-credentials=true", "--horizontal-pod-autoscaler-sync-period=1s"}},
		{KubeScheduler, []string{"--feature-gates=GenericWorkload=true", "--kube-api-burst=2000", "--leader-elect=false", "--v=2", "--v=9"}},
		{KWOK, []string{"--manage-all-nodes=false", "--manage-nodes-with-label-selector=type=kwok", "--config=/state/kwok.yaml"}},
		{CopseAPIServer, []string{"--secure-port=1006", "--bind-address=127.0.0.1", "--etcd-servers=http://127.0.0.1:1005",
			"--kubeconfig=/state/kubeconfigs/copse-apiserver", "--authorization-kubeconfig=/state/kubeconfigs/copse-apiserver"}},
		{CopseControllerManager, []string{"--kubeconfig=/state/kubeconfigs/copse-controller-manager",
			"--metrics-bind-address=127.0.0.1:1007", "--health-probe-bind-address=127.0.0.1:2007", "--webhook-bind-address=127.0.0.1:3000"}},
	} {
		c, err := New(tc.component, testConfig())
		if err != nil {
			t.Fatal(err)
		}
		for _, flag := range tc.want {
			if !slices.Contains(c.Args, flag) {
				t.Errorf("%s is called without %s: %q", tc.component, flag, c.Args)
			}
		}
	}
}

func TestExtraArgsComeLast(t *testing.T) {
	c, err := New(KubeScheduler, testConfig())
	if err != nil {
		t.Fatal(err)
	}
	if last := c.Args[len(c.Args)-1]; last != "--v=9" {
		t.Errorf("the last flag is %s", last)
	}
}

// Nothing of Copse runs as an administrator, and nobody listens beyond loopback.
func TestNothingIsExposed(t *testing.T) {
	for _, name := range Names(Parts{KWOK: true, Copse: true}) {
		c, err := New(name, testConfig())
		if err != nil {
			t.Fatal(err)
		}
		for _, url := range []string{c.Info.URL, c.Info.Health, c.Info.Metrics} {
			if !strings.Contains(url, "//127.0.0.1:") {
				t.Errorf("%s has the address %s", name, url)
			}
		}
		for _, arg := range c.Args {
			if strings.Contains(arg, "=0.0.0.0") {
				t.Errorf("%s is called with %s", name, arg)
			}
			if strings.HasPrefix(name, "copse-") && strings.Contains(arg, "admin") {
				t.Errorf("%s is called with %s", name, arg)
			}
		}
	}
}
