package registry_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/copse-dev/copse/pkg/apis/grove"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/registry/grove/podcliqueset"
)

var podCliqueSetKind = grovev1alpha1.SchemeGroupVersion.WithKind("PodCliqueSet")

// readManifest reads a set from a file, strictly, as kubectl asks for.
func readManifest(t testing.TB, path string) *grove.PodCliqueSet {
	t.Helper()
	manifest, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// The set of a file may come after what it needs.
	if i := bytes.LastIndex(manifest, []byte("\n---\n")); i >= 0 {
		manifest = manifest[i:]
	}
	if err := yaml.UnmarshalStrict(manifest, &grovev1alpha1.PodCliqueSet{}); err != nil {
		t.Fatal(err)
	}
	text, err := yaml.YAMLToJSON(manifest)
	if err != nil {
		t.Fatal(err)
	}
	obj, err := newCodec().decode(text, podCliqueSetKind)
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*grove.PodCliqueSet)
}

func create(t testing.TB, defaults podcliqueset.Defaults, set *grove.PodCliqueSet) {
	t.Helper()
	strategy := podcliqueset.NewStrategy(runtime.NewScheme(), defaults, nil)
	strategy.PrepareForCreate(context.Background(), set)
	if errs := strategy.Validate(context.Background(), set); len(errs) > 0 {
		t.Fatalf("is refused: %v", errs)
	}
}

// A manifest that was written for Grove applies unchanged, and reads back with Grove's
// defaults. The one difference is D1: no terminationDelay is none, but for a flag.
func TestGroveManifestReadsBackWithGrovesDefaults(t *testing.T) {
	const path = "testdata/grove.yaml"
	set, want := readManifest(t, path), readManifest(t, path)
	create(t, podcliqueset.Defaults{}, set)

	spec := &want.Spec
	spec.WorkloadType = grove.WorkloadTypeInference
	spec.UpdateStrategy.Type = grove.UpdateStrategyRollingRecreate
	template := &spec.Template
	template.HeadlessServiceConfig.PublishNotReadyAddresses = ptr.To(true)
	frontend, prefill, leader, worker := &template.Cliques[0].Spec, &template.Cliques[1].Spec, &template.Cliques[2].Spec, &template.Cliques[3].Spec
	frontend.Replicas, frontend.MinAvailable = 1, ptr.To[int32](1)
	frontend.AutoScalingConfig.MinReplicas = ptr.To[int32](1)
	frontend.PodSpec.Containers[0].Ports[0].Protocol = corev1.ProtocolTCP
	prefill.MinAvailable, leader.MinAvailable = ptr.To[int32](4), ptr.To[int32](1)
	for _, clique := range []*grove.PodCliqueSpec{frontend, leader, worker} {
		clique.PodSpec.TerminationGracePeriodSeconds = ptr.To[int64](30)
	}
	for _, clique := range []*grove.PodCliqueSpec{frontend, prefill, worker} {
		clique.PodSpec.RestartPolicy = corev1.RestartPolicyAlways
	}
	group := &template.PodCliqueScalingGroups[0]
	group.MinAvailable, group.ScaleConfig.MinReplicas = ptr.To[int32](1), ptr.To[int32](2)
	if diff := cmp.Diff(want.Spec, set.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}

	// A cluster that wants Grove's delay sets the flag.
	set = readManifest(t, path)
	create(t, podcliqueset.Defaults{TerminationDelay: &metav1.Duration{Duration: 4 * time.Hour}}, set)
	want.Spec.Template.TerminationDelay = &metav1.Duration{Duration: 4 * time.Hour}
	if diff := cmp.Diff(want.Spec, set.Spec); diff != "" {
		t.Errorf("spec with the flag (-want +got):\n%s", diff)
	}
}

// Applied again, the manifest changes nothing: neither spec, nor generation, nor hashes.
func TestGroveManifestAppliedAgainChangesNothing(t *testing.T) {
	old := readManifest(t, "testdata/grove.yaml")
	create(t, podcliqueset.Defaults{}, old)
	old.ResourceVersion = "7"
	set := readManifest(t, "testdata/grove.yaml")
	set.ResourceVersion, set.Finalizers = "7", old.Finalizers
	strategy := podcliqueset.NewStrategy(runtime.NewScheme(), podcliqueset.Defaults{}, nil)
	strategy.PrepareForUpdate(context.Background(), set, old)
	if errs := strategy.ValidateUpdate(context.Background(), set, old); len(errs) > 0 {
		t.Errorf("is refused: %v", errs)
	}
	if diff := cmp.Diff(old, set); diff != "" {
		t.Errorf("set (-before +after):\n%s", diff)
	}
}

// Whatever Grove accepts and nothing acts on yet, or not as it seems, is told of, with the path of the field.
func TestGroveManifestIsWarnedOfWhatNothingActsOn(t *testing.T) {
	set := readManifest(t, "testdata/grove.yaml")
	create(t, podcliqueset.Defaults{}, set)
	strategy := podcliqueset.NewStrategy(runtime.NewScheme(), podcliqueset.Defaults{}, nil)
	got := sets.New[string]()
	for _, warning := range strategy.WarningsOnCreate(context.Background(), set) {
		path, _, _ := strings.Cut(warning, ": ")
		got.Insert(path)
	}
	want := sets.New(
		"spec.template.cliques[1].topologyConstraint.pack.required", "spec.template.cliques[1].topologyConstraint.pack.preferred",
		"spec.template.podCliqueScalingGroups[0].topologyConstraint.pack.preferred",
	)
	if diff := cmp.Diff(sets.List(want), sets.List(got)); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// Every example is accepted.
func TestExamplesAreAccepted(t *testing.T) {
	paths, err := filepath.Glob("../../artifacts/examples/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, path := range paths {
		if name := filepath.Base(path); strings.HasPrefix(name, "group-") || strings.HasPrefix(name, "admission-") {
			// Workloads of others, and policies, which are no sets.
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			set := readManifest(t, path)
			set.Namespace = "ns"
			create(t, podcliqueset.Defaults{}, set)
		})
	}
}
