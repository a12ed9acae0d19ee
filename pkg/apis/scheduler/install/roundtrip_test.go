package install

import (
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	apitestingfuzzer "k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/apitesting/roundtrip"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"

	"github.com/copse-dev/copse/pkg/apis/scheduler"
	"github.com/copse-dev/copse/pkg/apis/scheduler/fuzzer"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
)

// The hub loses nothing on its way through v1alpha1 and JSON. Nothing is served or
// stored as protobuf.
func TestHubSurvivesVersions(t *testing.T) {
	roundtrip.RoundTripTestForAPIGroup(t, Install, fuzzer.Funcs)
}

// v1alpha1 loses nothing on its way through JSON.
func TestVersionsSurviveJSON(t *testing.T) {
	scheme, codecs, filler := setUp()
	roundtrip.RoundTripExternalTypesWithoutProtobuf(t, scheme, codecs, filler, nil)
}

// v1alpha1 loses nothing on its way through the hub: a field that the hub lacks would be
// dropped from every write.
func TestVersionsSurviveHub(t *testing.T) {
	scheme, _, filler := setUp()
	kinds := 0
	for kind := range scheme.KnownTypes(scheduler.SchemeGroupVersion) {
		kinds++
		t.Run(kind, func(t *testing.T) {
			for range *roundtrip.FuzzIters {
				before, err := scheme.New(schedulerv1alpha1.SchemeGroupVersion.WithKind(kind))
				if err != nil {
					t.Fatal(err)
				}
				filler.Fill(before)
				hub, err := scheme.UnsafeConvertToVersion(before.DeepCopyObject(), scheduler.SchemeGroupVersion)
				if err != nil {
					t.Fatal(err)
				}
				after, err := scheme.UnsafeConvertToVersion(hub, schedulerv1alpha1.SchemeGroupVersion)
				if err != nil {
					t.Fatal(err)
				}
				after.GetObjectKind().SetGroupVersionKind(before.GetObjectKind().GroupVersionKind())
				if !apiequality.Semantic.DeepEqual(before, after) {
					t.Fatalf("changed in the hub (-before +after):\n%s", cmp.Diff(before, after))
				}
			}
		})
	}
	if kinds == 0 {
		t.Error("there are no kinds")
	}
}

// setUp returns the scheme and codecs of the API group, and a filler of its objects.
func setUp() (*runtime.Scheme, runtimeserializer.CodecFactory, *randfill.Filler) {
	scheme := runtime.NewScheme()
	Install(scheme)
	codecs := runtimeserializer.NewCodecFactory(scheme)
	funcs := apitestingfuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, fuzzer.Funcs)
	filler := apitestingfuzzer.FuzzerFor(funcs, rand.NewSource(rand.Int63()), codecs)
	// Half of everything would be empty, and of deep fields almost everything.
	return scheme, codecs, filler.NilChance(.1).NumElements(1, 2)
}
