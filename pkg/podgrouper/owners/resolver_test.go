package owners

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// cluster is what a search runs against. Object names are kind/name; the UID of an object
// is its name with "-uid".
type cluster struct {
	objects   []client.Object
	forbidden []string
	fails     []string
	reads     []string
	// whileRead is what happens while an object is read.
	whileRead func()
}

func kinds() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{
		{Version: "v1"}, {Group: "apps", Version: "v1"}, {Group: "batch", Version: "v1"}, {Group: "argoproj.io", Version: "v1alpha1"}, {Group: "example.com", Version: "v1"},
	})
	for _, kind := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "Pod"},
		{Group: "apps", Version: "v1", Kind: "ReplicaSet"},
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "batch", Version: "v1", Kind: "Job"},
		{Group: "argoproj.io", Version: "v1alpha1", Kind: "Workflow"},
	} {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Node"}, meta.RESTScopeRoot)
	mapper.Add(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Fleet"}, meta.RESTScopeRoot)
	return mapper
}

func (c *cluster) resolver(options Options) *Resolver {
	reader := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithRESTMapper(kinds()).WithObjects(c.objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, reader client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			c.reads = append(c.reads, key.Name)
			if c.whileRead != nil {
				c.whileRead()
			}
			for _, name := range c.forbidden {
				if name == key.Name {
					return apierrors.NewForbidden(schema.GroupResource{}, name, errors.New("no"))
				}
			}
			for _, name := range c.fails {
				if name == key.Name {
					return errors.New("connection refused")
				}
			}
			return reader.Get(ctx, key, obj, opts...)
		},
	}).Build()
	return New(reader, kinds(), options)
}

func ref(apiVersion, kind, name string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(name + "-uid")}
}

func controller(ref metav1.OwnerReference) metav1.OwnerReference {
	ref.Controller = ptr.To(true)
	return ref
}

func object(apiVersion, kind, name string, refs ...metav1.OwnerReference) client.Object {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	obj.SetNamespace("ns")
	obj.SetName(name)
	obj.SetUID(types.UID(name + "-uid"))
	obj.SetLabels(map[string]string{"of": name})
	obj.SetOwnerReferences(refs)
	return obj
}

func pod(refs ...metav1.OwnerReference) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "pod-uid", OwnerReferences: refs}}
}

func terminating(pod *corev1.Pod) *corev1.Pod {
	pod.DeletionTimestamp = ptr.To(metav1.Unix(1, 0))
	return pod
}

func names(chain Chain) string {
	var out []string
	for _, owner := range chain.Owners {
		out = append(out, owner.Kind+"/"+owner.Name)
	}
	return strings.Join(out, " ")
}

func reasons(chain Chain) string {
	var out []string
	for _, note := range chain.Notes {
		out = append(out, string(note.Reason)+":"+note.Ref.Name)
	}
	return strings.Join(out, " ")
}

// ladder is more Jobs than a search climbs, each owned by the next.
func ladder() []client.Object {
	var out []client.Object
	for i := range MaxDepth + 4 {
		out = append(out, object("batch/v1", "Job", fmt.Sprintf("job-%d", i), controller(ref("batch/v1", "Job", fmt.Sprintf("job-%d", i+1)))))
	}
	return out
}

func TestFind(t *testing.T) {
	web := []client.Object{
		object("apps/v1", "ReplicaSet", "web-1", controller(ref("apps/v1", "Deployment", "web"))),
		object("apps/v1", "Deployment", "web"),
	}
	tests := map[string]struct {
		cluster cluster
		pod     *corev1.Pod
		want    string
		notes   string
		mirror  bool
		err     string
		missing bool
	}{
		"no owner":         {pod: pod()},
		"up to the top":    {cluster: cluster{objects: web}, pod: pod(controller(ref("apps/v1", "ReplicaSet", "web-1"))), want: "ReplicaSet/web-1 Deployment/web"},
		"the only owner":   {cluster: cluster{objects: web}, pod: pod(ref("apps/v1", "ReplicaSet", "web-1")), want: "ReplicaSet/web-1 Deployment/web"},
		"another version":  {cluster: cluster{objects: web}, pod: pod(controller(ref("apps/v1beta2", "ReplicaSet", "web-1"))), want: "ReplicaSet/web-1 Deployment/web"},
		"a pod as owner":   {cluster: cluster{objects: []client.Object{object("v1", "Pod", "driver")}}, pod: pod(controller(ref("v1", "Pod", "driver"))), want: "Pod/driver"},
		"controller last":  {cluster: cluster{objects: web}, pod: pod(ref("batch/v1", "Job", "other"), controller(ref("apps/v1", "Deployment", "web"))), want: "Deployment/web"},
		"two owners":       {cluster: cluster{objects: web}, pod: pod(ref("apps/v1", "Deployment", "web"), ref("batch/v1", "Job", "other")), want: "Deployment/web", notes: "SeveralOwners:web"},
		"two owners above": {cluster: cluster{objects: append([]client.Object{object("batch/v1", "Job", "job", ref("apps/v1", "Deployment", "web"), ref("batch/v1", "Job", "b"))}, web...)}, pod: pod(controller(ref("batch/v1", "Job", "job"))), want: "Job/job Deployment/web", notes: "SeveralOwners:web"},

		"groups are no owners": {
			cluster: cluster{objects: web},
			pod: pod(ref("scheduling.k8s.io/v1beta1", "PodGroup", "a"), ref("scheduling.run.ai/v2alpha2", "PodGroup", "b"), ref("kueue.x-k8s.io/v1beta1", "Workload", "c"),
				ref("scheduler.grove.io/v1alpha1", "PodGroup", "d"), ref("scheduling.volcano.sh/v1beta1", "PodGroup", "e"), ref("scheduling.k8s.io/v1alpha3", "CompositePodGroup", "f"), ref("apps/v1", "Deployment", "web")),
			want: "Deployment/web",
		},
		"not even as controller":      {pod: pod(controller(ref("scheduling.k8s.io/v1beta1", "Workload", "a")))},
		"a workload of someone else":  {pod: pod(ref("example.com/v1", "Workload", "a")), notes: "OwnerKindUnknown:a"},
		"a cluster-scoped owner":      {cluster: cluster{objects: []client.Object{object("batch/v1", "Job", "job", controller(ref("example.com/v1", "Fleet", "all")))}}, pod: pod(controller(ref("batch/v1", "Job", "job"))), want: "Job/job", notes: "OwnerClusterScoped:all"},
		"a mirror pod":                {pod: pod(controller(ref("v1", "Node", "node-1"))), mirror: true},
		"a node above a workload":     {cluster: cluster{objects: []client.Object{object("batch/v1", "Job", "job", ref("v1", "Node", "node-1"))}}, pod: pod(ref("batch/v1", "Job", "job")), want: "Job/job", notes: "OwnerClusterScoped:node-1"},
		"an unreadable owner":         {cluster: cluster{objects: web, forbidden: []string{"web"}}, pod: pod(controller(ref("apps/v1", "ReplicaSet", "web-1"))), want: "ReplicaSet/web-1", notes: "OwnerForbidden:web"},
		"nothing readable":            {cluster: cluster{objects: web, forbidden: []string{"web-1"}}, pod: pod(controller(ref("apps/v1", "ReplicaSet", "web-1"))), notes: "OwnerForbidden:web-1"},
		"an unknown kind":             {cluster: cluster{objects: []client.Object{object("batch/v1", "Job", "job", controller(ref("example.com/v1", "Sweep", "s")))}}, pod: pod(controller(ref("batch/v1", "Job", "job"))), want: "Job/job", notes: "OwnerKindUnknown:s"},
		"no API version":              {pod: pod(controller(ref("a/b/c", "Job", "job"))), notes: "OwnerKindUnknown:job"},
		"a missing owner":             {pod: pod(controller(ref("batch/v1", "Job", "job"))), err: "owner Job ns/job with UID job-uid does not exist", missing: true},
		"a missing owner above":       {cluster: cluster{objects: web[:1]}, pod: pod(controller(ref("apps/v1", "ReplicaSet", "web-1"))), want: "ReplicaSet/web-1", err: "owner Deployment ns/web", missing: true},
		"a missing owner, at the end": {pod: terminating(pod(controller(ref("batch/v1", "Job", "job")))), notes: "OwnerGone:job"},
		"another one by that name": {
			cluster: cluster{objects: web}, pod: pod(metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "old", Controller: ptr.To(true)}),
			err: "owner Deployment ns/web with UID old does not exist: the object by that name has UID web-uid", missing: true,
		},
		"another one, at the end": {cluster: cluster{objects: web}, pod: terminating(pod(metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "old"})), notes: "OwnerGone:web"},
		"a server that is down":   {cluster: cluster{objects: web, fails: []string{"web"}}, pod: pod(controller(ref("apps/v1", "ReplicaSet", "web-1"))), want: "ReplicaSet/web-1", err: "read owner Deployment ns/web: connection refused"},
		"down, at the end":        {cluster: cluster{objects: web, fails: []string{"web"}}, pod: terminating(pod(controller(ref("apps/v1", "Deployment", "web")))), err: "connection refused"},
		"a cycle": {
			cluster: cluster{objects: []client.Object{object("batch/v1", "Job", "a", ref("batch/v1", "Job", "b")), object("batch/v1", "Job", "b", ref("batch/v1", "Job", "a"))}},
			pod:     pod(ref("batch/v1", "Job", "a")), want: "Job/a Job/b", notes: "OwnerCycle:a",
		},
		"a cycle through the pod": {cluster: cluster{objects: []client.Object{object("batch/v1", "Job", "a", ref("v1", "Pod", "pod"))}}, pod: pod(ref("batch/v1", "Job", "a")), want: "Job/a", notes: "OwnerCycle:pod"},
		"too deep": {
			cluster: cluster{objects: ladder()}, pod: pod(ref("batch/v1", "Job", "job-0")), notes: "OwnersTooDeep:job-16",
			want: "Job/job-0 Job/job-1 Job/job-2 Job/job-3 Job/job-4 Job/job-5 Job/job-6 Job/job-7 Job/job-8 Job/job-9 Job/job-10 Job/job-11 Job/job-12 Job/job-13 Job/job-14 Job/job-15",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			chain, err := tc.cluster.resolver(Options{}).Find(t.Context(), tc.pod)
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
			if got := IsMissing(err); got != tc.missing {
				t.Errorf("missing is %v", got)
			}
			if got := names(chain); got != tc.want {
				t.Errorf("owners %q, want %q", got, tc.want)
			}
			if got := reasons(chain); got != tc.notes {
				t.Errorf("notes %q, want %q", got, tc.notes)
			}
			if chain.MirrorPod != tc.mirror {
				t.Errorf("mirror pod is %v", chain.MirrorPod)
			}
			for _, owner := range chain.Owners {
				if owner.Labels["of"] != owner.Name {
					t.Errorf("%s has labels %v", owner.Name, owner.Labels)
				}
			}
		})
	}
}

// mapper is a discovery that fails, or that is counted.
type mapper struct {
	meta.RESTMapper
	err   error
	calls int
}

func (m *mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	m.calls++
	if m.err != nil {
		return nil, m.err
	}
	return m.RESTMapper.RESTMapping(kind, versions...)
}

// A kind that is not known for the moment is not unknown: the pods of a PodCliqueSet are not
// grouped one by one while our own API server is down.
func TestDiscoveryThatFailsIsRetried(t *testing.T) {
	group := schema.GroupVersion{Group: "grove.io", Version: "v1alpha1"}
	incomplete := apiutil.ErrResourceDiscoveryFailed{group: &meta.NoResourceMatchError{PartialResource: group.WithResource("")}}
	for name, err := range map[string]error{"down": errors.New("discovery is down"), "in part": &incomplete} {
		resolver := New(fake.NewClientBuilder().Build(), &mapper{RESTMapper: kinds(), err: err}, Options{})
		for range 2 {
			if chain, got := resolver.Find(t.Context(), pod(ref("batch/v1", "Job", "job"))); !errors.Is(got, err) || IsMissing(got) || len(chain.Notes) > 0 {
				t.Errorf("%s: got %v with %v", name, got, chain.Notes)
			}
		}
	}
}

func TestUnknownKindsAreKept(t *testing.T) {
	discovery := &mapper{RESTMapper: kinds()}
	resolver := New(fake.NewClientBuilder().Build(), discovery, Options{})
	for range 3 {
		if chain, err := resolver.Find(t.Context(), pod(ref("example.com/v1", "Sweep", "s"))); err != nil || reasons(chain) != "OwnerKindUnknown:s" {
			t.Errorf("got %q with %v", reasons(chain), err)
		}
	}
	if discovery.calls != 1 {
		t.Errorf("%d discoveries", discovery.calls)
	}
}

// The pods of one owner come all at once: it is read once for all of them, and again when
// what was read is old.
func TestLookupsAreKeptForAWhile(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	c := &cluster{objects: []client.Object{object("batch/v1", "Job", "job", controller(ref("argoproj.io/v1alpha1", "Workflow", "flow")))}, forbidden: []string{"flow"}}
	resolver := c.resolver(Options{Clock: clock, CacheTTL: time.Second})
	find := func(want ...string) {
		t.Helper()
		c.reads = nil
		chain, err := resolver.Find(t.Context(), pod(ref("batch/v1", "Job", "job")))
		if err != nil || names(chain) != "Job/job" || reasons(chain) != "OwnerForbidden:flow" {
			t.Errorf("found %q with %q and %v", names(chain), reasons(chain), err)
		}
		if diff := cmp.Diff(want, c.reads); diff != "" {
			t.Errorf("reads (-want +got):\n%s", diff)
		}
	}
	find("job", "flow")
	find()
	resolver.Forget(schema.GroupKind{Group: "batch", Kind: "Job"}, "ns", "job", "job-uid")
	find("job")
	clock.SetTime(time.Unix(2, 0))
	find("job", "flow")
}

// What is read of an owner while it changes is not what it is: to keep that would be to
// overlook the change, of which nobody tells again.
func TestAnOwnerThatChangesWhileItIsReadIsReadAgain(t *testing.T) {
	c := &cluster{objects: []client.Object{object("batch/v1", "Job", "job")}}
	resolver := c.resolver(Options{})
	c.whileRead = func() { resolver.Forget(schema.GroupKind{Group: "batch", Kind: "Job"}, "ns", "job", "job-uid") }
	for range 2 {
		if _, err := resolver.Find(t.Context(), pod(ref("batch/v1", "Job", "job"))); err != nil {
			t.Fatal(err)
		}
		c.whileRead = nil
	}
	if len(c.reads) != 2 {
		t.Errorf("reads %v", c.reads)
	}
}

func TestMissingOwnersAreNotKept(t *testing.T) {
	c := &cluster{}
	resolver := c.resolver(Options{})
	for range 2 {
		if _, err := resolver.Find(t.Context(), pod(ref("batch/v1", "Job", "job"))); !IsMissing(err) {
			t.Error(err)
		}
	}
	if len(c.reads) != 2 {
		t.Errorf("reads %v", c.reads)
	}
}

func TestLookupsAreBounded(t *testing.T) {
	c := &cluster{objects: ladder()}
	resolver := c.resolver(Options{CacheSize: 3})
	if _, err := resolver.Find(t.Context(), pod(ref("batch/v1", "Job", "job-0"))); err != nil {
		t.Fatal(err)
	}
	if got := len(resolver.cache.entries.Keys()); got != 3 {
		t.Errorf("%d look-ups are kept, want 3", got)
	}
}

// A reference that borrows the UID of an object in another namespace, or of another name,
// learns nothing about it, though the object has been looked up before.
func TestLookupsAreNotLent(t *testing.T) {
	c := &cluster{objects: []client.Object{object("batch/v1", "Job", "secret")}}
	resolver := c.resolver(Options{})
	if _, err := resolver.Find(t.Context(), pod(ref("batch/v1", "Job", "secret"))); err != nil {
		t.Fatal(err)
	}
	elsewhere := pod(ref("batch/v1", "Job", "secret"))
	elsewhere.Namespace = "other"
	renamed := pod(metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: "mine", UID: "secret-uid"})
	for _, pod := range []*corev1.Pod{elsewhere, renamed} {
		if chain, err := resolver.Find(t.Context(), pod); !IsMissing(err) || len(chain.Owners) != 0 {
			t.Errorf("found %q with %v", names(chain), err)
		}
	}
}
