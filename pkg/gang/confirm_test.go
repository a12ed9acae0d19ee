package gang

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

func TestMayConfirm(t *testing.T) {
	decidedFrom := training(2, inAttempt(1), breached(time.Minute, "why"))
	tests := map[string]struct {
		current *grovev1alpha1.PodClique
		want    bool
	}{
		"the same":                           {training(2, inAttempt(1), breached(time.Minute, "why")), true},
		"breached again since":               {training(2, inAttempt(1), breached(0, "other")), true},
		"not breached, but out of tries":     {training(2, inAttempt(1), failedBefore(0, 6, 0)), true},
		"not breached any more":              {training(2, inAttempt(1)), false},
		"nobody knows whether it is":         {training(2, inAttempt(1), condition(grovev1alpha1.ConditionTypeMinAvailableBreached, metav1.ConditionUnknown, "R", 0)), false},
		"in another attempt":                 {training(2, inAttempt(2), breached(0, "why")), false},
		"with another attempt before it":     {training(2, inAttempt(1), breached(0, "why"), attempt(2)), false},
		"deleted":                            {training(2, inAttempt(1), breached(0, "why"), deleted), false},
		"gone":                               {&grovev1alpha1.PodClique{}, false},
		"another one of the same name":       {training(2, inAttempt(1), breached(0, "why"), func(c *grovev1alpha1.PodClique) { c.UID = "other" }), false},
		"of an attempt before: a cache, too": {training(2, inAttempt(0), breached(0, "why")), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { expect(t, "may confirm", tc.want, MayConfirm(decidedFrom, tc.current)) })
	}
}

func TestStillBreached(t *testing.T) {
	tests := map[string]struct {
		clique *grovev1alpha1.PodClique
		pods   []Pod
		want   bool
	}{
		"a pod is not Ready":                    {inference(2, wasAvailable, breached(time.Hour, "x")), pods(podOf(0, ready), podOf(1, running)), true},
		"a pod is missing":                      {inference(2, wasAvailable, breached(time.Hour, "x")), pods(podOf(0, ready)), true},
		"a pod terminates":                      {inference(2, wasAvailable, breached(time.Hour, "x")), pods(podOf(0, ready), podOf(1, ready, terminating)), true},
		"all are Ready":                         {inference(2, wasAvailable, breached(time.Hour, "x")), podsOfAll(2, ready), false},
		"the minimum is":                        {inference(2, minAvailable(1), wasAvailable, breached(time.Hour, "x")), pods(podOf(1, ready)), false},
		"one has finished in Training":          {training(2, wasAvailable, breached(0, "x")), pods(podOf(0, ready), podOf(1, succeeded)), false},
		"one had finished and is gone":          {training(2, wasAvailable, completed("1"), breached(0, "x")), pods(podOf(0, ready)), false},
		"one has failed":                        {training(2, wasAvailable, breached(0, "x")), pods(podOf(0, ready), podOf(1, failed)), true},
		"one that had failed is Ready again":    {training(2, wasAvailable, failedBefore(1, 1, -time.Minute), breached(time.Minute, "x")), podsOfAll(2, ready, withUID("new")), false},
		"its first pods failed":                 {training(2, failedBefore(1, 1, -time.Minute), breached(time.Minute, "x")), pods(podOf(0, running), podOf(1, failed)), true},
		"its first pods come up at last":        {training(2, failedBefore(1, 1, -time.Minute), breached(time.Minute, "x")), pods(podOf(0, running), podOf(1, ready, withUID("new"))), false},
		"a pod of a later attempt: leave it be": {training(1, wasAvailable, breached(0, "x")), pods(podOf(0, ready, ofAttempt(1))), true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := tc.clique.DeepCopy()
			expect(t, "still breached", tc.want, StillBreached(tc.clique, tc.pods, now))
			expect(t, "the clique", before, tc.clique)
		})
	}
}

func TestBreachedByFailures(t *testing.T) {
	tests := map[string]struct {
		clique *grovev1alpha1.PodClique
		want   bool
	}{
		"nothing has failed":                       {training(2), false},
		"more have failed than the tolerance":      {training(3, minAvailable(2), failedBefore(0, 1, 0), failedBefore(1, 1, 0)), true},
		"as many as it holds":                      {training(3, minAvailable(2), failedBefore(0, 1, 0)), false},
		"one of them is well again":                {training(3, minAvailable(2), failedBefore(0, 1, -time.Minute), recovered(0, 0), failedBefore(1, 1, 0)), false},
		"one of them has finished":                 {training(3, minAvailable(2), completed("0"), failedBefore(0, 1, 0), failedBefore(1, 1, 0)), false},
		"one of them is above the size":            {training(2, minAvailable(1), failedBefore(1, 1, 0), failedBefore(2, 1, 0)), false},
		"one has failed too often":                 {training(3, minAvailable(1), failedBefore(0, 6, 0)), true},
		"one had, and is well again":               {training(3, minAvailable(1), failedBefore(0, 6, -time.Minute), recovered(0, 0)), false},
		"in Inference nothing fails too often":     {inference(3, minAvailable(1), failedBefore(0, 6, 0)), false},
		"a size below the minimum needs the size":  {training(1, minAvailable(3), failedBefore(0, 1, 0)), true},
		"one that is scaled to nothing needs none": {training(0, minAvailable(1), failedBefore(0, 1, 0)), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { expect(t, "breached", tc.want, BreachedByFailures(tc.clique, now)) })
	}
}

// A job that was done before its deadline has not failed, though nobody has noted it.
func TestFinishedAt(t *testing.T) {
	done := func(index int32, ago time.Duration, options ...podOption) Pod {
		return podOf(index, append([]podOption{succeeded, finished(-ago)}, options...)...)
	}
	// launcher has one pod and worker two.
	const launcher, worker = types.UID("set-0-launcher"), types.UID("set-0-worker")
	all := func(change func(map[types.UID][]Pod)) map[types.UID][]Pod {
		out := map[types.UID][]Pod{launcher: {done(0, 5*time.Minute)}, worker: {done(0, 3*time.Minute), done(1, 4*time.Minute)}}
		if change != nil {
			change(out)
		}
		return out
	}
	workerHas := func(p ...Pod) map[types.UID][]Pod { return all(func(m map[types.UID][]Pod) { m[worker] = p }) }
	since := func(offset time.Duration) cliqueOption {
		return func(c *grovev1alpha1.PodClique) {
			hasSucceeded(c)
			meta.FindStatusCondition(c.Status.Conditions, grovev1alpha1.ConditionTypeSucceeded).LastTransitionTime = at(offset)
		}
	}
	never := time.Time{}
	untimed := func(p *Pod) { p.FinishedAt = time.Time{} }
	tests := map[string]struct {
		set      *grovev1alpha1.PodCliqueSet
		existing have
		pods     map[types.UID][]Pod
		want     time.Time
	}{
		"with its last pod":                    {pair(), allOf(pair()), all(nil), now.Add(-3 * time.Minute)},
		"whatever is on record already":        {pair(), allOf(pair(), since(0)), all(nil), now.Add(-3 * time.Minute)},
		"not while one runs":                   {pair(), allOf(pair()), workerHas(done(0, time.Minute), podOf(1, running)), never},
		"not when one is gone":                 {pair(), allOf(pair()), workerHas(done(0, time.Minute)), never},
		"not when one failed":                  {pair(), allOf(pair()), workerHas(done(0, time.Minute), podOf(1, failed)), never},
		"not when one was told to stop":        {pair(), allOf(pair()), workerHas(done(0, time.Minute), done(1, time.Minute, terminating)), never},
		"not by a pod of an attempt before":    {pair(replicaAttempt(0, 1)), allOf(pair(), inAttempt(1)), all(nil), never},
		"not when a clique is missing":         {pair(), allOf(pair()).without("set-0-worker"), all(nil), never},
		"not by a clique of an attempt before": {pair(replicaAttempt(0, 1)), allOf(pair(), hasSucceeded), all(nil), never},
		"not by one whose status is":           {pair(), allOf(pair()).but("set-0-worker", hasSucceeded, attempt(1)), all(nil), never},
		"not while another replica runs":       {pair(replicas(2)), allOf(pair(replicas(2))), all(nil), never},
		"with the last of all replicas": {
			pair(replicas(2)), allOf(pair(replicas(2))), all(func(m map[types.UID][]Pod) {
				m["set-1-launcher"], m["set-1-worker"] = []Pod{done(0, time.Minute)}, []Pod{done(0, time.Hour), done(1, time.Hour)}
			}), now.Add(-time.Minute),
		},
		"when the success of a clique was noted, of which a pod is gone": {
			pair(), allOf(pair()).but("set-0-worker", since(-2*time.Minute)), workerHas(done(0, time.Hour)), now.Add(-2 * time.Minute),
		},
		"now, when it was not, and the pod that is gone was seen to finish": {
			pair(), allOf(pair()).but("set-0-worker", completed("1")), workerHas(done(0, time.Hour)), now,
		},
		"a time that the pod does not tell is no better": {
			pair(), allOf(pair()).but("set-0-worker", completed("0-1")), workerHas(done(0, time.Hour), done(1, time.Hour, untimed)), now,
		},
		"and without a record it is none": {
			pair(), allOf(pair()), workerHas(done(0, time.Hour), done(1, time.Hour, untimed)), never,
		},
		"a pod above the size does not matter": {
			pair(), allOf(pair()), workerHas(done(0, time.Hour), done(1, time.Hour), done(2, time.Second), podOf(3, running)), now.Add(-5 * time.Minute),
		},
		"copies of scaling groups count": {
			pair(group("g", 2, 1, "worker")), allOf(pair(group("g", 2, 1, "worker"))), map[types.UID][]Pod{
				launcher: {done(0, time.Hour)}, "set-0-g-0-worker": {done(0, time.Hour), done(1, time.Hour)}, "set-0-g-1-worker": {done(0, time.Hour), podOf(1, running)},
			}, never,
		},
		"to the last": {
			pair(group("g", 2, 1, "worker")), allOf(pair(group("g", 2, 1, "worker"))), map[types.UID][]Pod{
				launcher: {done(0, time.Hour)}, "set-0-g-0-worker": {done(0, time.Hour), done(1, time.Hour)}, "set-0-g-1-worker": {done(0, time.Hour), done(1, time.Second)},
			}, now.Add(-time.Second),
		},
		"a set without replicas": {pair(replicas(0)), nil, nil, never},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := setOf(tc.set, tc.existing)
			for name, clique := range s.Cliques {
				clique.UID = types.UID(name)
			}
			expect(t, "finished at", tc.want, FinishedAt(s, tc.pods, now))
		})
	}
}
