package podclique

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/naming"
)

func TestAGangIsForTheAttemptOfItsCliques(t *testing.T) {
	clique := &grovev1alpha1.PodClique{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job-0-b", UID: "uid"},
		Spec:       grovev1alpha1.PodCliqueSpec{Attempt: 1},
	}
	pod := func(attempt int32) []schedulerv1alpha1.NamespacedName {
		return []schedulerv1alpha1.NamespacedName{{Namespace: "ns", Name: naming.Pod(clique.Name, clique.UID, 0, attempt)}}
	}
	for name, tc := range map[string]struct {
		groups []schedulerv1alpha1.PodGangPodGroup
		want   bool
	}{
		"it names the pods of the attempt":        {[]schedulerv1alpha1.PodGangPodGroup{{Name: "job-0-a"}, {Name: "job-0-b", PodReferences: pod(1)}}, true},
		"it names those of the attempt before":    {[]schedulerv1alpha1.PodGangPodGroup{{Name: "job-0-b", PodReferences: pod(0)}}, false},
		"it knows the clique with no pods at all": {[]schedulerv1alpha1.PodGangPodGroup{{Name: "job-0-b"}}, false},
		"it does not know the clique":             {[]schedulerv1alpha1.PodGangPodGroup{{Name: "job-0-a", PodReferences: pod(1)}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isForAttempt(&schedulerv1alpha1.PodGang{Spec: schedulerv1alpha1.PodGangSpec{PodGroups: tc.groups}}, clique); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
