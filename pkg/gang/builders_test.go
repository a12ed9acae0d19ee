package gang

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

// now is when every decision of the tests is made; a whole second, as times in objects are.
var now = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// at is a time of an object, relative to now.
func at(offset time.Duration) metav1.Time {
	return metav1.NewTime(now.Add(offset))
}

// expect compares, and says what differs.
func expect(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

type cliqueOption func(*grovev1alpha1.PodClique)

// newClique is a clique of attempt 0 of which all pods have been made, so that a pass
// finds nothing to record unless an option gives it something.
func newClique(workload grovev1alpha1.WorkloadType, replicas int32, options ...cliqueOption) *grovev1alpha1.PodClique {
	clique := &grovev1alpha1.PodClique{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set-0-worker", UID: "clique", Generation: 3, Labels: map[string]string{labels.PodTemplateHash: "hash"}},
		Spec:       grovev1alpha1.PodCliqueSpec{WorkloadType: workload, Replicas: replicas, MinAvailable: ptr.To(replicas)},
		Status: grovev1alpha1.PodCliqueStatus{
			ObservedGeneration: ptr.To[int64](3), CurrentPodTemplateHash: ptr.To("hash"), CurrentPodCliqueSetGenerationHash: ptr.To("generation"),
		},
	}
	created(replicas)(clique)
	for _, option := range options {
		option(clique)
	}
	return clique
}

func training(replicas int32, options ...cliqueOption) *grovev1alpha1.PodClique {
	return newClique(grovev1alpha1.WorkloadTypeTraining, replicas, options...)
}

func inference(replicas int32, options ...cliqueOption) *grovev1alpha1.PodClique {
	return newClique(grovev1alpha1.WorkloadTypeInference, replicas, options...)
}

func minAvailable(n int32) cliqueOption {
	return func(c *grovev1alpha1.PodClique) { c.Spec.MinAvailable = ptr.To(n) }
}

// attempt makes the clique want an attempt of which its status knows nothing yet.
func attempt(n int32) cliqueOption {
	return func(c *grovev1alpha1.PodClique) { c.Spec.Attempt = n }
}

// inAttempt makes the clique be in an attempt of which all pods have been made.
func inAttempt(n int32) cliqueOption {
	return func(c *grovev1alpha1.PodClique) {
		c.Spec.Attempt, c.Status.ObservedAttempt, c.Status.CreatedAttempt = n, n, ptr.To(n)
	}
}

func created(replicas int32) cliqueOption {
	return func(c *grovev1alpha1.PodClique) {
		c.Status.CreatedAttempt, c.Status.CreatedReplicas = ptr.To(c.Spec.Attempt), replicas
	}
}

func notCreated(c *grovev1alpha1.PodClique) {
	c.Status.CreatedAttempt, c.Status.CreatedReplicas = nil, 0
}

func wasAvailable(c *grovev1alpha1.PodClique) { c.Status.WasAvailable = true }

func deleted(c *grovev1alpha1.PodClique) { c.DeletionTimestamp = ptr.To(at(-time.Second)) }

func completed(indexes string) cliqueOption {
	return func(c *grovev1alpha1.PodClique) { c.Status.CompletedIndexes = indexes }
}

// failedBefore puts a failure of an index on record, of the pod that podOf makes.
func failedBefore(index, count int32, offset time.Duration) cliqueOption {
	return func(c *grovev1alpha1.PodClique) {
		c.Status.FailedIndexes = append(c.Status.FailedIndexes, grovev1alpha1.FailedIndex{
			Index: index, Count: count, LastTime: at(offset), PodUID: uidOf(index), Message: "before",
		})
	}
}

// recovered puts on record when an index that failed was well again.
func recovered(index int32, offset time.Duration) cliqueOption {
	return func(c *grovev1alpha1.PodClique) { failureOf(&c.Status, index).RecoveredTime = ptr.To(at(offset)) }
}

// breached is a clique below its minimum, for a while.
func breached(lasted time.Duration, message string) cliqueOption {
	return func(c *grovev1alpha1.PodClique) {
		meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{
			Type: grovev1alpha1.ConditionTypeMinAvailableBreached, Status: metav1.ConditionTrue, Reason: grovev1alpha1.ReasonInsufficientReadyPods,
			Message: message, LastTransitionTime: at(-lasted),
		})
	}
}

func condition(conditionType string, status metav1.ConditionStatus, reason string, offset time.Duration) cliqueOption {
	return func(c *grovev1alpha1.PodClique) {
		meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{
			Type: conditionType, Status: status, Reason: reason, LastTransitionTime: at(offset),
		})
	}
}

func uidOf(index int32) types.UID { return types.UID(fmt.Sprintf("uid-%d", index)) }

type podOption func(*Pod)

// podOf is a pending pod of an index in attempt 0.
func podOf(index int32, options ...podOption) Pod {
	pod := Pod{
		Name: fmt.Sprintf("pod-%d", index), UID: uidOf(index), Index: index, TemplateHash: "hash", Phase: corev1.PodPending,
	}
	for _, option := range options {
		option(&pod)
	}
	return pod
}

// podsOfAll are pods of the indexes 0 to n-1.
func podsOfAll(n int32, options ...podOption) []Pod {
	var pods []Pod
	for index := range n {
		pods = append(pods, podOf(index, options...))
	}
	return pods
}

func scheduled(p *Pod) { p.Scheduled = true }

func running(p *Pod) { p.Scheduled, p.Started, p.Phase = true, true, corev1.PodRunning }

func ready(p *Pod) {
	running(p)
	p.Ready = true
}

// succeeded is a pod that exited with 0 a minute ago.
func succeeded(p *Pod) {
	running(p)
	p.Phase, p.FinishedAt = corev1.PodSucceeded, now.Add(-time.Minute)
}

// failed is a pod that exited with 1 a minute ago.
func failed(p *Pod) {
	running(p)
	p.Phase, p.FinishedAt, p.Failure = corev1.PodFailed, now.Add(-time.Minute), "failed (exit code 1)"
}

// failing is a pod that exited with 1, and that the phase does not tell of yet.
func failing(p *Pod) {
	running(p)
	p.Failing, p.Failure = true, "failed (exit code 1)"
}

// crashLooping is a pod whose container failed and waits for its next start.
func crashLooping(p *Pod) {
	running(p)
	p.CrashLooping, p.Failure = true, "fails again and again (exit code 1)"
}

func gated(p *Pod) { p.Gated = true }

// terminating is a pod whose deletion was asked for two minutes ago, before any of the
// pods above finished.
func terminating(p *Pod) { p.DeletionRequested = ptr.To(now.Add(-2 * time.Minute)) }

func ofAttempt(n int32) podOption { return func(p *Pod) { p.Attempt = n } }

// stray is a copy of a pod, or one whose labels were changed.
func stray(p *Pod) { p.Stray, p.Name, p.UID, p.Index, p.Attempt = true, "debug", "copy", 0, 0 }

func withUID(uid types.UID) podOption { return func(p *Pod) { p.UID = uid } }

func fromTemplate(hash string) podOption { return func(p *Pod) { p.TemplateHash = hash } }

func finished(offset time.Duration) podOption {
	return func(p *Pod) { p.FinishedAt = now.Add(offset) }
}

func pods(all ...Pod) []Pod { return all }

// free lets a clique make all its pods.
var free = Membership{Known: true, Scheduled: true, BaseScheduled: true}

// snapshotOf is a snapshot in which nothing keeps a clique from making its pods.
func snapshotOf(clique *grovev1alpha1.PodClique, all []Pod) CliqueSnapshot {
	snapshot := CliqueSnapshot{Clique: clique, Parent: ParentActive, Membership: free, Turn: CliqueTurn{PodTemplateHash: "hash", GenerationHash: "generation"}, Pods: all, OthersDrained: true}
	if isTraining(clique) {
		snapshot.TerminationDelay = new(time.Duration)
	}
	return snapshot
}

// actions are what a decision does.
type actions struct {
	Record bool
	Create []int32
	// Delete are UIDs, in order.
	Delete []types.UID
	Next   time.Duration
}

func actionsOf(d CliqueDecision) actions {
	out := actions{Record: d.Record, Create: d.Create}
	for _, pod := range d.Delete {
		out.Delete = append(out.Delete, pod.UID)
	}
	slices.Sort(out.Delete)
	if !d.Next.IsZero() {
		out.Next = d.Next.Sub(now)
	}
	return out
}

// summary is a condition without what most tests do not care about.
type summary struct {
	Status metav1.ConditionStatus
	Reason string
}

func conditionOf(conditions []metav1.Condition, conditionType string) summary {
	c := meta.FindStatusCondition(conditions, conditionType)
	if c == nil {
		return summary{}
	}
	return summary{c.Status, c.Reason}
}

func isTrue(reason string) summary  { return summary{metav1.ConditionTrue, reason} }
func isFalse(reason string) summary { return summary{metav1.ConditionFalse, reason} }

// failuresOf writes failed indexes as "index×count uid message".
func failuresOf(status grovev1alpha1.PodCliqueStatus) string {
	var out []string
	for _, f := range status.FailedIndexes {
		out = append(out, fmt.Sprintf("%d×%d %s %s", f.Index, f.Count, f.PodUID, f.Message))
	}
	return strings.Join(out, "; ")
}

// recycledCopy records the recycling of a copy of a scaling group.
func recycledCopy(status *grovev1alpha1.PodCliqueScalingGroupStatus, index, attempt, setAttempt int32) {
	setCopyAttempt(status, grovev1alpha1.ScalingGroupReplicaAttempt{Index: index, Attempt: attempt, SetAttempt: setAttempt, Message: "why"})
}
