package framework

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/test/history"
)

// quietTime is how long nothing is written once a test is over and its workload has settled.
const quietTime = 3 * time.Second

// Namespace is a namespace of one test. Everything in it goes with the test.
type Namespace struct {
	Name string
	// History is what happens in the namespace, nil when it is not recorded.
	History *history.History
	cluster *Cluster
	t       *testing.T
	// quiet is how long nothing is written in the end.
	quiet time.Duration
}

// NamespaceOption is something that is different about a namespace.
type NamespaceOption func(*namespaceOptions)

type namespaceOptions struct {
	unrecorded bool
	quiet      time.Duration
}

// Unrecorded does without the history, and says why.
func Unrecorded(_ string) NamespaceOption {
	return func(o *namespaceOptions) { o.unrecorded = true }
}

// Quiet says how long nothing is written once the test is over and all has settled, in
// place of the few seconds that a test in a hurry has for it.
func Quiet(d time.Duration) NamespaceOption {
	return func(o *namespaceOptions) { o.quiet = d }
}

// Namespace makes a namespace for a test. Its history is recorded, and checked when the
// test is over; when the test fails, what is in the namespace is logged.
func (c *Cluster) Namespace(t *testing.T, options ...NamespaceOption) *Namespace {
	t.Helper()
	c.skipWithoutRealNode(t)
	chosen := namespaceOptions{quiet: quietTime}
	for _, option := range options {
		option(&chosen)
	}
	created, err := c.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := &Namespace{Name: created.Name, cluster: c, t: t, quiet: chosen.quiet}
	if c.Unrecorded == "" && !chosen.unrecorded {
		n.History = history.Record(t, c.Config, n.Name)
	}
	t.Cleanup(n.finish)
	return n
}

// finish checks the history, and takes the namespace down.
func (n *Namespace) finish() {
	if !n.t.Failed() {
		n.History.Quiet(n.t, n.quiet)
	}
	n.History.Check(n.t)
	if n.t.Failed() {
		n.explain()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	// Sets go first: their pods then go in parallel, and not one by one.
	_ = n.cluster.Copse.GroveV1alpha1().PodCliqueSets(n.Name).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	if !n.t.Failed() {
		n.History.CheckEmpty(n.t)
	}
	_ = n.cluster.Kube.CoreV1().Namespaces().Delete(ctx, n.Name, metav1.DeleteOptions{})
}

// Anywhere is the same test with manifests that name their namespaces.
func (n *Namespace) Anywhere() *Namespace {
	return &Namespace{cluster: n.cluster, t: n.t}
}

// Named is the same test in a namespace that the test made itself.
func (n *Namespace) Named(name string) *Namespace {
	return &Namespace{Name: name, cluster: n.cluster, t: n.t}
}

// explain logs what a person would look at.
func (n *Namespace) explain() {
	for _, args := range [][]string{
		{"get", "pcs,pcsg,pclq,pg,pods,svc", "-o", "wide"},
		{"get", "podgroups.scheduling.k8s.io", "-o", "yaml"},
		{"describe", "pcs"},
		{"get", "events", "--field-selector", "type=Warning", "--sort-by=.lastTimestamp"},
	} {
		out, stderr, _ := n.kubectl("", args...)
		n.t.Logf("kubectl %s:\n%s%s", strings.Join(args, " "), shorten(out), stderr)
	}
}

func shorten(text string) string {
	const most = 8000
	if len(text) <= most {
		return text
	}
	return text[:most] + "\n…"
}

// Eventually waits until a condition holds: until check returns nil. It looks often and
// fails with the last error.
func (n *Namespace) Eventually(timeout time.Duration, check func(ctx context.Context) error) {
	n.t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(context.Background(), 50*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		n.t.Fatalf("not within %s: %v", timeout, last)
	}
}

// Never watches for as long as a duration that a condition never holds: that check
// returns nil all the time.
func (n *Namespace) Never(during time.Duration, check func(ctx context.Context) error) {
	n.t.Helper()
	var failed error
	_ = wait.PollUntilContextTimeout(context.Background(), 50*time.Millisecond, during, true, func(context.Context) (bool, error) {
		// A look that the end of the watch cuts short would be no finding.
		failed = check(n.t.Context())
		return failed != nil, nil
	})
	if failed != nil {
		n.t.Fatal(failed)
	}
}

// Set reads a set.
func (n *Namespace) Set(name string) *grovev1alpha1.PodCliqueSet {
	n.t.Helper()
	pcs, err := n.cluster.Copse.GroveV1alpha1().PodCliqueSets(n.Name).Get(n.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	return pcs
}

// PodClique reads a clique.
func (n *Namespace) PodClique(name string) *grovev1alpha1.PodClique {
	n.t.Helper()
	clique, err := n.cluster.Copse.GroveV1alpha1().PodCliques(n.Name).Get(n.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	return clique
}

// PodGang reads a PodGang.
func (n *Namespace) PodGang(ctx context.Context, name string) (*schedulerv1alpha1.PodGang, error) {
	return n.cluster.Copse.SchedulerV1alpha1().PodGangs(n.Name).Get(ctx, name, metav1.GetOptions{})
}

// Evict asks for the eviction of a pod, as a drain of its node does.
func (n *Namespace) Evict(pod string) {
	n.t.Helper()
	n.History.UserDeletes(pod)
	err := n.cluster.Kube.PolicyV1().Evictions(n.Name).Evict(n.t.Context(), &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: n.Name},
	})
	if err != nil {
		n.t.Fatal(err)
	}
}

// WaitForPhase waits until a set is in a phase, and returns it.
func (n *Namespace) WaitForPhase(name string, phase grovev1alpha1.PodCliqueSetPhase, timeout time.Duration) *grovev1alpha1.PodCliqueSet {
	n.t.Helper()
	var pcs *grovev1alpha1.PodCliqueSet
	n.Eventually(timeout, func(ctx context.Context) error {
		var err error
		if pcs, err = n.cluster.Copse.GroveV1alpha1().PodCliqueSets(n.Name).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		if pcs.Status.Phase != phase {
			return fmt.Errorf("phase is %q, want %q", pcs.Status.Phase, phase)
		}
		return nil
	})
	return pcs
}

// Pods lists the pods of the namespace.
func (n *Namespace) Pods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := n.cluster.Kube.CoreV1().Pods(n.Name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// WaitForPods waits until the namespace has as many pods that match, and returns them all.
func (n *Namespace) WaitForPods(count int, timeout time.Duration, matches func(*corev1.Pod) bool) []corev1.Pod {
	n.t.Helper()
	var pods []corev1.Pod
	n.Eventually(timeout, func(ctx context.Context) error {
		var err error
		if pods, err = n.Pods(ctx); err != nil {
			return err
		}
		have := 0
		for i := range pods {
			if matches(&pods[i]) {
				have++
			}
		}
		if have != count {
			return fmt.Errorf("%d of %d pods match, want %d", have, len(pods), count)
		}
		return nil
	})
	return pods
}

// IsReady says that a pod is Ready and not on its way out.
func IsReady(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil {
		return false
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
