package podcliqueset

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	groveinstall "github.com/copse-dev/copse/pkg/apis/grove/install"
	"github.com/copse-dev/copse/pkg/labels"
)

// What all kinds have in common is tested in pkg/registry.

func newStrategy(defaults Defaults) *Strategy {
	scheme := runtime.NewScheme()
	groveinstall.Install(scheme)
	return NewStrategy(scheme, defaults, nil)
}

func TestCreateSetsDefaultsThatDependOnFlags(t *testing.T) {
	pcs := mkPodCliqueSet()
	newStrategy(Defaults{TerminationDelay: delay(time.Hour)}).PrepareForCreate(context.Background(), pcs)
	if got := pcs.Spec.Template.TerminationDelay; got == nil || got.Duration != time.Hour {
		t.Errorf("terminationDelay is %v", got)
	}
}

// stored is a set as the strategy has created it, with hashes of another binary.
func stored(tweaks ...func(*grove.PodCliqueSet)) *grove.PodCliqueSet {
	pcs := mkPodCliqueSet(tweaks...)
	newStrategy(Defaults{}).PrepareForCreate(context.Background(), pcs)
	storedHashes(pcs)
	pcs.ResourceVersion = "7"
	return pcs
}

// The generation moves with what the defaults make of a manifest, not with the manifest.
func TestApplyingAManifestAgainKeepsGenerationAndHashes(t *testing.T) {
	manifest := withGroup(ptr.To[int32](3), nil)
	old := stored(manifest)
	pcs := mkPodCliqueSet(manifest)
	newStrategy(Defaults{}).PrepareForUpdate(context.Background(), pcs, old)
	if pcs.Generation != old.Generation {
		t.Errorf("generation is %d, want %d", pcs.Generation, old.Generation)
	}
	if diff := cmp.Diff(old.Status, pcs.Status); diff != "" {
		t.Errorf("status (-stored +new):\n%s", diff)
	}
}

func TestMainEndpointAloneWritesHashes(t *testing.T) {
	strategy := newStrategy(Defaults{})
	forged := func(pcs *grove.PodCliqueSet) {
		pcs.Status.CurrentGenerationHash = ptr.To("forged-set")
		pcs.Status.CliqueHashes = []grove.CliqueHash{{Name: "router", Hash: "forged-router"}, {Name: "worker", Hash: "forged-worker"}}
	}
	dropped := func(pcs *grove.PodCliqueSet) {
		pcs.Status.CurrentGenerationHash, pcs.Status.CliqueHashes = nil, nil
	}
	for name, tweak := range map[string]func(*grove.PodCliqueSet){"forged": forged, "dropped": dropped} {
		for endpoint, prepare := range map[string]func(obj, old runtime.Object){
			"main": func(obj, old runtime.Object) { strategy.PrepareForUpdate(context.Background(), obj, old) },
			"status": func(obj, old runtime.Object) {
				NewStatusStrategy(strategy).PrepareForUpdate(context.Background(), obj, old)
			},
		} {
			old := stored()
			pcs := old.DeepCopy()
			tweak(pcs)
			prepare(pcs, old)
			if got := ptr.Deref(pcs.Status.CurrentGenerationHash, ""); got != "stored-set" {
				t.Errorf("%s at the %s endpoint: the set has hash %q", name, endpoint, got)
			}
			if got := hashOf(pcs, "worker"); got != "stored-worker" {
				t.Errorf("%s at the %s endpoint: the worker has hash %q", name, endpoint, got)
			}
		}
	}

	old := stored()
	pcs := old.DeepCopy()
	pcs.Spec.Template.Cliques[1].Spec.PodSpec.Containers[0].Image = "v2"
	strategy.PrepareForUpdate(context.Background(), pcs, old)
	if got := hashOf(pcs, "worker"); got == "" || got == "stored-worker" {
		t.Errorf("after a change of its template the worker has hash %q", got)
	}
	if got := hashOf(old, "worker"); got != "stored-worker" {
		t.Errorf("the stored object now has hash %q", got)
	}
}

func TestWarningsGoToWhoeverWritesTheSpec(t *testing.T) {
	ctx, strategy := context.Background(), newStrategy(Defaults{})
	inert := func(pcs *grove.PodCliqueSet) {
		pcs.Annotations = map[string]string{labels.FabricGroup: "a"}
	}
	old := stored(inert)
	same, changed := old.DeepCopy(), old.DeepCopy()
	changed.Generation++
	if got := strategy.WarningsOnCreate(ctx, old); len(got) != 1 {
		t.Errorf("on create: %q", got)
	}
	if got := strategy.WarningsOnUpdate(ctx, changed, old); len(got) != 1 {
		t.Errorf("on a change of the spec: %q", got)
	}
	if got := strategy.WarningsOnUpdate(ctx, same, old); len(got) != 0 {
		t.Errorf("on a change of metadata: %q", got)
	}
	if got := NewStatusStrategy(strategy).WarningsOnUpdate(ctx, changed, old); len(got) != 0 {
		t.Errorf("on a change of status: %q", got)
	}
}
