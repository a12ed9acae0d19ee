package history

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// watchLag is how long the end of a pod may take to arrive when the recording ends.
const watchLag = 2 * time.Second

// checkTerminal holds I3: Succeeded and Failed are final and have what they need, Failed
// comes after FailureTarget and when no pod is active any more, and no pod is made after.
func checkTerminal(w *world, f *Findings) {
	for _, set := range w.of(Set) {
		for i, rev := range set.revs {
			if i > 0 && isFailing(set.revs[i-1]) && !isFailing(rev) {
				f.add("I3", rev, set.revs[i-1:i], "FailureTarget of %s is taken back", set.name)
			}
		}
		end := set.first(isFinished)
		if end == nil {
			continue
		}
		checkEnd(w, f, set, end)
		checkFinality(f, set, end)
		failed := setOf(end).Status.Phase == grovev1alpha1.PodCliqueSetFailed
		for _, clique := range w.cliquesOf(set) {
			for _, pod := range clique.pods {
				checkPodAtEnd(w, f, set, pod, end, failed)
			}
		}
	}
}

// checkEnd looks at the write that ends a set.
func checkEnd(w *world, f *Findings, set *story, end *Revision) {
	status := &setOf(end).Status
	if status.CompletionTime == nil {
		f.add("I3", end, nil, "%s is %s without completionTime", set.name, status.Phase)
	}
	failed := meta.IsStatusConditionTrue(status.Conditions, grovev1alpha1.ConditionTypeFailed)
	succeeded := meta.IsStatusConditionTrue(status.Conditions, grovev1alpha1.ConditionTypeSucceeded)
	if failed != (status.Phase == grovev1alpha1.PodCliqueSetFailed) || succeeded != (status.Phase == grovev1alpha1.PodCliqueSetSucceeded) {
		f.add("I3", end, nil, "%s is %s with Failed %t and Succeeded %t", set.name, status.Phase, failed, succeeded)
	}
	if status.Phase != grovev1alpha1.PodCliqueSetFailed {
		return
	}
	before := set.before(end)
	switch {
	case before != nil && isFailing(before):
	case before == nil || w.gapBetween(Set, before.RV, end.RV):
		f.skip("I3", "revisions of %s are missing before it is Failed", set.name)
	default:
		f.add("I3", end, []*Revision{before}, "%s is Failed and FailureTarget was not recorded before", set.name)
	}
}

func checkFinality(f *Findings, set *story, end *Revision) {
	status := &setOf(end).Status
	for _, rev := range set.revs {
		if compareRevisions(rev, end) <= 0 {
			continue
		}
		now := &setOf(rev).Status
		if now.Phase != status.Phase || !now.CompletionTime.Equal(status.CompletionTime) || now.RestartCount != status.RestartCount {
			f.add("I3", rev, []*Revision{end}, "%s was %s for good, and now its phase, completionTime or restartCount is another", set.name, status.Phase)
			return
		}
	}
}

func checkPodAtEnd(w *world, f *Findings, set *story, pod *podStory, end *Revision, failed bool) {
	created := pod.revs[0]
	if w.certainlyAfter(created, end) {
		f.add("I3", created, []*Revision{end}, "pod %s is made after %s was %s", pod.name, set.name, setOf(end).Status.Phase)
		return
	}
	if !failed || !w.certainlyAfter(end, created) {
		return
	}
	ended := pod.first(hasEnded)
	active := ended == nil && w.End.Sub(end.Arrived) > watchLag
	if ended != nil && ended.Listed {
		f.skip("I3", "whether pod %s was active when %s was Failed is hidden by a gap", pod.name, set.name)
	}
	if active || ended != nil && w.certainlyAfter(ended, end) {
		f.add("I3", end, pod.revs, "%s is Failed while pod %s is still active", set.name, pod.name)
	}
}
