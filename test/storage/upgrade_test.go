package storage

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/test/framework"
)

// An upgrade restarts no pod. What an earlier version stored is kept as it was in both
// etcds, and put back below the programs of today.

var recordTo = flag.String("upgrade.record", "", "file to record what the programs of now store, for the tests of later ones")

// upgraded is the namespace of the fixtures.
const upgraded = "upgraded"

// workloads are of each type and in each state that lasts.
const workloads = `
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: serve}
spec:
  replicas: 2
  template:
    terminationDelay: 1h
    cliques:
      - name: router
        labels: {app: router}
        spec:
          replicas: 2
          minAvailable: 1
          autoScalingConfig: {maxReplicas: 4, metrics: []}
          podSpec: {containers: [{name: main, image: example.com/router, ports: [{containerPort: 80}]}]}
      - name: leader
        spec:
          replicas: 1
          podSpec: {containers: [{name: main, image: example.com/server, env: [{name: ROLE, value: leader}]}]}
      - name: worker
        spec:
          replicas: 2
          podSpec: {containers: [{name: main, image: example.com/server, resources: {requests: {cpu: 10m}}}]}
    podCliqueScalingGroups:
      - name: decode
        cliqueNames: [leader, worker]
        replicas: 2
        minAvailable: 1
---
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: train}
spec:
  replicas: 1
  workloadType: Training
  trainingSpec: {maxRestarts: 2, maxRuntime: 8760h}
  template:
    cliques:
      - name: launcher
        spec:
          replicas: 1
          podSpec: {containers: [{name: main, image: example.com/trainer}]}
      - name: worker
        spec:
          replicas: 3
          podSpec:
            restartPolicy: OnFailure
            initContainers: [{name: fetch, image: example.com/fetch}]
            containers: [{name: main, image: example.com/trainer, livenessProbe: {httpGet: {port: 80}}}]
            volumes: [{name: data, emptyDir: {}}]
---
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: done}
spec:
  replicas: 1
  workloadType: Training
  template:
    cliques:
      - name: worker
        annotations: {kwok.copse.dev/exit-after: 0s}
        spec:
          replicas: 2
          podSpec: {containers: [{name: main, image: example.com/trainer}]}
---
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: failed}
spec:
  replicas: 1
  workloadType: Training
  template:
    cliques:
      - name: worker
        annotations: {kwok.copse.dev/exit-after: 0s, kwok.copse.dev/exit-code: "3"}
        spec:
          replicas: 2
          podSpec: {containers: [{name: main, image: example.com/trainer}]}
`

// workloadPods is how many pods they have.
const workloadPods = 24

// stored is one key of an etcd.
type stored struct {
	Etcd  string `json:"etcd"`
	Key   string `json:"key"`
	Value []byte `json:"value"`
}

// prefixes are what is recorded of each etcd.
func prefixes() map[string][]string {
	kept := map[string][]string{"copse-etcd": {"/registry/grove.io/"}}
	for _, resource := range []string{"pods", "services/specs", "podgroups", "endpoints", "endpointslices", "serviceaccounts", "configmaps"} {
		kept["etcd"] = append(kept["etcd"], "/registry/"+resource+"/"+upgraded+"/")
	}
	kept["etcd"] = append(kept["etcd"], "/registry/namespaces/"+upgraded)
	return kept
}

func connect(t *testing.T, etcd string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{cluster.Components[etcd].URL}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// TestRecordForUpgrades makes a fixture. It is run with the programs of a version that is
// about to be the earlier one:
//
//	go test ./test/storage -run TestRecordForUpgrades -upgrade.record testdata/upgrade/VERSION.json.gz
func TestRecordForUpgrades(t *testing.T) {
	if *recordTo == "" {
		t.Skip("it makes a fixture and tests nothing: -upgrade.record=FILE runs it")
	}
	ns := cluster.Namespace(t, framework.Unrecorded("the fixture is in a namespace of its own"))
	ns.Anywhere().Apply(fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", upgraded))
	ns = ns.Named(upgraded)
	ns.Apply(workloads)
	ns.WaitForPhase("done", grovev1alpha1.PodCliqueSetSucceeded, time.Minute)
	ns.WaitForPhase("failed", grovev1alpha1.PodCliqueSetFailed, time.Minute)
	ns.WaitForPods(workloadPods, time.Minute, isSettled)
	exit(ns, "--selector=grove.io/podclique=train-0-launcher", 1)
	ns.WaitForPods(workloadPods, time.Minute, func(pod *corev1.Pod) bool {
		return isSettled(pod) && (pod.Labels["grove.io/podclique"] != "train-0-launcher" || framework.IsReady(pod))
	})
	ns.Eventually(time.Minute, func(context.Context) error {
		if set := ns.Set("train"); set.Status.RestartCount != 1 || set.Status.Phase != grovev1alpha1.PodCliqueSetRunning {
			return fmt.Errorf("it has %d restarts and is %s", set.Status.RestartCount, set.Status.Phase)
		}
		return nil
	})
	ns.Never(5*time.Second, func(context.Context) error { return nil })

	var all []stored
	for etcd, below := range prefixes() {
		client := connect(t, etcd)
		for _, prefix := range below {
			response, err := client.Get(t.Context(), prefix, clientv3.WithPrefix())
			if err != nil {
				t.Fatal(err)
			}
			for _, kv := range response.Kvs {
				if !strings.HasSuffix(string(kv.Key), "/storage-identity") && !strings.Contains(string(kv.Key), "/kube-root-ca.crt") {
					all = append(all, stored{Etcd: etcd, Key: string(kv.Key), Value: kv.Value})
				}
			}
		}
	}
	file, err := os.Create(*recordTo)
	if err != nil {
		t.Fatal(err)
	}
	zip := gzip.NewWriter(file)
	if err := json.NewEncoder(zip).Encode(all); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d keys are in %s", len(all), *recordTo)
}

// isSettled says that a pod runs and is ready, or has ended.
func isSettled(pod *corev1.Pod) bool {
	return framework.IsReady(pod) || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func TestAnUpgradeRestartsNoPod(t *testing.T) {
	fixtures, err := filepath.Glob("testdata/upgrade/*.json.gz")
	if err != nil || len(fixtures) == 0 {
		t.Fatalf("there are no fixtures: %v", err)
	}
	for _, fixture := range fixtures {
		t.Run(strings.TrimSuffix(filepath.Base(fixture), ".json.gz"), func(t *testing.T) { upgrade(t, readFixture(t, fixture)) })
	}
}

func readFixture(t *testing.T, path string) []stored {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []stored
	if err := json.NewDecoder(unzipped).Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

func upgrade(t *testing.T, fixture []stored) {
	outer := cluster.Namespace(t, framework.Unrecorded("objects of an earlier version come from nowhere"))
	s := newStorage(t, outer)
	cluster.Stop(t, "copse-controller-manager")
	cluster.Stop(t, "copse-apiserver")
	clients := map[string]*clientv3.Client{}
	// Owners first, as the garbage collector looks at once.
	for _, etcd := range []string{"copse-etcd", "etcd"} {
		clients[etcd] = connect(t, etcd)
		for _, kv := range fixture {
			if kv.Etcd != etcd {
				continue
			}
			if _, err := clients[etcd].Put(t.Context(), kv.Key, string(kv.Value)); err != nil {
				t.Fatal(err)
			}
		}
		if etcd == "copse-etcd" {
			cluster.Start(t, "copse-apiserver")
			s.waitOpen()
		}
	}
	ns := outer.Named(upgraded)
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		pods, err := ns.Pods(ctx)
		if err == nil && len(pods) != workloadPods {
			err = fmt.Errorf("there are %d pods", len(pods))
		}
		return err
	})
	pods, err := ns.Pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := map[string]*grovev1alpha1.PodCliqueSet{}
	for _, name := range []string{"serve", "train", "done", "failed"} {
		before[name] = ns.Set(name)
	}
	groups := belongings(ns)

	s.ns = ns
	cluster.Start(t, "copse-controller-manager")
	ns.Never(watched, s.none(pods))
	// The same manifest again is no change either.
	ns.Apply(workloads)
	ns.Never(watched, s.none(pods))
	for name, was := range before {
		is := ns.Set(name)
		if is.Status.Phase != was.Status.Phase || is.Status.RestartCount != was.Status.RestartCount || is.Status.CurrentGenerationHash == nil ||
			*is.Status.CurrentGenerationHash != *was.Status.CurrentGenerationHash {
			t.Errorf("set %s has become %+v, and was %+v", name, is.Status, was.Status)
		}
		for i := range was.Status.Conditions {
			if c := &was.Status.Conditions[i]; c.Status == metav1.ConditionTrue && !hasCondition(is, c) {
				t.Errorf("set %s has lost its condition %s since %s", name, c.Type, c.LastTransitionTime)
			}
		}
	}
	if again := belongings(ns); again != groups {
		t.Errorf("what belongs to the sets has become\n%s, and was\n%s", again, groups)
	}

	// The controllers do see the sets: what happens now has its effect.
	exit(ns, "--selector=grove.io/podclique=train-0-worker", 1)
	ns.Eventually(time.Minute, func(context.Context) error {
		if set := ns.Set("train"); set.Status.RestartCount != 2 {
			return fmt.Errorf("it has %d restarts", set.Status.RestartCount)
		}
		return nil
	})
	ns.Kubectl("delete", "pcs", "--all", "--wait=false")
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		left, err := ns.Pods(ctx)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%d pods are left", len(left))
		}
		return err
	})
	ns.Kubectl("delete", "namespace", upgraded)
}

// belongings are the names of what belongs to the sets. Each API group is served again in
// its own time after a start.
func belongings(ns *framework.Namespace) string {
	var names string
	ns.Eventually(time.Minute, func(context.Context) (err error) {
		names, err = ns.TryKubectl("get", "podgroups.scheduling.k8s.io,podgangs,podcliques,podcliquescalinggroups", "-o", "name")
		return err
	})
	return names
}

func hasCondition(set *grovev1alpha1.PodCliqueSet, want *metav1.Condition) bool {
	for i := range set.Status.Conditions {
		if c := &set.Status.Conditions[i]; c.Type == want.Type {
			return c.Status == want.Status && c.LastTransitionTime.Equal(&want.LastTransitionTime)
		}
	}
	return false
}
