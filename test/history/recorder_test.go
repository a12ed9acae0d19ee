package history

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// fakePods is a server of pods whose watches the test ends as it likes.
type fakePods struct {
	mu      sync.Mutex
	rv      int
	items   []corev1.Pod
	watches []*watch.FakeWatcher
	// from are the resourceVersions that watches began with.
	from []string
}

func (f *fakePods) source() source {
	return source{
		kind: Pod,
		list: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(f.rv)}, Items: f.items}, nil
		},
		watch: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			w := watch.NewFakeWithChanSize(10, false)
			f.watches = append(f.watches, w)
			f.from = append(f.from, options.ResourceVersion)
			return w, nil
		},
	}
}

// watch waits for the watch with a number, and returns it and where it began.
func (f *fakePods) watch(t *testing.T, n int) (*watch.FakeWatcher, string) {
	t.Helper()
	eventually(t, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.watches) > n
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.watches[n], f.from[n]
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		t.Fatal("it does not happen")
	}
}

func podAt(name string, rv int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: strconv.Itoa(rv), ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}}}
}

func startFake(t *testing.T, sources ...source) *Recorder {
	t.Helper()
	r, err := startRecorder(sources)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.stop)
	return r
}

// A watch that ends goes on where it was, bookmarks included, and loses nothing.
func TestAWatchIsResumed(t *testing.T) {
	t.Parallel()
	server := &fakePods{rv: 5}
	r := startFake(t, server.source())
	w, from := server.watch(t, 0)
	if from != "5" {
		t.Errorf("the first watch begins at %s", from)
	}
	w.Add(podAt("a", 6))
	w.Action(watch.Bookmark, podAt("", 9))
	w.Stop()
	w, from = server.watch(t, 1)
	if from != "9" {
		t.Errorf("the second watch begins at %s", from)
	}
	w.Delete(podAt("a", 10))
	eventually(t, func() bool { return r.length() == 2 })
	log := r.snapshot()
	if len(log.Gaps) != 0 || !log.Revisions[1].Deleted || log.Revisions[1].RV != 10 || log.Revisions[0].Object.GetManagedFields() != nil {
		t.Errorf("the log is %+v %+v", *log.Revisions[0], *log.Revisions[1])
	}
}

// When the server has forgotten, a list shows what there is now, and the log says that
// something is missing.
func TestAForgottenWatchLeavesAGap(t *testing.T) {
	t.Parallel()
	server := &fakePods{rv: 5}
	r := startFake(t, server.source())
	w, _ := server.watch(t, 0)
	w.Add(podAt("stays", 6))
	w.Add(podAt("changes", 7))
	w.Add(podAt("goes", 8))
	eventually(t, func() bool { return r.length() == 3 })
	server.mu.Lock()
	server.rv = 20
	server.items = []corev1.Pod{*podAt("stays", 6), *podAt("changes", 15), *podAt("comes", 16)}
	server.mu.Unlock()
	w.Error(&metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: http.StatusGone})

	if _, from := server.watch(t, 1); from != "20" {
		t.Errorf("the second watch begins at %s", from)
	}
	var found []string
	log := r.snapshot()
	for _, rev := range log.Revisions[3:] {
		if !rev.Listed {
			t.Errorf("%s is not marked", rev.Object.GetName())
		}
		found = append(found, rev.Object.GetName()+strconv.FormatBool(rev.Deleted))
	}
	if got := strings.Join(found, " "); got != "changesfalse comesfalse goestrue" {
		t.Errorf("the list found %s", got)
	}
	if len(log.Gaps) != 1 || log.Gaps[0] != (Gap{Kind: Pod, After: 8, To: 20}) {
		t.Errorf("gaps are %v", log.Gaps)
	}
}

// A fence follows whatever comes from the other server, and is no older than that.
func TestAFenceFollowsTheOtherServer(t *testing.T) {
	t.Parallel()
	pods := &fakePods{rv: 5}
	sets := watch.NewFakeWithChanSize(1, false)
	r := startFake(t, pods.source(), source{
		kind: Set,
		list: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &grovev1alpha1.PodCliqueSetList{ListMeta: metav1.ListMeta{ResourceVersion: "100"}}, nil
		},
		watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return sets, nil },
	})
	pods.mu.Lock()
	pods.rv = 42
	pods.mu.Unlock()
	sets.Add(&grovev1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Name: "set", UID: "set", ResourceVersion: "101"}})
	eventually(t, func() bool { return len(r.snapshot().Fences) == 1 })
	if got := r.snapshot().Fences[0]; got != (Fence{Server: Cluster, Seq: 1, RV: 42}) {
		t.Errorf("the fence is %+v", got)
	}
}
