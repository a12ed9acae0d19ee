package podcliqueset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

// storedHashes are hashes that no hash function gives, as if another binary had made them.
func storedHashes(pcs *grove.PodCliqueSet) {
	pcs.Status.CurrentGenerationHash = ptr.To("stored-set")
	pcs.Status.CliqueHashes = []grove.CliqueHash{{Name: "router", Hash: "stored-router"}, {Name: "worker", Hash: "stored-worker"}}
}

func hashOf(pcs *grove.PodCliqueSet, clique string) string {
	for _, hash := range pcs.Status.CliqueHashes {
		if hash.Name == clique {
			return hash.Hash
		}
	}
	return ""
}

// TestTemplatesThatAreTheSameKeepTheirHashes: what rolls every running workload of a
// cluster after an upgrade is a hash that changes though no template does (D16).
func TestTemplatesThatAreTheSameKeepTheirHashes(t *testing.T) {
	worker := func(tweak func(*grove.PodCliqueTemplateSpec)) func(*grove.PodCliqueSet) {
		return func(pcs *grove.PodCliqueSet) { tweak(pcs.Spec.Template.Clique("worker")) }
	}
	for name, tweak := range map[string]func(*grove.PodCliqueSet){
		"nothing changes":          all(),
		"cliques in another order": swap,
		"replicas of the set":      func(pcs *grove.PodCliqueSet) { pcs.Spec.Replicas = 9 },
		"replicas of a clique":     worker(func(c *grove.PodCliqueTemplateSpec) { c.Spec.Replicas = 9 }),
		"minAvailable":             worker(func(c *grove.PodCliqueTemplateSpec) { c.Spec.MinAvailable = ptr.To[int32](1) }),
		"autoscaling": worker(func(c *grove.PodCliqueTemplateSpec) {
			c.Spec.AutoScalingConfig = &grove.AutoScalingConfig{MaxReplicas: 9}
		}),
		"scaling group":             withGroup(ptr.To[int32](9), nil),
		"workload type and budgets": func(pcs *grove.PodCliqueSet) { training(pcs); pcs.Spec.TrainingSpec = &grove.TrainingSpec{} },
		"termination delay":         func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.TerminationDelay = delay(9) },
		"headless Service":          func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.HeadlessServiceConfig = nil },
		"labels of the set":         func(pcs *grove.PodCliqueSet) { pcs.Labels = map[string]string{"a": "b"} },
		"empty in place of null": worker(func(c *grove.PodCliqueTemplateSpec) {
			c.Annotations, c.Spec.PodSpec.NodeSelector = map[string]string{}, map[string]string{}
		}),
		"quantity in other units": worker(func(c *grove.PodCliqueTemplateSpec) {
			c.Spec.PodSpec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("1000m")
		}),
		"update strategy": func(pcs *grove.PodCliqueSet) { pcs.Spec.UpdateStrategy = &grove.PodCliqueSetUpdateStrategy{} },
	} {
		t.Run(name, func(t *testing.T) {
			old := mkPodCliqueSet(storedHashes)
			pcs := mkPodCliqueSet(storedHashes, tweak)
			hashTemplates(pcs, old)
			if got := ptr.Deref(pcs.Status.CurrentGenerationHash, ""); got != "stored-set" {
				t.Errorf("the set has hash %q", got)
			}
			for _, clique := range []string{"router", "worker"} {
				if got := hashOf(pcs, clique); got != "stored-"+clique {
					t.Errorf("clique %s has hash %q", clique, got)
				}
			}
			for i, hash := range pcs.Status.CliqueHashes {
				if want := pcs.Spec.Template.Cliques[i].Name; hash.Name != want {
					t.Errorf("hash %d is of clique %s, want %s", i, hash.Name, want)
				}
			}
		})
	}
}

func TestTemplatesThatChangeGetNewHashes(t *testing.T) {
	worker := func(tweak func(*grove.PodCliqueTemplateSpec)) func(*grove.PodCliqueSet) {
		return func(pcs *grove.PodCliqueSet) { tweak(pcs.Spec.Template.Clique("worker")) }
	}
	tests := map[string]struct {
		tweak func(*grove.PodCliqueSet)
		// kept says whether the router keeps its hash.
		kept bool
	}{
		"label":           {worker(func(c *grove.PodCliqueTemplateSpec) { c.Labels["a"] = "b" }), true},
		"label that goes": {worker(func(c *grove.PodCliqueTemplateSpec) { c.Labels = nil }), true},
		"annotation":      {worker(func(c *grove.PodCliqueTemplateSpec) { c.Annotations = map[string]string{"a": "b"} }), true},
		"image":           {worker(func(c *grove.PodCliqueTemplateSpec) { c.Spec.PodSpec.Containers[0].Image = "v2" }), true},
		"quantity": {worker(func(c *grove.PodCliqueTemplateSpec) {
			c.Spec.PodSpec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("2")
		}), true},
		"moved and changed": {all(swap, worker(func(c *grove.PodCliqueTemplateSpec) { c.Spec.PodSpec.Containers[0].Image = "v2" })), true},
		"priorityClassName": {func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.PriorityClassName = "high" }, false},
	}
	seen := map[string]string{}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			old := mkPodCliqueSet(storedHashes)
			before := old.DeepCopy()
			pcs := mkPodCliqueSet(storedHashes, tc.tweak)
			hashTemplates(pcs, old)
			if got := ptr.Deref(pcs.Status.CurrentGenerationHash, ""); got == "" || got == "stored-set" {
				t.Errorf("the set has hash %q", got)
			}
			if got := hashOf(pcs, "worker"); got == "" || got == "stored-worker" {
				t.Errorf("the worker has hash %q", got)
			}
			if got := hashOf(pcs, "router"); got == "" || (got == "stored-router") != tc.kept {
				t.Errorf("the router has hash %q, want its old one: %t", got, tc.kept)
			}
			if diff := cmp.Diff(before, old); diff != "" {
				t.Errorf("the old set changed (-before +after):\n%s", diff)
			}
			if name != "moved and changed" && name != "image" {
				if other, ok := seen[hashOf(pcs, "worker")]; ok {
					t.Errorf("the hash is that of change %q", other)
				}
				seen[hashOf(pcs, "worker")] = name
			}
		})
	}
}

func TestHashesOfNewSets(t *testing.T) {
	pcs, again, moved := mkPodCliqueSet(), mkPodCliqueSet(), mkPodCliqueSet(swap)
	for _, set := range []*grove.PodCliqueSet{pcs, again, moved} {
		hashTemplates(set, nil)
	}
	if len(pcs.Status.CliqueHashes) != 2 || hashOf(pcs, "router") == "" || hashOf(pcs, "router") == hashOf(pcs, "worker") {
		t.Errorf("cliques have hashes %v", pcs.Status.CliqueHashes)
	}
	if diff := cmp.Diff(pcs.Status, again.Status); diff != "" {
		t.Errorf("equal sets differ:\n%s", diff)
	}
	if *moved.Status.CurrentGenerationHash != *pcs.Status.CurrentGenerationHash {
		t.Errorf("the order of the cliques changes the hash of the set from %s to %s", *pcs.Status.CurrentGenerationHash, *moved.Status.CurrentGenerationHash)
	}
	other := mkPodCliqueSet(func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.Cliques[0].Spec.PodSpec.Containers[0].Image = "v2" })
	hashTemplates(other, nil)
	if *other.Status.CurrentGenerationHash == *pcs.Status.CurrentGenerationHash {
		t.Errorf("sets with other templates share the hash %s", *other.Status.CurrentGenerationHash)
	}
	if hashOf(moved, "worker") != hashOf(pcs, "worker") {
		t.Error("the order of the cliques changes the hash of a clique")
	}
}

// A status that lacks hashes, or has some of cliques that are not there, was not
// written by this server; it is made whole with the next update.
func TestHashesAreMadeWhole(t *testing.T) {
	for name, status := range map[string]grove.PodCliqueSetStatus{
		"no hashes":        {},
		"no hash of a set": {CliqueHashes: []grove.CliqueHash{{Name: "router", Hash: "stored-router"}, {Name: "worker", Hash: "stored-worker"}}},
		"one clique lacks": {CurrentGenerationHash: ptr.To("stored-set"), CliqueHashes: []grove.CliqueHash{{Name: "router", Hash: "stored-router"}}},
		"a hash of a stranger": {CurrentGenerationHash: ptr.To("stored-set"), CliqueHashes: []grove.CliqueHash{
			{Name: "router", Hash: "stored-router"}, {Name: "worker", Hash: "stored-worker"}, {Name: "helper", Hash: "stored-helper"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			old, pcs := mkPodCliqueSet(), mkPodCliqueSet()
			old.Status, pcs.Status = status, *status.DeepCopy()
			hashTemplates(pcs, old)
			if got := ptr.Deref(pcs.Status.CurrentGenerationHash, ""); got == "" || got == "stored-set" {
				t.Errorf("the set has hash %q", got)
			}
			if len(pcs.Status.CliqueHashes) != 2 || hashOf(pcs, "router") == "" || hashOf(pcs, "worker") == "" {
				t.Errorf("cliques have hashes %v", pcs.Status.CliqueHashes)
			}
			if hashOf(&grove.PodCliqueSet{Status: status}, "router") != "" && hashOf(pcs, "router") != "stored-router" {
				t.Error("a hash that was there has changed")
			}
		})
	}
}

// A set that is refused for its size is not hashed; one that was stored before there was
// a limit keeps its hashes.
func TestSetsThatAreTooBig(t *testing.T) {
	tooBig := func(pcs *grove.PodCliqueSet) {
		pcs.Spec.Template.Cliques[0].Spec.PodSpec.Volumes = make([]corev1.Volume, 20000)
	}
	pcs := mkPodCliqueSet(tooBig)
	hashTemplates(pcs, nil)
	if pcs.Status.CliqueHashes != nil {
		t.Errorf("a new set has hashes %v", pcs.Status.CliqueHashes)
	}
	pcs = mkPodCliqueSet(storedHashes, tooBig)
	pcs.Spec.Template.Cliques[1].Labels = nil
	hashTemplates(pcs, mkPodCliqueSet(storedHashes, tooBig))
	if hashOf(pcs, "router") != "stored-router" || hashOf(pcs, "worker") == "stored-worker" {
		t.Errorf("a stored set has hashes %v", pcs.Status.CliqueHashes)
	}
}

// A clique that is not in the old spec is refused by validation, which comes later.
func TestHashOfAStrangerCliqueIsMadeAnew(t *testing.T) {
	add := func(pcs *grove.PodCliqueSet) {
		pcs.Spec.Template.Cliques = append(pcs.Spec.Template.Cliques, mkClique("helper", 1))
	}
	stranger := func(pcs *grove.PodCliqueSet) {
		pcs.Status.CliqueHashes = append(pcs.Status.CliqueHashes, grove.CliqueHash{Name: "helper", Hash: "stored-helper"})
	}
	old, pcs := mkPodCliqueSet(storedHashes, stranger), mkPodCliqueSet(storedHashes, stranger, add)
	hashTemplates(pcs, old)
	if got := hashOf(pcs, "helper"); got == "" || got == "stored-helper" {
		t.Errorf("the clique has hash %q", got)
	}
}
