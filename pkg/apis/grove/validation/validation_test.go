package validation

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

// createCase changes a valid object; want holds the type and the field of each error.
type createCase[T any] struct {
	tweak func(*T)
	want  field.ErrorList
}

// updateCase makes an old object with before, and a new one from the old with tweak.
type updateCase[T any] struct {
	before, tweak func(*T)
	want          field.ErrorList
}

// object is a kind that can be copied.
type object[T any] interface {
	*T
	DeepCopy() *T
}

func testCreate[T any, P object[T]](t *testing.T, mk func(...func(*T)) *T, validate func(*T) field.ErrorList, tests map[string]createCase[T]) {
	t.Helper()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			obj := mk()
			if tc.tweak != nil {
				tc.tweak(obj)
			}
			before := P(obj).DeepCopy()
			wantErrors(t, validate(obj), tc.want)
			if diff := gocmp.Diff(before, obj); diff != "" {
				t.Errorf("validation changed the object (-before +after):\n%s", diff)
			}
		})
	}
}

func testUpdate[T any, P object[T]](t *testing.T, mk func(...func(*T)) *T, validate func(obj, old *T) field.ErrorList, tests map[string]updateCase[T]) {
	t.Helper()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			old := mk()
			if tc.before != nil {
				tc.before(old)
			}
			obj := P(old).DeepCopy()
			if tc.tweak != nil {
				tc.tweak(obj)
			}
			wantErrors(t, validate(obj, old), tc.want)
		})
	}
}

// place is what tests compare of an error.
type place struct {
	Type  field.ErrorType
	Field string
}

func places(errs field.ErrorList) []place {
	var out []place
	for _, err := range errs {
		out = append(out, place{err.Type, err.Field})
	}
	slices.SortFunc(out, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Type, b.Type))
	})
	return out
}

func wantErrors(t *testing.T, got, want field.ErrorList) {
	t.Helper()
	if diff := gocmp.Diff(places(want), places(got)); diff != "" {
		t.Errorf("errors (-want +got):\n%s\nin full: %v", diff, got.ToAggregate())
	}
}

func invalid(path string) *field.Error {
	return &field.Error{Type: field.ErrorTypeInvalid, Field: path}
}
func required(path string) *field.Error {
	return &field.Error{Type: field.ErrorTypeRequired, Field: path}
}
func forbidden(path string) *field.Error {
	return &field.Error{Type: field.ErrorTypeForbidden, Field: path}
}
func notFound(path string) *field.Error {
	return &field.Error{Type: field.ErrorTypeNotFound, Field: path}
}
func duplicate(path string) *field.Error {
	return &field.Error{Type: field.ErrorTypeDuplicate, Field: path}
}
func tooLong(path string) *field.Error {
	return &field.Error{Type: field.ErrorTypeTooLong, Field: path}
}
func tooMany(path string) *field.Error {
	return &field.Error{Type: field.ErrorTypeTooMany, Field: path}
}
func unsupported(path string) *field.Error {
	return &field.Error{Type: field.ErrorTypeNotSupported, Field: path}
}

// all joins tweaks.
func all[T any](tweaks ...func(*T)) func(*T) {
	return func(obj *T) {
		for _, tweak := range tweaks {
			tweak(obj)
		}
	}
}

// mkMeta is the metadata of a stored object.
func mkMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: "ns", UID: "uid", ResourceVersion: "7", Generation: 1}
}

func deleting(meta *metav1.ObjectMeta) {
	meta.DeletionTimestamp = ptr.To(metav1.Unix(1700000000, 0))
	meta.Finalizers = []string{"grove.io/podcliqueset.grove.io"}
}

func mkPodSpec() corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyOnFailure,
		Containers:    []corev1.Container{{Name: "main", Image: "image"}},
	}
}

// mkPodCliqueSet makes a valid inference set as it is stored: cliques router and worker
// of one pod each, and no scaling group.
func mkPodCliqueSet(tweaks ...func(*grove.PodCliqueSet)) *grove.PodCliqueSet {
	pcs := &grove.PodCliqueSet{
		ObjectMeta: mkMeta("llm"),
		Spec: grove.PodCliqueSetSpec{
			Replicas:     1,
			WorkloadType: grove.WorkloadTypeInference,
			Template: grove.PodCliqueSetTemplateSpec{
				StartupType:           ptr.To(grove.CliqueStartupTypeAnyOrder),
				HeadlessServiceConfig: &grove.HeadlessServiceConfig{PublishNotReadyAddresses: ptr.To(true)},
				Cliques:               []grove.PodCliqueTemplateSpec{mkClique("router"), mkClique("worker")},
			},
		},
	}
	all(tweaks...)(pcs)
	return pcs
}

func mkClique(name string) grove.PodCliqueTemplateSpec {
	return grove.PodCliqueTemplateSpec{
		Name: name,
		Spec: grove.PodCliqueSpec{
			RoleName:     name,
			Replicas:     1,
			MinAvailable: ptr.To[int32](1),
			PodSpec:      mkPodSpec(),
		},
	}
}

// mkClaim is a valid template of resource claims.
func mkClaim(name string) grove.ResourceClaimTemplateConfig {
	claim := grove.ResourceClaimTemplateConfig{Name: name}
	claim.TemplateSpec.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu"}}
	return claim
}

// training turns a set into a training job that is valid.
func training(pcs *grove.PodCliqueSet) {
	pcs.Spec.WorkloadType = grove.WorkloadTypeTraining
	pcs.Spec.TrainingSpec = &grove.TrainingSpec{
		MaxRestarts: ptr.To[int32](3),
		MaxRuntime:  &metav1.Duration{Duration: 3600e9},
	}
	pcs.Spec.Template.TerminationDelay = &metav1.Duration{}
}

// withGroup puts the given cliques into a scaling group.
func withGroup(name string, cliques ...string) func(*grove.PodCliqueSet) {
	return func(pcs *grove.PodCliqueSet) {
		pcs.Spec.Template.PodCliqueScalingGroups = append(pcs.Spec.Template.PodCliqueScalingGroups, grove.PodCliqueScalingGroupConfig{
			Name:         name,
			CliqueNames:  cliques,
			Replicas:     ptr.To[int32](1),
			MinAvailable: ptr.To[int32](1),
		})
	}
}

// clique changes the clique at an index.
func clique(i int, tweak func(*grove.PodCliqueTemplateSpec)) func(*grove.PodCliqueSet) {
	return func(pcs *grove.PodCliqueSet) { tweak(&pcs.Spec.Template.Cliques[i]) }
}

// group changes the scaling group at an index.
func group(i int, tweak func(*grove.PodCliqueScalingGroupConfig)) func(*grove.PodCliqueSet) {
	return func(pcs *grove.PodCliqueSet) { tweak(&pcs.Spec.Template.PodCliqueScalingGroups[i]) }
}

// mkPodClique makes a valid PodClique of three pods, two of which have to be available.
func mkPodClique(tweaks ...func(*grove.PodClique)) *grove.PodClique {
	clique := &grove.PodClique{
		ObjectMeta: mkMeta("llm-0-worker"),
		Spec: grove.PodCliqueSpec{
			RoleName:     "worker",
			Replicas:     3,
			MinAvailable: ptr.To[int32](2),
			WorkloadType: grove.WorkloadTypeInference,
			PodSpec:      mkPodSpec(),
		},
	}
	all(tweaks...)(clique)
	return clique
}

// mkPodCliqueScalingGroup makes a valid group of three copies.
func mkPodCliqueScalingGroup(tweaks ...func(*grove.PodCliqueScalingGroup)) *grove.PodCliqueScalingGroup {
	group := &grove.PodCliqueScalingGroup{
		ObjectMeta: mkMeta("llm-0-decode"),
		Spec: grove.PodCliqueScalingGroupSpec{
			Replicas:     3,
			MinAvailable: ptr.To[int32](2),
			CliqueNames:  []string{"leader", "worker"},
			WorkloadType: grove.WorkloadTypeInference,
		},
	}
	all(tweaks...)(group)
	return group
}

func mkClusterTopologyBinding(tweaks ...func(*grove.ClusterTopologyBinding)) *grove.ClusterTopologyBinding {
	binding := &grove.ClusterTopologyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu", UID: "uid", ResourceVersion: "7", Generation: 1},
		Spec: grove.ClusterTopologyBindingSpec{
			Levels: []grove.TopologyLevel{
				{Domain: "zone", Key: "topology.kubernetes.io/zone"},
				{Domain: "rack", Key: "example.com/rack"},
			},
			SchedulerTopologyBindings: []grove.SchedulerTopologyBinding{
				{SchedulerName: "kai-scheduler", TopologyReference: "gpu"},
				{SchedulerName: "other", TopologyReference: "gpu"},
			},
		},
	}
	all(tweaks...)(binding)
	return binding
}

// mkStartGate makes a gate with one waiting clique in its second attempt.
func mkStartGate(tweaks ...func(*grove.StartGate)) *grove.StartGate {
	gate := &grove.StartGate{
		ObjectMeta: mkMeta("llm-0"),
		Status:     grove.StartGateStatus{Cliques: []grove.StartGateClique{{Name: "llm-0-worker", Attempt: 1}}},
	}
	all(tweaks...)(gate)
	return gate
}

// condition is a condition with a status.
func condition(conditionType string, status metav1.ConditionStatus) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: "Because"}
}
