package conformance

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/test/framework"
)

// kind is what a check needs to know of a kind: an object that is valid, and one field of
// its spec that may change.
type kind struct {
	resource  schema.GroupVersionResource
	name      string
	clustered bool
	spec      string
	// path leads to the field that changes, to the value.
	path  []string
	value any
	// hasSpec is false where all there is to an object is its status.
	hasSpec bool
}

const pods = `podSpec: {containers: [{name: main, image: example.com/main}]}`

// kinds are all that the server serves. No workload runs: sizes are 0 where they can be.
func kinds() []kind {
	grove, scheduler := grovev1alpha1.SchemeGroupVersion, schedulerv1alpha1.SchemeGroupVersion
	return []kind{
		{
			resource: grove.WithResource("podcliquesets"), name: "PodCliqueSet", hasSpec: true,
			spec: `{replicas: 0, template: {cliques: [{name: worker, spec: {roleName: worker, replicas: 1, ` + pods + `}}]}}`,
			path: []string{"spec", "template", "terminationDelay"}, value: "1h0m0s",
		},
		{
			resource: grove.WithResource("podcliques"), name: "PodClique", hasSpec: true,
			spec: `{roleName: worker, replicas: 3, minAvailable: 1, ` + pods + `}`,
			path: []string{"spec", "replicas"}, value: int64(2),
		},
		{
			resource: grove.WithResource("podcliquescalinggroups"), name: "PodCliqueScalingGroup", hasSpec: true,
			spec: `{replicas: 3, minAvailable: 1, cliqueNames: [worker]}`,
			path: []string{"spec", "replicas"}, value: int64(2),
		},
		{
			resource: grove.WithResource("clustertopologybindings"), name: "ClusterTopologyBinding", clustered: true, hasSpec: true,
			spec: `{levels: [{domain: zone, key: topology.kubernetes.io/zone}]}`,
			path: []string{"spec", "levels"}, value: []any{map[string]any{"domain": "region", "key": "topology.kubernetes.io/region"}},
		},
		{resource: grove.WithResource("startgates"), name: "StartGate"},
		{
			resource: scheduler.WithResource("podgangs"), name: "PodGang", hasSpec: true,
			spec: `{podgroups: [{name: worker, minReplicas: 1, podReferences: [{namespace: NAMESPACE, name: none}]}]}`,
			path: []string{"spec", "priorityClassName"}, value: "high",
		},
		{
			resource: scheduler.WithResource("podgroups"), name: "PodGroup", hasSpec: true,
			spec: `{minMember: 1}`,
			path: []string{"spec", "minMember"}, value: int64(2),
		},
	}
}

// subject is a kind in the namespace of one check.
type subject struct {
	kind
	t         *testing.T
	namespace string
	client    dynamic.ResourceInterface
}

func newSubject(t *testing.T, k kind) *subject {
	t.Helper()
	s := &subject{kind: k, t: t}
	all, err := dynamic.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	s.client = all.Resource(k.resource)
	if !k.clustered {
		s.namespace = cluster.Namespace(t, framework.Unrecorded("no workload runs")).Name
		s.client = all.Resource(k.resource).Namespace(s.namespace)
	}
	return s
}

// object is a valid object. Those of clustered kinds go with the test.
func (s *subject) object(name string, labels map[string]string) *unstructured.Unstructured {
	s.t.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetGroupVersionKind(s.resource.GroupVersion().WithKind(s.name))
	obj.SetName(name)
	obj.SetLabels(labels)
	if s.hasSpec {
		spec := map[string]any{}
		if err := yaml.Unmarshal([]byte(strings.ReplaceAll(s.spec, "NAMESPACE", s.namespace)), &spec); err != nil {
			s.t.Fatal(err)
		}
		obj.Object["spec"] = spec
	}
	return obj
}

// create makes an object that is gone when the test is over.
func (s *subject) create(name string, labels map[string]string) *unstructured.Unstructured {
	s.t.Helper()
	created, err := s.client.Create(s.t.Context(), s.object(name, labels), metav1.CreateOptions{})
	if err != nil {
		s.t.Fatalf("create %s: %v", name, err)
	}
	s.removeLater(name)
	return created
}

// removeLater deletes an object when the test is over, whatever holds it. A namespace
// takes what is in it along.
func (s *subject) removeLater(name string) {
	if !s.clustered {
		return
	}
	s.t.Cleanup(func() {
		ctx := context.WithoutCancel(s.t.Context())
		_, err := s.client.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if err == nil {
			err = s.client.Delete(ctx, name, metav1.DeleteOptions{})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			s.t.Errorf("clean up: %v", err)
		}
	})
}

// change gives the field that may change its other value.
func (s *subject) change(obj *unstructured.Unstructured) *unstructured.Unstructured {
	s.t.Helper()
	out := obj.DeepCopy()
	if err := unstructured.SetNestedField(out.Object, s.value, s.path...); err != nil {
		s.t.Fatal(err)
	}
	return out
}

// patchOf is a merge patch that changes that field.
func (s *subject) patchOf() []byte {
	s.t.Helper()
	data, err := s.change(&unstructured.Unstructured{Object: map[string]any{"kind": s.name}}).MarshalJSON()
	if err != nil {
		s.t.Fatal(err)
	}
	return data
}

func (s *subject) get(name string) *unstructured.Unstructured {
	s.t.Helper()
	obj, err := s.client.Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatalf("get %s: %v", name, err)
	}
	return obj
}

// refused wants an error with a reason.
func (s *subject) refused(what string, reason metav1.StatusReason, err error) {
	s.t.Helper()
	if apierrors.ReasonForError(err) != reason {
		s.t.Errorf("%s: want reason %s, got %q: %v", what, reason, apierrors.ReasonForError(err), err)
	}
}

func (s *subject) accepted(what string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}

// untilServed waits until the aggregation layer has found the server again.
func (s *subject) untilServed() {
	s.t.Helper()
	err := wait.PollUntilContextTimeout(s.t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := s.client.List(ctx, metav1.ListOptions{})
		return err == nil, nil
	})
	if err != nil {
		s.t.Fatalf("%s are not served: %v", s.resource.Resource, err)
	}
}
