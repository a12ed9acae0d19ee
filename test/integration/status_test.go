package integration

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	copseclient "github.com/copse-dev/copse/pkg/generated/clientset/versioned"
	"github.com/copse-dev/copse/test/framework"
)

// scaled has a scaling group of two copies.
const scaled = `
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: llm}
spec:
  replicas: 1
  template:
    cliques:
      - name: worker
        spec:
          replicas: 2
          podSpec:
            containers: [{name: main, image: example.com/server}]
    podCliqueScalingGroups:
      - {name: decode, cliqueNames: [worker], replicas: 2, minAvailable: 1}
`

// asController is a client with the identity and the permissions of the controller
// manager: the rules hold against it as well.
func asController(t *testing.T) copseclient.Interface {
	t.Helper()
	config := rest.CopyConfig(cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + systemNamespace + ":copse-controller-manager",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + systemNamespace, "system:authenticated"},
	}
	client, err := copseclient.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// endpoint is what a move of a status needs of a typed client.
type endpoint[T any] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*T, error)
	UpdateStatus(ctx context.Context, object *T, options metav1.UpdateOptions) (*T, error)
}

// tryMove changes the status of an object as it is now, as a dry run: the test moves nothing.
func tryMove[T any](t *testing.T, client endpoint[T], name string, move func(*T)) error {
	t.Helper()
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		object, err := client.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		move(object)
		_, err = client.UpdateStatus(t.Context(), object, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
}

// move is a move of a status; want is part of the refusal, and empty for what may happen.
type move[T any] struct {
	change func(*T)
	want   string
}

func testMoves[T any](t *testing.T, client endpoint[T], name string, moves map[string]move[T]) {
	t.Helper()
	for title, m := range moves {
		t.Run(title, func(t *testing.T) {
			err := tryMove(t, client, name, m.change)
			switch {
			case m.want == "" && err != nil:
				t.Errorf("what may happen is refused: %v", err)
			case m.want != "" && !apierrors.IsInvalid(err):
				t.Errorf("got %v, want a refusal with status 422", err)
			case m.want != "" && !strings.Contains(err.Error(), m.want):
				t.Errorf("the refusal does not say %q: %v", m.want, err)
			}
		})
	}
}

func set(conditions *[]metav1.Condition, conditionType, reason string) {
	meta.SetStatusCondition(conditions, metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: reason})
}

// S9: what cannot have happened cannot be written, also with the rights of the controllers.
func TestNoControllerMovesTheStatusOfASetWhereItCannotGo(t *testing.T) {
	ns := cluster.Namespace(t)
	ns.Apply(training)
	long := replaceOnce(t, replaceOnce(t, training, "name: job", "name: long"), "exit-after: 2s", "exit-after: 1h")
	ns.Apply(replaceOnce(t, long, "workloadType: Training", "workloadType: Training\n  trainingSpec: {maxRestarts: 1}"))
	ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetSucceeded, 90*time.Second)
	ns.WaitForPhase("long", grovev1alpha1.PodCliqueSetRunning, 90*time.Second)
	sets := asController(t).GroveV1alpha1().PodCliqueSets(ns.Name)
	type workload = grovev1alpha1.PodCliqueSet
	now := ptr.To(metav1.Now())
	restart := func(pcs *workload, attempt, count int32) {
		pcs.Status.ReplicaStatuses = []grovev1alpha1.PodCliqueSetReplicaStatus{{Index: 0, Attempt: attempt}}
		pcs.Status.RestartCount = count
	}
	fail := func(pcs *workload) {
		set(&pcs.Status.Conditions, grovev1alpha1.ConditionTypeFailureTarget, grovev1alpha1.ReasonMaxRestartsExceeded)
	}

	testMoves(t, sets, "long", map[string]move[workload]{
		"a restart":          {func(pcs *workload) { restart(pcs, 1, 1) }, ""},
		"a decision to fail": {fail, ""},
		"no phase":           {func(pcs *workload) { pcs.Status.Phase = "" }, "never emptied"},
		"an end without FailureTarget": {func(pcs *workload) {
			fail(pcs)
			set(&pcs.Status.Conditions, grovev1alpha1.ConditionTypeFailed, grovev1alpha1.ReasonMaxRestartsExceeded)
			pcs.Status.Phase, pcs.Status.CompletionTime = grovev1alpha1.PodCliqueSetFailed, now
		}, "recorded by an earlier write"},
		"success without success": {func(pcs *workload) {
			set(&pcs.Status.Conditions, grovev1alpha1.ConditionTypeSucceeded, grovev1alpha1.ReasonAllReplicasSucceeded)
			pcs.Status.Phase, pcs.Status.CompletionTime = grovev1alpha1.PodCliqueSetSucceeded, now
		}, "must be spec.replicas, 1"},
		"a completionTime":          {func(pcs *workload) { pcs.Status.CompletionTime = now }, "needs phase Succeeded or Failed"},
		"another startTime":         {func(pcs *workload) { pcs.Status.StartTime = ptr.To(metav1.NewTime(now.Add(time.Hour))) }, "is written once"},
		"no startTime":              {func(pcs *workload) { pcs.Status.StartTime = nil }, "is written once"},
		"two attempts at once":      {func(pcs *workload) { restart(pcs, 2, 2) }, "at most 1 in one write"},
		"an attempt without count":  {func(pcs *workload) { restart(pcs, 1, 0) }, "rises by 0 while"},
		"a count without attempt":   {func(pcs *workload) { pcs.Status.RestartCount = 1 }, "rises by 1 while"},
		"a restart with the end":    {func(pcs *workload) { restart(pcs, 1, 1); fail(pcs) }, "no replica restarts"},
		"more replicas than exist":  {func(pcs *workload) { pcs.Status.AvailableReplicas = 9 }, "must not be greater than replicas"},
		"more pods than are wanted": {func(pcs *workload) { pcs.Status.AvailablePods = 9 }, "must not be greater than pods"},
	})
	testMoves(t, sets, "job", map[string]move[workload]{
		"its counters":   {func(pcs *workload) { pcs.Status.SucceededReplicas = 0 }, ""},
		"back to life":   {func(pcs *workload) { pcs.Status.Phase = grovev1alpha1.PodCliqueSetRunning }, "Succeeded is final"},
		"to failure":     {fail, "contradicts"},
		"a restart":      {func(pcs *workload) { restart(pcs, 1, 1) }, "no replica restarts in phase Succeeded"},
		"no conditions":  {func(pcs *workload) { pcs.Status.Conditions = nil }, "go together"},
		"another end":    {func(pcs *workload) { pcs.Status.CompletionTime = ptr.To(metav1.NewTime(now.Add(time.Hour))) }, "is written once"},
		"transitions go": {func(pcs *workload) { pcs.Status.Conditions[0].LastTransitionTime = metav1.Unix(1, 0) }, "must not go back"},
	})
}

// S9, of what has been recorded already: a controller that lost its lease and does not
// know it writes what was true before.
func TestAFormerControllerCannotUndoARestart(t *testing.T) {
	ns := cluster.Namespace(t)
	long := replaceOnce(t, training, "exit-after: 2s", "exit-after: 1h")
	ns.Apply(replaceOnce(t, long, "workloadType: Training", "workloadType: Training\n  trainingSpec: {maxRestarts: 3}"))
	ns.WaitForPods(2, 90*time.Second, framework.IsReady)
	ns.Kubectl("annotate", "pods", "--all", "--overwrite", "kwok.copse.dev/exit-after=0s", "kwok.copse.dev/exit-code=1")
	ns.WaitFor("pcs/job", "jsonpath={.status.restartCount}=1")
	ns.WaitFor("pclq/job-0-worker", "jsonpath={.status.createdAttempt}=1")
	ns.WaitFor("pg/job-0", "jsonpath={.status.observedAttempt}=1")
	client := asController(t)

	type workload = grovev1alpha1.PodCliqueSet
	testMoves(t, client.GroveV1alpha1().PodCliqueSets(ns.Name), "job", map[string]move[workload]{
		"what is recorded":     {func(*workload) {}, ""},
		"a lower count":        {func(pcs *workload) { pcs.Status.RestartCount = 0 }, "status.restartCount"},
		"an earlier attempt":   {func(pcs *workload) { pcs.Status.ReplicaStatuses[0].Attempt = 0 }, "must not fall, it is 1"},
		"no word of a replica": {func(pcs *workload) { pcs.Status.ReplicaStatuses = nil }, "status.replicaStatuses"},
		"the state of before": {func(pcs *workload) {
			pcs.Status.RestartCount, pcs.Status.ReplicaStatuses[0].Attempt = 0, 0
		}, "must not fall, it is 1"},
		"another start": {func(pcs *workload) { pcs.Status.StartTime = nil }, "is written once"},
	})
	type clique = grovev1alpha1.PodClique
	testMoves(t, client.GroveV1alpha1().PodCliques(ns.Name), "job-0-worker", map[string]move[clique]{
		"what is recorded":   {func(*clique) {}, ""},
		"an earlier attempt": {func(c *clique) { c.Status.ObservedAttempt = 0 }, "must not fall, it is 1"},
		"earlier pods":       {func(c *clique) { c.Status.CreatedAttempt = ptr.To[int32](0) }, "status.createdAttempt"},
	})
	type gang = schedulerv1alpha1.PodGang
	testMoves(t, client.SchedulerV1alpha1().PodGangs(ns.Name), "job-0", map[string]move[gang]{
		"what is recorded":   {func(*gang) {}, ""},
		"an earlier attempt": {func(g *gang) { g.Status.ObservedAttempt = 0 }, "must not fall, it is 1"},
	})
	// The attempt of a PodClique is in its spec, and its controller's to raise alone.
	_, err := client.GroveV1alpha1().PodCliques(ns.Name).Patch(t.Context(), "job-0-worker", types.MergePatchType, []byte(`{"spec":{"attempt":0}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.attempt") {
		t.Errorf("an earlier attempt in the spec is answered with %v", err)
	}
}

func TestNoControllerMovesTheStatusOfAChildWhereItCannotGo(t *testing.T) {
	ns := cluster.Namespace(t)
	ns.Apply(training)
	ns.Apply(scaled)
	ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetSucceeded, 90*time.Second)
	ns.WaitFor("pclq/llm-0-decode-0-worker", "jsonpath={.status.wasAvailable}=true")
	ns.WaitFor("pcsg/llm-0-decode", "jsonpath={.status.availableReplicas}=2")
	ns.WaitFor("pg/llm-0", "condition=Scheduled")
	client := asController(t)
	cliques, groups := client.GroveV1alpha1().PodCliques(ns.Name), client.GroveV1alpha1().PodCliqueScalingGroups(ns.Name)
	type clique = grovev1alpha1.PodClique
	type group = grovev1alpha1.PodCliqueScalingGroup
	type gang = schedulerv1alpha1.PodGang

	testMoves(t, cliques, "job-0-worker", map[string]move[clique]{
		"old pods":                 {func(c *clique) { c.Status.OldReplicas = 1 }, ""},
		"fewer old pods than none": {func(c *clique) { c.Status.OldReplicas = -1 }, "must be 0 or more"},
		"completed indexes go":     {func(c *clique) { c.Status.CompletedIndexes = "0" }, "only grow within an attempt"},
		"an index too many":        {func(c *clique) { c.Status.CompletedIndexes = "0-2" }, "does not reach"},
		"it was not available":     {func(c *clique) { c.Status.WasAvailable = false }, "stays true"},
		"it has not succeeded": {func(c *clique) {
			meta.RemoveStatusCondition(&c.Status.Conditions, grovev1alpha1.ConditionTypeSucceeded)
		}, "stays True within an attempt"},
		"an attempt that nobody asked for": {func(c *clique) { c.Status.ObservedAttempt = 1 }, "spec.attempt, 0"},
		"an attempt with what was before":  {func(c *clique) { c.Status.ObservedAttempt = 1 }, "must be empty in the write that starts attempt 1"},
		"an attempt that was not begun":    {func(c *clique) { c.Status.CreatedAttempt = ptr.To[int32](1) }, "observedAttempt, 0"},
		"its pods were not made":           {func(c *clique) { c.Status.CreatedAttempt = nil }, "does not go back"},
		"more pods than exist":             {func(c *clique) { c.Status.ReadyReplicas = 9 }, "must not be greater than replicas"},
	})
	testMoves(t, cliques, "llm-0-decode-0-worker", map[string]move[clique]{
		"a breach": {func(c *clique) {
			set(&c.Status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached, grovev1alpha1.ReasonInsufficientReadyPods)
		}, ""},
		"success in Inference": {func(c *clique) {
			set(&c.Status.Conditions, grovev1alpha1.ConditionTypeSucceeded, grovev1alpha1.ReasonAllPodsSucceeded)
		}, "an inference clique does not succeed"},
	})
	recycle := func(attempt, setAttempt int32) func(*group) {
		return func(g *group) {
			g.Status.ReplicaAttempts = []grovev1alpha1.ScalingGroupReplicaAttempt{{Index: 1, Attempt: attempt, SetAttempt: setAttempt}}
		}
	}
	testMoves(t, groups, "llm-0-decode", map[string]move[group]{
		"a copy is recycled":            {recycle(1, 0), ""},
		"a copy is recycled twice":      {recycle(2, 0), "at most 1 in one write"},
		"a copy of a later attempt":     {recycle(1, 1), "observedAttempt, 0"},
		"a later attempt, not the copy": {recycle(0, 1), "rises only with attempt"},
		"more copies than exist":        {func(g *group) { g.Status.ScheduledReplicas = 9 }, "must not be greater than replicas"},
	})
	testMoves(t, client.SchedulerV1alpha1().PodGangs(ns.Name), "llm-0", map[string]move[gang]{
		"a new attempt":        {func(g *gang) { g.Status.ObservedAttempt, g.Status.Conditions = 1, nil }, ""},
		"it was not scheduled": {func(g *gang) { g.Status.Conditions = nil }, "stays True within an attempt"},
		"an earlier attempt":   {func(g *gang) { g.Status.ObservedAttempt = -1 }, "must not fall"},
	})
}
