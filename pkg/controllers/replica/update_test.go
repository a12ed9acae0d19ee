package replica

import (
	"slices"
	"testing"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

// changed is a set whose templates and priority class have changed.
func changed(pcs *grovev1alpha1.PodCliqueSet) {
	for i := range pcs.Spec.Template.Cliques {
		pcs.Spec.Template.Cliques[i].Labels = map[string]string{"team": "blue"}
		pcs.Status.CliqueHashes[i].Hash = "new"
	}
	pcs.Spec.Template.PriorityClassName = "low"
	pcs.Status.CurrentGenerationHash = ptr.To("new")
}

// turnOf is the turn of a replica in the update to the newest template.
func turnOf(replica int32) setOption {
	return func(pcs *grovev1alpha1.PodCliqueSet) {
		pcs.Status.UpdateProgress = &grovev1alpha1.PodCliqueSetUpdateProgress{
			PodCliqueSetGenerationHash: "new", CurrentlyUpdating: []grovev1alpha1.PodCliqueSetReplicaUpdateProgress{{ReplicaIndex: replica}},
		}
	}
}

func onDelete(pcs *grovev1alpha1.PodCliqueSet) {
	pcs.Spec.UpdateStrategy = &grovev1alpha1.PodCliqueSetUpdateStrategy{Type: grovev1alpha1.UpdateStrategyOnDelete}
}

// The template comes to each clique in its turn, and nothing but it.
func TestWhichCliquesTakeANewTemplate(t *testing.T) {
	copyInTurn := func(hash string, copies ...int32) func(observed) {
		return func(have observed) {
			have.groups["llm-1-decode"].Status.UpdateProgress = &grovev1alpha1.PodCliqueScalingGroupUpdateProgress{
				PodCliqueSetGenerationHash: hash, ReadyReplicaIndicesSelectedToUpdate: &grovev1alpha1.ReplicaIndicesSelectedToUpdate{Updating: copies},
			}
		}
	}
	const router, first, second = "llm-1-router", "llm-1-decode-0-worker", "llm-1-decode-1-worker"
	tests := map[string]struct {
		set     []setOption
		prepare func(observed)
		want    []string
	}{
		"none before its turn":                   {[]setOption{changed}, nil, nil},
		"none in the turn of another replica":    {[]setOption{changed, turnOf(0)}, nil, nil},
		"standalone ones in the replica's":       {[]setOption{changed, turnOf(1)}, nil, []string{router}},
		"members in their copy's":                {[]setOption{changed, turnOf(1)}, copyInTurn("new", 1), []string{second, router}},
		"no member in that of another template":  {[]setOption{changed, turnOf(1)}, copyInTurn("old", 1), []string{router}},
		"all at once with OnDelete":              {[]setOption{changed, onDelete}, nil, []string{first, second, router}},
		"all when the replica is made anew":      {[]setOption{changed, turnOf(1), attemptOf(1, 1)}, nil, []string{first, second, router}},
		"none when a failure makes another anew": {[]setOption{changed, turnOf(0), attemptOf(1, 1)}, nil, nil},
		"none when nothing has changed":          {[]setOption{turnOf(1)}, copyInTurn("new", 0, 1), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			have := allOf(t, newSet(), 1)
			have.cliques[router].Spec.Replicas = 5
			if tc.prepare != nil {
				tc.prepare(have)
			}
			var got []string
			for _, obj := range planReplica(newSet(tc.set...), 1, have).update {
				clique, ok := obj.(*grovev1alpha1.PodClique)
				if !ok || clique.Labels[labels.PodTemplateHash] != "new" {
					continue
				}
				got = append(got, clique.Name)
				expect(t, "labels of the template", "blue", clique.Labels["team"])
				expect(t, "generation", "new", clique.Annotations[labels.GenerationHash])
				if clique.Name == router {
					expect(t, "size, which was scaled", int32(5), clique.Spec.Replicas)
				}
			}
			slices.Sort(got)
			expect(t, "cliques", tc.want, got)
		})
	}
}

// Members have their gang's class, which the scheduler does not change (D23).
func TestAGangKeepsItsPriorityClassForTheAttempt(t *testing.T) {
	tests := map[string]struct {
		set  []setOption
		want string
	}{
		"in its attempt":                        {[]setOption{changed, turnOf(1)}, "high"},
		"with OnDelete":                         {[]setOption{changed, onDelete}, "high"},
		"in the next that the update begins":    {[]setOption{changed, turnOf(1), attemptOf(1, 1)}, "low"},
		"in the next that a failure begins":     {[]setOption{changed, turnOf(0), attemptOf(1, 1)}, "high"},
		"in the next that begins with OnDelete": {[]setOption{changed, onDelete, attemptOf(1, 1)}, "low"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			have := allOf(t, newSet(), 1)
			podGang := have.gangs["llm-1"]
			if i := slices.IndexFunc(planReplica(newSet(tc.set...), 1, have).update, func(obj client.Object) bool {
				_, is := obj.(*schedulerv1alpha1.PodGang)
				return is && obj.GetName() == "llm-1"
			}); i >= 0 {
				podGang = planReplica(newSet(tc.set...), 1, have).update[i].(*schedulerv1alpha1.PodGang)
			}
			expect(t, "class", tc.want, podGang.Spec.PriorityClassName)
		})
	}
}

// A gang takes the class with its cliques' template, whoever has the turn by then: a stage may
// open, or the write of the gang be tried again, when the turn of its replica is over.
func TestAGangThatComesLateHasThePriorityClassOfItsCliques(t *testing.T) {
	tests := map[string]struct {
		set     []setOption
		prepare func(observed)
		want    string
	}{
		"its cliques have taken the template": {[]setOption{changed, turnOf(0), attemptOf(1, 1)}, func(have observed) {
			for _, clique := range have.cliques {
				clique.Labels[labels.PodTemplateHash], clique.Spec.Attempt = "new", 1
			}
		}, "low"},
		"one of them has not": {[]setOption{changed, turnOf(0), attemptOf(1, 1)}, func(have observed) {
			for _, clique := range have.cliques {
				clique.Spec.Attempt = 1
			}
			have.cliques["llm-1-router"].Labels[labels.PodTemplateHash] = "new"
		}, "high"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			have := allOf(t, newSet(), 1)
			tc.prepare(have)
			var got string
			for _, obj := range planReplica(newSet(tc.set...), 1, have).update {
				if podGang, is := obj.(*schedulerv1alpha1.PodGang); is && podGang.Name == "llm-1" {
					got = podGang.Spec.PriorityClassName
				}
			}
			expect(t, "class", tc.want, got)
		})
	}
}
