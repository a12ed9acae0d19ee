package storage

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	copseclient "github.com/copse-dev/copse/pkg/generated/clientset/versioned"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/test/framework"
)

// The storage guard (D25), with etcds that are really replaced under pods that run, and
// the cluster's own garbage collector. The tests are not parallel: while the server is
// shut it is so for everybody.

const (
	copseNamespace = "copse-system"
	record         = "copse-storage"
	// watched is how long pods are watched. The garbage collector, when it may, has deleted
	// them within a second or two: TestAnEmptyEtcdThatIsAccepted has it do so.
	watched = 10 * time.Second
)

// storage is the etcd of Copse's API server, and direct a client that goes past the
// aggregation layer: what that answers by itself proves nothing here.
type storage struct {
	t      *testing.T
	ns     *framework.Namespace
	direct *copseclient.Clientset
	data   string
}

// training is a set of workers that exit with 0 after a time.
func training(name string, workers int, exitAfter string) string {
	return fmt.Sprintf(`
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: %s}
spec:
  replicas: 1
  workloadType: Training
  template:
    cliques:
      - name: worker
        annotations: {kwok.copse.dev/exit-after: %s}
        spec:
          replicas: %d
          podSpec:
            containers: [{name: main, image: example.com/trainer}]
`, name, exitAfter, workers)
}

// exit lets pods exit, all of them with --all.
func exit(ns *framework.Namespace, pod string, code int) {
	ns.Kubectl("annotate", "pods", pod, "--overwrite", "kwok.copse.dev/exit-after=0s", fmt.Sprintf("kwok.copse.dev/exit-code=%d", code))
}

func newStorage(t *testing.T, ns *framework.Namespace) *storage {
	t.Helper()
	direct, err := copseclient.NewForConfig(cluster.Direct("copse-apiserver"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			// What a server that is shut says is nowhere else.
			t.Logf("the server's log ends with:\n%s", lastLines(cluster.Log(t, "copse-apiserver"), 100))
			t.Logf("the controller-manager's log ends with:\n%s", lastLines(cluster.Log(t, "copse-controller-manager"), 30))
		}
	})
	return &storage{t: t, ns: ns, direct: direct, data: cluster.Data("copse-etcd")}
}

func lastLines(text string, n int) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// copyTo keeps what etcd holds now.
func (s *storage) copyTo(path string) {
	s.t.Helper()
	cluster.Stop(s.t, "copse-etcd")
	if err := os.CopyFS(path, os.DirFS(s.data)); err != nil {
		s.t.Fatal(err)
	}
	cluster.Start(s.t, "copse-etcd")
}

// swap puts the data in a folder in place of etcd's, which is kept in another one. An
// empty path stands for no data.
func (s *storage) swap(in, kept string) {
	s.t.Helper()
	cluster.Stop(s.t, "copse-etcd")
	for _, move := range [][2]string{{s.data, kept}, {in, s.data}} {
		if move[0] == "" {
			continue
		}
		if err := os.Rename(move[0], move[1]); err != nil {
			s.t.Fatal(err)
		}
	}
	cluster.Start(s.t, "copse-etcd")
}

// announce lets kube-apiserver notice the server at once, as Endpoints do in a cluster
// whose servers are pods.
func (s *storage) announce() {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"cluster.copse.dev/server-started":%q}}}`, time.Now().Format(time.RFC3339Nano))
	if _, err := cluster.Kube.CoreV1().Services(copseNamespace).Patch(s.t.Context(), "copse-apiserver", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// waitShut waits until the server is shut for a reason, for every verb.
func (s *storage) waitShut(reason string) {
	s.t.Helper()
	shut := func(err error) error {
		var status *apierrors.StatusError
		if !errors.As(err, &status) || status.ErrStatus.Code != http.StatusServiceUnavailable || !apierrors.HasStatusCause(err, metav1.CauseType(reason)) {
			return fmt.Errorf("answered with %w, want 503 and the cause %s", err, reason)
		}
		return nil
	}
	ctx := context.Background()
	s.ns.Eventually(time.Minute, func(context.Context) error {
		// Without the client's own retries, of which there would be ten.
		return shut(s.direct.GroveV1alpha1().RESTClient().Get().MaxRetries(0).Namespace(s.ns.Name).Resource("podcliquesets").Name("any").Do(ctx).Error())
	})
	s.announce()
	rest := s.direct.GroveV1alpha1().RESTClient()
	for what, err := range map[string]error{
		"list":   rest.Get().MaxRetries(0).Resource("podcliques").Do(ctx).Error(),
		"delete": rest.Delete().MaxRetries(0).Namespace(s.ns.Name).Resource("podcliquesets").Name("any").Do(ctx).Error(),
		"create": rest.Post().MaxRetries(0).Namespace(s.ns.Name).Resource("podcliquesets").Body(&grovev1alpha1.PodCliqueSet{}).Do(ctx).Error(),
	} {
		if err := shut(err); err != nil {
			s.t.Errorf("%s: %v", what, err)
		}
	}
	_, err := rest.Get().MaxRetries(0).Resource("podcliques").Param("watch", "true").Watch(ctx)
	if err := shut(err); err != nil {
		s.t.Errorf("watch: %v", err)
	}
	if text := s.readiness(); !strings.Contains(text, reason) {
		s.t.Errorf("/readyz/storage-guard says %q, want the reason %s", text, reason)
	}
	if _, err := rest.Get().AbsPath("/readyz").MaxRetries(0).Do(ctx).Raw(); err == nil {
		s.t.Error("the server is ready")
	}
}

// readiness is what the server says of its storage.
func (s *storage) readiness() string {
	err := s.direct.GroveV1alpha1().RESTClient().Get().AbsPath("/readyz/storage-guard").MaxRetries(0).Do(context.Background()).Error()
	if err == nil {
		return ""
	}
	return err.Error()
}

// waitOpen waits until the server answers, and kube-apiserver passes it on.
func (s *storage) waitOpen() {
	s.t.Helper()
	s.ns.Eventually(time.Minute, func(ctx context.Context) error {
		return s.direct.GroveV1alpha1().RESTClient().Get().MaxRetries(0).Resource("podcliquesets").Do(ctx).Error()
	})
	s.announce()
	s.ns.Eventually(time.Minute, func(ctx context.Context) error {
		_, err := cluster.Copse.GroveV1alpha1().PodCliqueSets(s.ns.Name).List(ctx, metav1.ListOptions{})
		return err
	})
}

// noPodGoes has the garbage collector look at every pod, and watches that none goes.
func (s *storage) noPodGoes(pods []corev1.Pod) {
	s.t.Helper()
	// A new one asks for the owners of all pods.
	cluster.Kill(s.t, "kube-controller-manager")
	s.ns.Never(watched, s.none(pods))
}

// none says that none of the pods is gone or on its way, and that there is no other.
func (s *storage) none(pods []corev1.Pod) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		current, err := s.ns.Pods(ctx)
		if err != nil {
			return err
		}
		alive := map[types.UID]bool{}
		for i := range current {
			alive[current[i].UID] = current[i].DeletionTimestamp == nil
		}
		for i := range pods {
			if !alive[pods[i].UID] {
				return fmt.Errorf("pod %s is gone or goes", pods[i].Name)
			}
		}
		if len(current) != len(pods) {
			return fmt.Errorf("there are %d pods, there were %d", len(current), len(pods))
		}
		return nil
	}
}

// edit changes the record.
func (s *storage) edit(change func(*corev1.ConfigMap)) {
	s.t.Helper()
	client := cluster.Kube.CoreV1().ConfigMaps(copseNamespace)
	s.ns.Eventually(time.Minute, func(ctx context.Context) error {
		configMap, err := client.Get(ctx, record, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(configMap)
		_, err = client.Update(ctx, configMap, metav1.UpdateOptions{})
		return err
	})
}

func (s *storage) revision() string {
	s.t.Helper()
	configMap, err := cluster.Kube.CoreV1().ConfigMaps(copseNamespace).Get(s.t.Context(), record, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return configMap.Data["revision"]
}

func TestAnEmptyEtcdDeletesNoPod(t *testing.T) {
	ns := cluster.Namespace(t, framework.Unrecorded("the etcd is replaced"))
	s := newStorage(t, ns)
	ns.Apply(training("job", 4, "1h"))
	pods := ns.WaitForPods(4, time.Minute, framework.IsReady)
	set := ns.Set("job")
	right := t.TempDir() + "/right"

	s.swap("", right)
	// Under a running server, and then at the start of one.
	s.waitShut("StorageHasNoIdentity")
	s.noPodGoes(pods)
	cluster.Kill(t, "copse-apiserver")
	s.waitShut("StorageHasNoIdentity")
	// With the record gone as well, the pods are what is left to know by.
	if err := cluster.Kube.CoreV1().ConfigMaps(copseNamespace).Delete(t.Context(), record, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.waitShut("PodsOfAnotherInstallation")
	s.noPodGoes(pods)

	s.swap(right, t.TempDir()+"/empty")
	s.waitOpen()
	if again := ns.Set("job"); again.UID != set.UID {
		t.Errorf("the set has UID %s, and had %s", again.UID, set.UID)
	}
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		events, err := cluster.Kube.EventsV1().Events(copseNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.Reason == "StorageRecordRecreated" && event.Type == corev1.EventTypeWarning {
				return nil
			}
		}
		return errors.New("nobody warns of a record that was made again")
	})
	s.noPodGoes(pods)
	exit(ns, "--all", 0)
	ns.AwaitExits(time.Minute)
	ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetSucceeded, time.Minute)
}

// A snapshot that lacks a set and an attempt.
func TestAnOlderEtcdDeletesNoPod(t *testing.T) {
	ns := cluster.Namespace(t, framework.Unrecorded("the etcd is replaced"))
	s := newStorage(t, ns)
	ns.Apply(strings.Replace(training("old", 2, "1h"), "workloadType: Training", "workloadType: Training\n  trainingSpec: {maxRestarts: 3}", 1))
	before := ns.WaitForPods(2, time.Minute, framework.IsReady)
	dir := t.TempDir()
	s.copyTo(dir + "/older")
	older := s.revision()
	taken := time.Now()
	s.waitOpen()

	exit(ns, before[0].Name, 1)
	ns.Apply(training("new", 2, "1h"))
	pods := ns.WaitForPods(4, time.Minute, func(pod *corev1.Pod) bool {
		return framework.IsReady(pod) && (strings.HasPrefix(pod.Name, "new-") || pod.Labels[labels.RestartAttempt] == "1")
	})
	set := ns.Set("new")
	if wait := time.Until(taken.Add(5 * time.Second)); wait > 0 {
		ns.Never(wait, s.none(pods))
	}

	// Under a running server, which has seen more.
	s.swap(dir+"/older", dir+"/right")
	s.ns.Eventually(time.Minute, func(context.Context) error {
		err := s.direct.GroveV1alpha1().RESTClient().Get().MaxRetries(0).Resource("podcliquesets").Do(context.Background()).Error()
		if !apierrors.HasStatusCause(err, "StorageFellBack") && !apierrors.HasStatusCause(err, "StorageIsBehindRecord") {
			return fmt.Errorf("answered with %w", err)
		}
		return nil
	})
	s.noPodGoes(pods)
	// The next process knows it by the record.
	cluster.Kill(t, "copse-apiserver")
	s.waitShut("StorageIsBehindRecord")
	// Had the servers ended before they recorded it, the pods would tell.
	cluster.Stop(t, "copse-apiserver")
	s.edit(func(c *corev1.ConfigMap) { c.Data["revision"] = older })
	cluster.Begin(t, "copse-apiserver")
	s.waitShut("StorageLacksOwnersOfPods")
	text := s.readiness()
	for _, problem := range []string{"PodClique new-0-worker", "does not exist", "of attempt 1 of PodClique old-0-worker, which is in attempt 0"} {
		if !strings.Contains(text, problem) {
			t.Errorf("%q is not told in: %s", problem, text)
		}
	}
	s.noPodGoes(pods)

	s.swap(dir+"/right", dir+"/wrong")
	s.waitOpen()
	if again := ns.Set("new"); again.UID != set.UID {
		t.Errorf("the set has UID %s, and had %s", again.UID, set.UID)
	}
	s.noPodGoes(pods)
	exit(ns, "--all", 0)
	ns.AwaitExits(time.Minute)
	ns.WaitForPhase("new", grovev1alpha1.PodCliqueSetSucceeded, time.Minute)
	if old := ns.WaitForPhase("old", grovev1alpha1.PodCliqueSetSucceeded, time.Minute); old.Status.RestartCount != 1 {
		t.Errorf("restartCount is %d", old.Status.RestartCount)
	}
}

// The record of another installation, under a running server.
func TestAWrongRecordShutsTheServer(t *testing.T) {
	ns := cluster.Namespace(t, framework.Unrecorded("the API is not there all the time"))
	s := newStorage(t, ns)
	ns.Apply(training("job", 2, "1h"))
	pods := ns.WaitForPods(2, time.Minute, framework.IsReady)
	var id string
	s.edit(func(c *corev1.ConfigMap) { id, c.Data["id"] = c.Data["id"], "of-another" })
	s.waitShut("StorageIsAnother")
	s.noPodGoes(pods)
	s.edit(func(c *corev1.ConfigMap) { c.Data["id"] = id })
	s.waitOpen()
	exit(ns, "--all", 0)
	ns.AwaitExits(time.Minute)
	ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetSucceeded, time.Minute)
}

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: foreigners.grove.io}
spec:
  group: grove.io
  names: {kind: Foreigner, plural: foreigners, singular: foreigner, listKind: ForeignerList}
  scope: Namespaced
  versions:
    - name: v1alpha1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object}}
`

func TestDefinitionsOfOurGroupsKeepTheServerShut(t *testing.T) {
	ns := cluster.Namespace(t, framework.Unrecorded("the API is not there all the time"))
	s := newStorage(t, ns)
	cluster.Stop(t, "copse-apiserver")
	ns.Anywhere().Apply(definition)
	cluster.Begin(t, "copse-apiserver")
	s.waitShut("CustomResourceDefinitionsExist")
	ns.Anywhere().Kubectl("delete", "crd", "foreigners.grove.io")
	s.waitOpen()
}

// The way out that loses what etcd does not know. It shows as well that the other tests
// watch for long enough: here the garbage collector does its work.
func TestAnEmptyEtcdThatIsAccepted(t *testing.T) {
	ns := cluster.Namespace(t, framework.Unrecorded("the etcd is replaced"))
	s := newStorage(t, ns)
	ns.Apply(training("job", 4, "1h"))
	pods := ns.WaitForPods(4, time.Minute, framework.IsReady)
	s.swap("", t.TempDir()+"/lost")
	s.waitShut("StorageHasNoIdentity")

	text := s.readiness()
	_, command, found := strings.Cut(text, "kubectl ")
	if command, _, _ = strings.Cut(command, " ("); !found {
		t.Fatalf("no command is told in: %s", text)
	}
	// As a person would type it.
	ns.Anywhere().Kubectl(strings.Fields(command)...)
	s.waitOpen()
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		left, err := ns.Pods(ctx)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%d of %d pods are still there", len(left), len(pods))
		}
		return err
	})
	// Whoever knows revisions of the lost etcd starts over.
	ns.Apply(training("job", 2, "1s"))
	ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetSucceeded, time.Minute)
}
