package apiserver

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

const namespace = "ns"

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/server"}}}
}

// llm is a set of a clique of two pods, and a scaling group of two copies of three pods
// that an autoscaler may grow to five.
func llm() *grovev1alpha1.PodCliqueSet {
	return &grovev1alpha1.PodCliqueSet{
		ObjectMeta: metav1.ObjectMeta{Name: "llm"},
		Spec: grovev1alpha1.PodCliqueSetSpec{
			Replicas: 2,
			Template: grovev1alpha1.PodCliqueSetTemplateSpec{
				Cliques: []grovev1alpha1.PodCliqueTemplateSpec{
					{Name: "worker", Spec: grovev1alpha1.PodCliqueSpec{RoleName: "worker", Replicas: 2, PodSpec: podSpec()}},
					{Name: "decode", Spec: grovev1alpha1.PodCliqueSpec{RoleName: "decode", Replicas: 3, PodSpec: podSpec()}},
				},
				PodCliqueScalingGroups: []grovev1alpha1.PodCliqueScalingGroupConfig{{
					Name: "group", CliqueNames: []string{"decode"}, Replicas: ptr.To[int32](2), MinAvailable: ptr.To[int32](2),
					ScaleConfig: &grovev1alpha1.AutoScalingConfig{MaxReplicas: 5},
				}},
			},
		},
	}
}

func clique(training bool) *grovev1alpha1.PodClique {
	clique := &grovev1alpha1.PodClique{
		ObjectMeta: metav1.ObjectMeta{Name: "llm-0-worker"},
		Spec: grovev1alpha1.PodCliqueSpec{
			RoleName: "worker", Replicas: 3, MinAvailable: ptr.To[int32](2), PodSpec: podSpec(), WorkloadType: grovev1alpha1.WorkloadTypeInference,
			AutoScalingConfig: &grovev1alpha1.AutoScalingConfig{MaxReplicas: 6},
		},
	}
	if training {
		clique.Name = "job-0-worker"
		clique.Spec.WorkloadType = grovev1alpha1.WorkloadTypeTraining
		clique.Spec.AutoScalingConfig = nil
		clique.Spec.PodSpec.RestartPolicy = corev1.RestartPolicyNever
	}
	return clique
}

// scales makes an object of each kind that scales, and returns the paths of their scales.
func scales(t *testing.T, s served) map[string]string {
	t.Helper()
	api, ctx := s.copse.GroveV1alpha1(), t.Context()
	pcs, err := api.PodCliqueSets(namespace).Create(ctx, llm(), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	group := &grovev1alpha1.PodCliqueScalingGroup{
		ObjectMeta: metav1.ObjectMeta{
			Name: "llm-0-group", Labels: map[string]string{"grove.io/podcliqueset-replica-index": "0"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(pcs, grovev1alpha1.SchemeGroupVersion.WithKind("PodCliqueSet"))},
		},
		Spec: grovev1alpha1.PodCliqueScalingGroupSpec{
			Replicas: 3, MinAvailable: ptr.To[int32](2), CliqueNames: []string{"decode"}, WorkloadType: grovev1alpha1.WorkloadTypeInference,
		},
	}
	if _, err := api.PodCliqueScalingGroups(namespace).Create(ctx, group, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, training := range []bool{false, true} {
		if _, err := api.PodCliques(namespace).Create(ctx, clique(training), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	path := func(resource, name string) string {
		return "/apis/grove.io/v1alpha1/namespaces/" + namespace + "/" + resource + "/" + name + "/scale"
	}
	return map[string]string{
		"PodCliqueSet":          path("podcliquesets", "llm"),
		"PodClique":             path("podcliques", "llm-0-worker"),
		"PodCliqueScalingGroup": path("podcliquescalinggroups", "llm-0-group"),
		"training PodClique":    path("podcliques", "job-0-worker"),
	}
}

func client(s served) rest.Interface { return s.copse.GroveV1alpha1().RESTClient() }

func getScale(t *testing.T, s served, path string) *autoscalingv1.Scale {
	t.Helper()
	var scale autoscalingv1.Scale
	raw, err := client(s).Get().AbsPath(path).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	decode(t, raw, &scale)
	return &scale
}

func patchScale(t *testing.T, s served, path string, kind types.PatchType, patch, manager string) error {
	t.Helper()
	request := client(s).Patch(kind).AbsPath(path).Body([]byte(patch)).Param("fieldManager", manager)
	return request.Do(t.Context()).Error()
}

// Every kind of write changes the size of every kind of object, and nothing else of it.
func TestScaleByEveryVerb(t *testing.T) {
	s := serve(t, nil)
	for kind, path := range scales(t, s) {
		if strings.HasPrefix(kind, "training") {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			before := getScale(t, s, path)
			if before.Kind != "Scale" || before.APIVersion != "autoscaling/v1" || before.UID == "" || before.Status.Selector == "" {
				t.Fatalf("the Scale is %+v", before)
			}
			apply := fmt.Sprintf(`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":%q},"spec":{"replicas":3}}`, before.Name)
			put := before.DeepCopy()
			put.Spec.Replicas = 2
			for _, write := range []struct {
				name string
				do   func() error
				want int32
			}{
				{"put", func() error { return client(s).Put().AbsPath(path).Body(encode(t, put)).Do(t.Context()).Error() }, 2},
				{"JSON patch", func() error {
					return patchScale(t, s, path, types.JSONPatchType, `[{"op":"test","path":"/spec/replicas","value":2},{"op":"replace","path":"/spec/replicas","value":5}]`, "one")
				}, 5},
				{"merge patch", func() error {
					return patchScale(t, s, path, types.MergePatchType, `{"spec":{"replicas":4}}`, "one")
				}, 4},
				// A Scale has no lists, so this is a merge patch by another name, as for Deployments.
				{"strategic merge patch", func() error {
					return patchScale(t, s, path, types.StrategicMergePatchType, `{"spec":{"replicas":2}}`, "one")
				}, 2},
				{"server-side apply", func() error {
					return client(s).Patch(types.ApplyPatchType).AbsPath(path).Body([]byte(apply)).Param("fieldManager", "two").Param("force", "true").Do(t.Context()).Error()
				}, 3},
			} {
				if err := write.do(); err != nil {
					t.Errorf("%s: %v", write.name, err)
				}
				after := getScale(t, s, path)
				if after.Spec.Replicas != write.want {
					t.Errorf("%s: %d replicas, want %d", write.name, after.Spec.Replicas, write.want)
				}
				after.Spec, after.ResourceVersion = before.Spec, before.ResourceVersion
				if diff := cmp.Diff(before, after); diff != "" {
					t.Errorf("%s (-before +after):\n%s", write.name, diff)
				}
			}
		})
	}
}

// Whoever scales owns spec.replicas, of the Scale and of the object alike; an applier of
// the object that still names it meets a conflict and not a silent reset.
func TestOwnershipMovesBetweenAnObjectAndItsScale(t *testing.T) {
	s := serve(t, nil)
	path := scales(t, s)["PodCliqueSet"]
	main := strings.TrimSuffix(path, "/scale")
	body := func(replicas int) []byte {
		return []byte(fmt.Sprintf(`{"apiVersion":"grove.io/v1alpha1","kind":"PodCliqueSet","metadata":{"name":"llm"},"spec":{"replicas":%d}}`, replicas))
	}
	apply := func(replicas int, force string) error {
		return client(s).Patch(types.ApplyPatchType).AbsPath(main).Body(body(replicas)).Param("fieldManager", "user").Param("force", force).Do(t.Context()).Error()
	}
	owners := func() map[string]string {
		pcs, err := s.copse.GroveV1alpha1().PodCliqueSets(namespace).Get(t.Context(), "llm", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		owners := map[string]string{}
		for _, entry := range pcs.ManagedFields {
			if strings.Contains(entry.FieldsV1.GetRawString(), `"f:replicas":{}`) && entry.Subresource != "status" && entry.Manager != "apiserver.test" {
				owners[entry.Manager] = entry.APIVersion
			}
		}
		return owners
	}
	if err := apply(2, "true"); err != nil {
		t.Fatal(err)
	}
	if err := patchScale(t, s, path, types.MergePatchType, `{"spec":{"replicas":4}}`, "autoscaler"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"autoscaler": "grove.io/v1alpha1"}, owners()); diff != "" {
		t.Errorf("owners after the scale (-want +got):\n%s", diff)
	}
	if err := apply(2, "false"); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "autoscaler") {
		t.Errorf("an apply over the autoscaler's size: %v", err)
	}
	if got := getScale(t, s, path).Spec.Replicas; got != 4 {
		t.Errorf("%d replicas after the conflict, want 4", got)
	}
	if err := apply(3, "true"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"user": "grove.io/v1alpha1"}, owners()); diff != "" {
		t.Errorf("owners after the forced apply (-want +got):\n%s", diff)
	}
	conflicting := `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"llm"},"spec":{"replicas":5}}`
	err := client(s).Patch(types.ApplyPatchType).AbsPath(path).Body([]byte(conflicting)).Param("fieldManager", "autoscaler").Do(t.Context()).Error()
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "user") {
		t.Errorf("an apply of the Scale over the user's size: %v", err)
	}
}

func TestScaleHoldsItsPreconditions(t *testing.T) {
	s := serve(t, nil)
	for kind, path := range scales(t, s) {
		t.Run(kind, func(t *testing.T) {
			put := func(change func(*autoscalingv1.Scale)) error {
				scale := getScale(t, s, path)
				change(scale)
				return client(s).Put().AbsPath(path).Body(encode(t, scale)).Do(t.Context()).Error()
			}
			for name, change := range map[string]func(*autoscalingv1.Scale){
				"another UID":             func(scale *autoscalingv1.Scale) { scale.UID = "other" },
				"another resourceVersion": func(scale *autoscalingv1.Scale) { scale.ResourceVersion = "1" },
			} {
				if err := put(change); !apierrors.IsConflict(err) {
					t.Errorf("%s: %v", name, err)
				}
			}
			if err := put(func(scale *autoscalingv1.Scale) { scale.Name = "other" }); !apierrors.IsBadRequest(err) {
				t.Errorf("another name: %v", err)
			}
			if err := put(func(*autoscalingv1.Scale) {}); err != nil {
				t.Errorf("the same again: %v", err)
			}
			stale := `{"metadata":{"resourceVersion":"1"},"spec":{"replicas":3}}`
			if err := patchScale(t, s, path, types.MergePatchType, stale, "one"); !apierrors.IsConflict(err) {
				t.Errorf("a patch of another resourceVersion: %v", err)
			}
		})
	}
}

func TestScaleHoldsItsBounds(t *testing.T) {
	s := serve(t, nil)
	paths := scales(t, s)
	for kind, tc := range map[string]struct {
		allowed, refused []int32
		want             string
	}{
		"PodCliqueSet":          {[]int32{0, 1, 2500}, []int32{-1, 2501, 1<<31 - 1}, "must be from 0 to 2500 (8 pods in each replica, of at most 20000 in a set)"},
		"PodClique":             {[]int32{0, 2, 6}, []int32{-1, 1, 7, 1<<31 - 1}, "must be 0, or from 2 (spec.minAvailable) to 6 (spec.autoScalingConfig.maxReplicas)"},
		"PodCliqueScalingGroup": {[]int32{0, 2, 5}, []int32{-1, 1, 6, 1<<31 - 1}, "must be 0, or from 2 (spec.minAvailable) to 5 (scaleConfig.maxReplicas of group in PodCliqueSet llm)"},
		"training PodClique":    {[]int32{3}, []int32{0, 2, 4}, "is immutable in Training"},
	} {
		t.Run(kind, func(t *testing.T) {
			path := paths[kind]
			for _, size := range tc.allowed {
				if err := patchScale(t, s, path, types.MergePatchType, fmt.Sprintf(`{"spec":{"replicas":%d}}`, size), "one"); err != nil {
					t.Errorf("%d: %v", size, err)
				}
			}
			before := getScale(t, s, path)
			for _, size := range tc.refused {
				err := patchScale(t, s, path, types.MergePatchType, fmt.Sprintf(`{"spec":{"replicas":%d}}`, size), "one")
				var status apierrors.APIStatus
				if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
					t.Errorf("%d: %v", size, err)
					continue
				}
				causes := status.Status().Details.Causes
				if len(causes) != 1 || causes[0].Field != "spec.replicas" || !strings.Contains(causes[0].Message, tc.want) {
					t.Errorf("%d: causes %+v, want spec.replicas: %s", size, causes, tc.want)
				}
			}
			if diff := cmp.Diff(before, getScale(t, s, path)); diff != "" {
				t.Errorf("a refusal changed something (-before +after):\n%s", diff)
			}
		})
	}
}

// A group that no set stands behind any more, or another set of the same name, scales
// within what any set allows.
func TestAGroupWithoutItsSetScalesWithinTheLimitOfAnySet(t *testing.T) {
	s := serve(t, nil)
	path := scales(t, s)["PodCliqueScalingGroup"]
	groups := s.copse.GroveV1alpha1().PodCliqueScalingGroups(namespace)
	for _, change := range []struct{ name, patch string }{
		{"of another set", `[{"op":"replace","path":"/metadata/ownerReferences/0/uid","value":"other"}]`},
		{"of a set that is gone", `[{"op":"replace","path":"/metadata/ownerReferences/0/name","value":"gone"}]`},
		{"of no set", `[{"op":"remove","path":"/metadata/ownerReferences"}]`},
	} {
		if _, err := groups.Patch(t.Context(), "llm-0-group", types.JSONPatchType, []byte(change.patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		err := patchScale(t, s, path, types.MergePatchType, `{"spec":{"replicas":20001}}`, "one")
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "20000 (the most pods of a set)") {
			t.Errorf("%s: %v", change.name, err)
		}
	}
	if err := patchScale(t, s, path, types.MergePatchType, `{"spec":{"replicas":20000}}`, "one"); err != nil {
		t.Error(err)
	}
}

// Without an autoscaler's maximum a size is bound by the pods of a set, and by the length of
// host names: a pod whose name is too long would never be made.
func TestScalesKeepWithinThePodsOfASetAndTheLengthOfHostNames(t *testing.T) {
	s := serve(t, nil)
	api, ctx := s.copse.GroveV1alpha1(), t.Context()
	// At 10000 pods of the clique and 10 copies of the group the last host name has 63 characters.
	long, longClique := strings.Repeat("l", 44), strings.Repeat("c", 58)
	for name, tc := range map[string]struct {
		set, worker   string
		clique, group string
		sizes         map[string]int32
	}{
		"a short name": {
			set: "llm", worker: "llm-0-worker", sizes: map[string]int32{"podcliques": 20000, "podcliquescalinggroups": 6666},
			clique: "to 20000 (the most pods of a set)", group: "to 6666 (3 pods in each copy, of at most 20000 in a set)",
		},
		"a long name": {
			set: long, worker: longClique, sizes: map[string]int32{"podcliques": 10000, "podcliquescalinggroups": 10},
			clique: "to 10000 (host name " + longClique + "-10000 would have more than 63 characters)",
			group:  "to 10 (host name " + long + "-0-group-10-decode-2 would have more than 63 characters)",
		},
	} {
		pcs := llm()
		pcs.Name = tc.set
		pcs.Spec.Template.PodCliqueScalingGroups[0].ScaleConfig = nil
		pcs, err := api.PodCliqueSets(namespace).Create(ctx, pcs, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		worker := clique(false)
		worker.Name, worker.Spec.AutoScalingConfig = tc.worker, nil
		if _, err := api.PodCliques(namespace).Create(ctx, worker, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		group := &grovev1alpha1.PodCliqueScalingGroup{
			ObjectMeta: metav1.ObjectMeta{
				Name: tc.set + "-0-group", Labels: map[string]string{"grove.io/podcliqueset-replica-index": "0"},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(pcs, grovev1alpha1.SchemeGroupVersion.WithKind("PodCliqueSet"))},
			},
			Spec: grovev1alpha1.PodCliqueScalingGroupSpec{
				Replicas: 2, MinAvailable: ptr.To[int32](2), CliqueNames: []string{"decode"}, WorkloadType: grovev1alpha1.WorkloadTypeInference,
			},
		}
		if _, err := api.PodCliqueScalingGroups(namespace).Create(ctx, group, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		for resource, object := range map[string]string{"podcliques": worker.Name, "podcliquescalinggroups": group.Name} {
			path := "/apis/grove.io/v1alpha1/namespaces/" + namespace + "/" + resource + "/" + object + "/scale"
			want := map[string]string{"podcliques": tc.clique, "podcliquescalinggroups": tc.group}[resource]
			scaleTo := func(size int32) error {
				return patchScale(t, s, path, types.MergePatchType, fmt.Sprintf(`{"spec":{"replicas":%d}}`, size), "one")
			}
			if err := scaleTo(tc.sizes[resource] + 1); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s, one of %s too many: %v, want %q", name, resource, err, want)
			}
			if err := scaleTo(tc.sizes[resource]); err != nil {
				t.Errorf("%s, the most of %s: %v", name, resource, err)
			}
		}
	}
}
