package gang

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

func TestWhatAnUpdateWaitsFor(t *testing.T) {
	ofReplica := func(o *metav1.ObjectMeta, name, replica string) {
		o.Name, o.Labels = name, map[string]string{labels.ReplicaIndex: replica}
	}
	clique := func(name, replica string, options ...cliqueOption) *grovev1alpha1.PodClique {
		c := inference(3, append([]cliqueOption{madeFrom("new")}, options...)...)
		c.Status.UpdatedReplicas, c.Status.ReadyReplicas = 1, 2
		labelled := c.Labels[labels.PodTemplateHash]
		ofReplica(&c.ObjectMeta, name, replica)
		c.Labels[labels.PodTemplateHash] = labelled
		return c
	}
	group := func(name, replica string, available int32, updating bool) *grovev1alpha1.PodCliqueScalingGroup {
		g := &grovev1alpha1.PodCliqueScalingGroup{Spec: grovev1alpha1.PodCliqueScalingGroupSpec{Replicas: 4}}
		ofReplica(&g.ObjectMeta, name, replica)
		g.Status.AvailableReplicas = available
		if updating {
			g.Status.UpdateProgress = &grovev1alpha1.PodCliqueScalingGroupUpdateProgress{}
		}
		return g
	}
	inCourse := updating("new", 3, -time.Minute)
	tests := map[string]struct {
		cliques []*grovev1alpha1.PodClique
		groups  []*grovev1alpha1.PodCliqueScalingGroup
		most    int32
		want    string
	}{
		"nothing":                    {[]*grovev1alpha1.PodClique{clique("llm-0-a", "0")}, []*grovev1alpha1.PodCliqueScalingGroup{group("llm-0-g", "0", 4, true)}, 1, ""},
		"a clique":                   {[]*grovev1alpha1.PodClique{clique("llm-0-a", "0", inCourse)}, nil, 1, ": llm-0-a has 1 of 3 pods of the new template, 2 Ready"},
		"a clique of another":        {[]*grovev1alpha1.PodClique{clique("llm-1-a", "1", inCourse)}, nil, 1, ""},
		"a clique before a group":    {[]*grovev1alpha1.PodClique{clique("llm-0-z", "0", inCourse)}, []*grovev1alpha1.PodCliqueScalingGroup{group("llm-0-g", "0", 3, true)}, 1, ": llm-0-z has 1 of 3 pods of the new template, 2 Ready"},
		"copies that lack room":      {nil, []*grovev1alpha1.PodCliqueScalingGroup{group("llm-0-g", "0", 3, true)}, 1, ": llm-0-g has 3 of 4 copies available, and 1 may be away"},
		"copies of another":          {nil, []*grovev1alpha1.PodCliqueScalingGroup{group("llm-1-g", "1", 3, true)}, 1, ""},
		"a group that is up to date": {nil, []*grovev1alpha1.PodCliqueScalingGroup{group("llm-0-g", "0", 3, false)}, 1, ""},
		"one more may be away":       {nil, []*grovev1alpha1.PodCliqueScalingGroup{group("llm-0-g", "0", 3, true)}, 2, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := SetSnapshot{
				Set:     &grovev1alpha1.PodCliqueSet{Spec: grovev1alpha1.PodCliqueSetSpec{UpdateStrategy: &grovev1alpha1.PodCliqueSetUpdateStrategy{MaxUnavailable: &tc.most}}},
				Cliques: map[string]*grovev1alpha1.PodClique{}, Groups: map[string]*grovev1alpha1.PodCliqueScalingGroup{},
			}
			for _, c := range tc.cliques {
				s.Cliques[c.Name] = c
			}
			for _, g := range tc.groups {
				s.Groups[g.Name] = g
			}
			if got := whatBlocks(s, 0); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
