package history

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/podspec"
)

// start is the beginning of every history that is written by hand.
var start = time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)

// builder writes a history by hand: each call is one revision. Unless loose, a fence
// follows each, so that the order of the calls is the order of the history.
type builder struct {
	log   Log
	now   time.Time
	rv    map[Server]uint64
	loose bool
	// objects are the last states, by kind and name.
	objects map[string]client.Object
	made    int
}

func newBuilder() *builder {
	return &builder{now: start, rv: map[Server]uint64{Copse: 100, Cluster: 5000}, objects: map[string]client.Object{}}
}

func (b *builder) wait(d time.Duration) { b.now = b.now.Add(d) }

func (b *builder) add(kind Kind, obj client.Object, deleted bool) {
	server := kind.server()
	b.rv[server]++
	b.now = b.now.Add(time.Millisecond)
	b.log.Revisions = append(b.log.Revisions, &Revision{Seq: len(b.log.Revisions), Arrived: b.now, Kind: kind, RV: b.rv[server], Deleted: deleted, Object: obj})
	if !b.loose {
		b.fence()
	}
}

func (b *builder) fence() {
	for _, server := range []Server{Copse, Cluster} {
		b.log.Fences = append(b.log.Fences, Fence{Server: server, Seq: len(b.log.Revisions), RV: b.rv[server]})
	}
}

// put makes an object, or changes it.
func put[T client.Object](b *builder, kind Kind, name string, empty T, change func(T)) {
	key := string(kind) + "/" + name
	obj := empty
	if last, exists := b.objects[key]; exists {
		obj = last.DeepCopyObject().(T)
	} else {
		b.made++
		obj.SetName(name)
		obj.SetUID(types.UID(fmt.Sprintf("%s-%d", name, b.made)))
	}
	change(obj)
	b.objects[key] = obj
	b.add(kind, obj, false)
}

// gone removes an object.
func (b *builder) gone(kind Kind, name string) {
	key := string(kind) + "/" + name
	b.add(kind, b.objects[key], true)
	delete(b.objects, key)
}

// going begins the deletion of an object.
func (b *builder) going(kind Kind, name string) {
	obj := b.objects[string(kind)+"/"+name].DeepCopyObject().(client.Object)
	obj.SetDeletionTimestamp(&metav1.Time{Time: b.now.Truncate(time.Second)})
	b.objects[string(kind)+"/"+name] = obj
	b.add(kind, obj, false)
}

func (b *builder) uid(kind Kind, name string) types.UID {
	return b.objects[string(kind)+"/"+name].GetUID()
}

func (b *builder) set(change func(*grovev1alpha1.PodCliqueSet)) {
	put(b, Set, "job", &grovev1alpha1.PodCliqueSet{}, change)
}

// clique makes or changes a PodClique of the set; its replica is the digit after "job-".
func (b *builder) clique(name string, change func(*grovev1alpha1.PodClique)) {
	put(b, Clique, name, &grovev1alpha1.PodClique{}, func(c *grovev1alpha1.PodClique) {
		if c.Labels == nil {
			c.Labels = map[string]string{labels.ReplicaIndex: name[4:5]}
			c.OwnerReferences = []metav1.OwnerReference{{Kind: "PodCliqueSet", Name: "job", UID: b.uid(Set, "job")}}
			c.Spec.Replicas = 2
			c.Spec.WorkloadType = b.objects[string(Set)+"/job"].(*grovev1alpha1.PodCliqueSet).Spec.WorkloadType
		}
		change(c)
	})
}

// member makes or changes a PodClique of copy 0 of the scaling group job-0-group.
func (b *builder) member(name string, change func(*grovev1alpha1.PodClique)) {
	b.clique(name, func(c *grovev1alpha1.PodClique) {
		if len(c.OwnerReferences) == 1 {
			c.Labels[labels.ScalingGroupReplicaIndex] = "0"
			c.OwnerReferences = append(c.OwnerReferences, metav1.OwnerReference{Kind: "PodCliqueScalingGroup", Name: "job-0-group", UID: b.uid(Group, "job-0-group")})
		}
		change(c)
	})
}

// copy makes a PodClique of a copy of the scaling group job-0-group.
func (b *builder) copy(name, index string) {
	b.member(name, func(c *grovev1alpha1.PodClique) {
		c.Labels[labels.ScalingGroupReplicaIndex] = index
		c.Spec.Replicas = 1
	})
}

func (b *builder) group(change func(*grovev1alpha1.PodCliqueScalingGroup)) {
	put(b, Group, "job-0-group", &grovev1alpha1.PodCliqueScalingGroup{}, func(g *grovev1alpha1.PodCliqueScalingGroup) {
		b.belongsToReplica(g)
		change(g)
	})
}

func (b *builder) gate(change func(*grovev1alpha1.StartGate)) {
	put(b, Gate, "job-0", &grovev1alpha1.StartGate{}, func(g *grovev1alpha1.StartGate) {
		b.belongsToReplica(g)
		change(g)
	})
}

// file makes or changes the ConfigMap of the gate.
func (b *builder) file(text string) {
	put(b, File, "job-0-group-scheduling", &corev1.ConfigMap{}, func(c *corev1.ConfigMap) {
		b.belongsToReplica(c)
		c.Data = map[string]string{podspec.GateFile: text}
	})
}

func (b *builder) belongsToReplica(obj client.Object) {
	obj.SetLabels(map[string]string{labels.ReplicaIndex: "0"})
	obj.SetOwnerReferences([]metav1.OwnerReference{{Kind: "PodCliqueSet", Name: "job", UID: b.uid(Set, "job")}})
}

func (b *builder) gang(name string, change func(*schedulerv1alpha1.PodGang)) {
	put(b, Gang, name, &schedulerv1alpha1.PodGang{}, change)
}

func (b *builder) native(name string, minCount int32) {
	put(b, NativeGroup, name, &schedulingv1beta1.PodGroup{}, func(g *schedulingv1beta1.PodGroup) {
		g.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: minCount}
	})
}

// makePod makes a pod of a clique.
func (b *builder) makePod(name, clique string, index, attempt int32, changes ...func(*corev1.Pod)) {
	put(b, Pod, name, &corev1.Pod{}, func(p *corev1.Pod) {
		p.Labels = map[string]string{labels.PodIndex: labels.Index(index), labels.RestartAttempt: labels.Index(attempt)}
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "PodClique", Name: clique, UID: b.uid(Clique, clique), Controller: ptr.To(true)}}
		p.Status.Phase = corev1.PodRunning
		for _, change := range changes {
			change(p)
		}
	})
}

func (b *builder) pod(name string, change func(*corev1.Pod)) {
	put(b, Pod, name, &corev1.Pod{}, change)
}

func (b *builder) podPhase(name string, phase corev1.PodPhase) {
	b.pod(name, func(p *corev1.Pod) { p.Status.Phase = phase })
}

// training makes a training set of one replica with one clique of two workers and both pods.
func (b *builder) training() {
	b.set(func(s *grovev1alpha1.PodCliqueSet) {
		s.Spec.WorkloadType = grovev1alpha1.WorkloadTypeTraining
		s.Spec.Replicas = 1
		s.Spec.TrainingSpec = &grovev1alpha1.TrainingSpec{MaxRestarts: ptr.To[int32](2)}
		s.Spec.Template.TerminationDelay = &metav1.Duration{}
		s.Spec.Template.Cliques = []grovev1alpha1.PodCliqueTemplateSpec{{Name: "worker", Spec: grovev1alpha1.PodCliqueSpec{Replicas: 2}}}
	})
	b.clique("job-0-worker", func(*grovev1alpha1.PodClique) {})
	b.makePod("w0", "job-0-worker", 0, 0)
	b.makePod("w1", "job-0-worker", 1, 0)
}

// inference is the same for ever.
func (b *builder) inference() {
	b.set(func(s *grovev1alpha1.PodCliqueSet) {
		s.Spec.WorkloadType = grovev1alpha1.WorkloadTypeInference
		s.Spec.Replicas = 1
	})
	b.clique("job-0-worker", func(*grovev1alpha1.PodClique) {})
	b.makePod("w0", "job-0-worker", 0, 0)
	b.makePod("w1", "job-0-worker", 1, 0)
}

// restart records attempt n of replica 0.
func (b *builder) restart(n int32) {
	b.set(func(s *grovev1alpha1.PodCliqueSet) {
		s.Status.RestartCount = n
		s.Status.ReplicaStatuses = []grovev1alpha1.PodCliqueSetReplicaStatus{{Attempt: n}}
	})
}

// raise brings a clique to an attempt, spec first.
func (b *builder) raise(clique string, n int32) {
	b.clique(clique, func(c *grovev1alpha1.PodClique) { c.Spec.Attempt = n })
	b.clique(clique, func(c *grovev1alpha1.PodClique) {
		c.Status = grovev1alpha1.PodCliqueStatus{ObservedAttempt: n}
	})
}

// breach puts a clique into breach.
func (b *builder) breach(clique string) {
	b.clique(clique, func(c *grovev1alpha1.PodClique) {
		c.Status.WasAvailable = true
		b.condition(&c.Status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached, true, grovev1alpha1.ReasonInsufficientReadyPods)
	})
}

// fail records FailureTarget.
func (b *builder) fail(reason string) {
	b.set(func(s *grovev1alpha1.PodCliqueSet) {
		b.condition(&s.Status.Conditions, grovev1alpha1.ConditionTypeFailureTarget, true, reason)
	})
}

// failed ends the set as Failed.
func (b *builder) failed() {
	b.set(func(s *grovev1alpha1.PodCliqueSet) {
		s.Status.Phase = grovev1alpha1.PodCliqueSetFailed
		s.Status.CompletionTime = &metav1.Time{Time: b.now.Truncate(time.Second)}
		b.condition(&s.Status.Conditions, grovev1alpha1.ConditionTypeFailed, true, grovev1alpha1.ReasonMaxRestartsExceeded)
	})
}

// condition sets a condition as controllers do, with whole seconds.
func (b *builder) condition(conditions *[]metav1.Condition, conditionType string, status bool, reason string) {
	c := metav1.Condition{Type: conditionType, Status: metav1.ConditionFalse, Reason: reason, LastTransitionTime: metav1.NewTime(b.now.Truncate(time.Second))}
	if status {
		c.Status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(conditions, c)
}

// example is a history and the invariants that it breaks, each once per violation.
type example struct {
	name  string
	write func(*builder)
	want  []string
}

func run(t *testing.T, examples []example) {
	t.Helper()
	for _, ex := range examples {
		t.Run(ex.name, func(t *testing.T) {
			t.Parallel()
			b := newBuilder()
			ex.write(b)
			b.log.End = b.now
			found := Check(&b.log)
			var got []string
			for _, violation := range found.Violations {
				got = append(got, violation.Invariant)
			}
			if !slices.Equal(got, ex.want) {
				t.Errorf("violations are %v, want %v", got, ex.want)
				for _, violation := range found.Violations {
					t.Log(violation)
				}
			}
		})
	}
}
