package podclique

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/internal/index"
	"github.com/copse-dev/copse/pkg/controllers/internal/pace"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/metrics"
	"github.com/copse-dev/copse/pkg/podspec"
	"github.com/copse-dev/copse/pkg/scheduling"
	"github.com/copse-dev/copse/pkg/scheduling/native"
)

func expect(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

var now = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// cluster is what a reconciler sees: a cache, and the servers behind it, which may know
// more. Both are the same unless a test says otherwise.
type cluster struct {
	t       *testing.T
	objects []client.Object
	// live are the objects of the servers; nil for those of the cache.
	live []client.Object
	// refuse answers a write with an error; nil lets it through.
	refuse func(verb string, obj client.Object) error

	// meanwhile happens at the server while a deletion is on its way; nil for nothing.
	meanwhile func(server client.Client, obj client.Object)
	// refuseRead answers a live read with an error; nil lets it through.
	refuseRead func(obj runtime.Object) error
	// lists are the kinds of the live lists.
	lists []string

	mu sync.Mutex
	// writes are "verb kind name", in their order.
	writes   []string
	client   client.Client
	recorder *events.FakeRecorder
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, autoscalingv2.AddToScheme, grovev1alpha1.AddToScheme, schedulerv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

func (c *cluster) build(objects []client.Object) client.WithWatch {
	builder := fake.NewClientBuilder().WithScheme(newScheme(c.t)).WithStatusSubresource(&grovev1alpha1.PodClique{})
	if err := index.Register(c.t.Context(), fieldIndexer{builder}, false); err != nil {
		c.t.Fatal(err)
	}
	for _, obj := range objects {
		builder.WithObjects(obj.DeepCopyObject().(client.Object))
	}
	return builder.Build()
}

// fieldIndexer adds the controllers' own indexes to a fake client.
type fieldIndexer struct{ builder *fake.ClientBuilder }

func (f fieldIndexer) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	f.builder.WithIndex(obj, field, extract)
	return nil
}

func (c *cluster) write(verb string, obj client.Object) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	kind := strings.TrimPrefix(fmt.Sprintf("%T", obj), "*v1alpha1.")
	c.writes = append(c.writes, fmt.Sprintf("%s %s %s", verb, strings.TrimPrefix(kind, "*v1."), obj.GetName()))
	if c.refuse != nil {
		return c.refuse(verb, obj)
	}
	return nil
}

// reconciler returns one whose writes are recorded.
func (c *cluster) reconciler() *Reconciler {
	cache := c.build(c.objects)
	c.client = interceptor.NewClient(cache, interceptor.Funcs{
		Create: func(ctx context.Context, w client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if err := c.write("create", obj); err != nil {
				return err
			}
			return w.Create(ctx, obj, opts...)
		},
		Delete: func(ctx context.Context, w client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			options := (&client.DeleteOptions{}).ApplyOptions(opts)
			if options.Preconditions == nil || options.Preconditions.UID == nil {
				c.t.Errorf("%s is deleted whatever its UID", obj.GetName())
			}
			verb := "delete"
			if options.GracePeriodSeconds != nil && *options.GracePeriodSeconds == 0 {
				verb = "force"
			}
			if err := c.write(verb, obj); err != nil {
				return err
			}
			if c.meanwhile != nil {
				c.meanwhile(w, obj)
			}
			return w.Delete(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, w client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := c.write("patch", obj); err != nil {
				return err
			}
			return w.Patch(ctx, obj, patch, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, w client.Client, subresource string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			if err := c.write(subresource, obj); err != nil {
				return err
			}
			return w.SubResource(subresource).Update(ctx, obj, opts...)
		},
	})
	server := cache
	if c.live != nil {
		server = c.build(c.live)
	}
	live := interceptor.NewClient(server, interceptor.Funcs{
		Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if c.refuseRead != nil {
				if err := c.refuseRead(obj); err != nil {
					return err
				}
			}
			return w.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, w client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			c.lists = append(c.lists, strings.TrimPrefix(strings.TrimPrefix(fmt.Sprintf("%T", list), "*v1."), "*v1alpha1."))
			if c.refuseRead != nil {
				if err := c.refuseRead(list); err != nil {
					return err
				}
			}
			return w.List(ctx, list, opts...)
		},
	})
	c.recorder = events.NewFakeRecorder(100)
	counters, err := metrics.New(prometheus.NewRegistry())
	if err != nil {
		c.t.Fatal(err)
	}
	return &Reconciler{
		Client: c.client, Cache: cache, Live: live, Recorder: c.recorder, Clock: clocktesting.NewFakeClock(now), Pace: pace.New(),
		Backends: &scheduling.Backends{Others: native.New(c.client, false)}, ClusterDomain: "cluster.local", Metrics: counters,
	}
}

// podWrites are those of the writes that are about pods, in any order.
func (c *cluster) podWrites() []string {
	var out []string
	for _, w := range c.writes {
		if strings.Contains(w, " Pod ") {
			out = append(out, w)
		}
	}
	slices.Sort(out)
	return out
}

func (c *cluster) clique() *grovev1alpha1.PodClique {
	c.t.Helper()
	clique := &grovev1alpha1.PodClique{}
	if err := c.client.Get(c.t.Context(), client.ObjectKey{Namespace: "ns", Name: "llm-0-worker"}, clique); err != nil {
		c.t.Fatal(err)
	}
	return clique
}

var request = reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "llm-0-worker"}}

func newSet(change func(*grovev1alpha1.PodCliqueSet)) *grovev1alpha1.PodCliqueSet {
	pcs := &grovev1alpha1.PodCliqueSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "llm", UID: "set"},
		Spec: grovev1alpha1.PodCliqueSetSpec{Replicas: 1, Template: grovev1alpha1.PodCliqueSetTemplateSpec{
			Cliques: []grovev1alpha1.PodCliqueTemplateSpec{{Name: "worker"}},
		}},
		Status: grovev1alpha1.PodCliqueSetStatus{CliqueHashes: []grovev1alpha1.CliqueHash{{Name: "worker", Hash: "hash"}}},
	}
	if change != nil {
		change(pcs)
	}
	return pcs
}

func failing(pcs *grovev1alpha1.PodCliqueSet) {
	pcs.Status.Conditions = []metav1.Condition{{Type: grovev1alpha1.ConditionTypeFailureTarget, Status: metav1.ConditionTrue}}
}

func deletedSet(pcs *grovev1alpha1.PodCliqueSet) {
	pcs.DeletionTimestamp, pcs.Finalizers = ptr.To(metav1.NewTime(now)), []string{labels.PodCliqueSetFinalizer}
}

// newClique is a training clique of 3 pods, 2 of them in its gang.
func newClique(change func(*grovev1alpha1.PodClique)) *grovev1alpha1.PodClique {
	clique := &grovev1alpha1.PodClique{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "llm-0-worker", UID: "clique", Finalizers: []string{labels.PodCliqueFinalizer},
			Labels: map[string]string{
				labels.PartOf: "llm", labels.ManagedBy: labels.ManagedByValue, labels.ReplicaIndex: "0", labels.PodGang: "llm-0", labels.PodTemplateHash: "hash",
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "grove.io/v1alpha1", Kind: "PodCliqueSet", Name: "llm", UID: "set", Controller: ptr.To(true)}},
		},
		Spec: grovev1alpha1.PodCliqueSpec{Replicas: 3, MinAvailable: ptr.To[int32](2), WorkloadType: grovev1alpha1.WorkloadTypeTraining},
	}
	if change != nil {
		change(clique)
	}
	return clique
}

func allMade(c *grovev1alpha1.PodClique) {
	c.Status.CreatedAttempt, c.Status.CreatedReplicas = ptr.To[int32](0), 3
}

// ofTwo is a clique in Inference that had 3 pods.
func ofTwo(c *grovev1alpha1.PodClique) {
	allMade(c)
	c.Spec.WorkloadType, c.Spec.Replicas, c.Status.CreatedReplicas = grovev1alpha1.WorkloadTypeInference, 2, 2
}

// leaving is a clique that is deleted.
func leaving(c *grovev1alpha1.PodClique) {
	allMade(c)
	c.DeletionTimestamp = ptr.To(metav1.NewTime(now))
}

// newGang is the clique's gang, which names its members.
func newGang(change func(*schedulerv1alpha1.PodGang)) *schedulerv1alpha1.PodGang {
	podGang := &schedulerv1alpha1.PodGang{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "llm-0", UID: "gang", Labels: map[string]string{labels.RestartAttempt: "0"}},
		Spec: schedulerv1alpha1.PodGangSpec{PodGroups: []schedulerv1alpha1.PodGangPodGroup{{
			Name: "llm-0-worker", MinReplicas: 2,
			PodReferences: []schedulerv1alpha1.NamespacedName{{Name: podName(0)}, {Name: podName(1)}},
		}}},
	}
	if change != nil {
		change(podGang)
	}
	return podGang
}

func gangScheduled(g *schedulerv1alpha1.PodGang) {
	meta.SetStatusCondition(&g.Status.Conditions, metav1.Condition{Type: schedulerv1alpha1.PodGangConditionScheduled, Status: metav1.ConditionTrue, Reason: "R"})
}

func podName(index int32) string {
	return podspec.Render(newClique(nil), index, podspec.Context{}).Name
}

// newPod is a pod of the clique.
func newPod(index int32, change func(*corev1.Pod)) *corev1.Pod {
	pod := podspec.Render(newClique(nil), index, podspec.Context{Set: "llm"})
	pod.UID = types.UID(fmt.Sprintf("uid-%d", index))
	pod.Status.Phase = corev1.PodRunning
	if change != nil {
		change(pod)
	}
	return pod
}

func podFailed(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }
