package storageguard

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func pod(change func(*metav1.ObjectMeta)) *metav1.ObjectMeta {
	meta := &metav1.ObjectMeta{
		Namespace: "team", Name: "job-0-worker-0", CreationTimestamp: metav1.NewTime(time.Unix(1000, 0)),
		Labels:          map[string]string{"grove.io/restart-attempt": "2"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "grove.io/v1alpha1", Kind: "PodClique", Name: "job-0-worker", UID: "clique"}},
	}
	change(meta)
	return meta
}

func TestWhichPodsContradictEtcd(t *testing.T) {
	tests := map[string]struct {
		pod  *metav1.ObjectMeta
		have Attempts
		want string
	}{
		"its clique exists":            {pod(func(*metav1.ObjectMeta) {}), Attempts{"clique": 2}, ""},
		"its clique has gone on":       {pod(func(*metav1.ObjectMeta) {}), Attempts{"clique": 3}, ""},
		"its clique is lost":           {pod(func(*metav1.ObjectMeta) {}), Attempts{"other": 2}, "whose owner, PodClique job-0-worker with UID clique, does not exist"},
		"its attempt is lost":          {pod(func(*metav1.ObjectMeta) {}), Attempts{"clique": 1}, "of attempt 2 of PodClique job-0-worker, which is in attempt 1"},
		"it goes, its clique is lost":  {pod(func(m *metav1.ObjectMeta) { m.DeletionTimestamp = &metav1.Time{} }), Attempts{}, ""},
		"it goes, its attempt is lost": {pod(func(m *metav1.ObjectMeta) { m.DeletionTimestamp = &metav1.Time{} }), Attempts{"clique": 1}, "of attempt 2 of PodClique job-0-worker, which is in attempt 1"},
		"its attempt is not told":      {pod(func(m *metav1.ObjectMeta) { m.Labels = nil }), Attempts{"clique": 0}, ""},
		"Grove's, of another version": {
			pod(func(m *metav1.ObjectMeta) { m.OwnerReferences[0].APIVersion = "grove.io/v1" }), Attempts{},
			"whose owner, PodClique job-0-worker with UID clique, does not exist",
		},
		"of the scheduler's group": {
			pod(func(m *metav1.ObjectMeta) {
				m.OwnerReferences[0] = metav1.OwnerReference{APIVersion: "scheduler.grove.io/v1alpha1", Kind: "PodGang", Name: "job-0", UID: "gang"}
			}), Attempts{}, "whose owner, PodGang job-0 with UID gang, does not exist",
		},
		"of two owners, one is lost": {
			pod(func(m *metav1.ObjectMeta) {
				m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{APIVersion: "grove.io/v1alpha1", Kind: "PodCliqueSet", Name: "job", UID: "set"})
			}), Attempts{"clique": 2}, "whose owner, PodCliqueSet job with UID set, does not exist",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d, ok := dependentOf(tc.pod)
			if !ok {
				t.Fatal("the pod is not looked at")
			}
			var want []Finding
			if tc.want != "" {
				want = []Finding{{Pod: "team/job-0-worker-0", Created: time.Unix(1000, 0), Problem: tc.want}}
			}
			if diff := cmp.Diff(want, findings([]dependent{d}, tc.have), cmpopts.EquateApproxTime(0)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPodsOfOthersAreNotLookedAt(t *testing.T) {
	for name, owners := range map[string][]metav1.OwnerReference{
		"none":                  nil,
		"a Job":                 {{APIVersion: "batch/v1", Kind: "Job", UID: types.UID("job")}},
		"a group that ends so":  {{APIVersion: "notgrove.io/v1", Kind: "PodClique", UID: types.UID("x")}},
		"a group within ours":   {{APIVersion: "other.grove.io/v1", Kind: "PodClique", UID: types.UID("x")}},
		"no version to ask for": {{APIVersion: "a/b/c", Kind: "PodClique", UID: types.UID("x")}},
	} {
		if _, ok := dependentOf(&metav1.ObjectMeta{OwnerReferences: owners}); ok {
			t.Errorf("%s: looked at", name)
		}
	}
}

func TestDefinitionsOfOurGroups(t *testing.T) {
	got := definitionsOf([]string{"podcliquesets.grove.io", "podgangs.scheduler.grove.io", "jobs.batch.example.com", "grove.io", "things.other.grove.io"})
	if diff := cmp.Diff([]string{"podcliquesets.grove.io", "podgangs.scheduler.grove.io"}, got); diff != "" {
		t.Error(diff)
	}
}
