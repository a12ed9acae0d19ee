package registry_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	groveinstall "github.com/copse-dev/copse/pkg/apis/grove/install"
	"github.com/copse-dev/copse/pkg/apis/scheduler"
	schedulerinstall "github.com/copse-dev/copse/pkg/apis/scheduler/install"
	"github.com/copse-dev/copse/pkg/registry/grove/clustertopologybinding"
	"github.com/copse-dev/copse/pkg/registry/grove/podclique"
	"github.com/copse-dev/copse/pkg/registry/grove/podcliquescalinggroup"
	"github.com/copse-dev/copse/pkg/registry/grove/podcliqueset"
	"github.com/copse-dev/copse/pkg/registry/grove/startgate"
	internalrest "github.com/copse-dev/copse/pkg/registry/internal/rest"
	"github.com/copse-dev/copse/pkg/registry/scheduler/podgang"
	"github.com/copse-dev/copse/pkg/registry/scheduler/podgroup"
)

// kind is one kind as the tests see it. The functions work on the hub type.
type kind struct {
	main   strategy
	status internalrest.StatusStrategy
	// object is a valid object with a status, as it is stored.
	object runtime.Object
	// changeSpec makes a change that is allowed; breakSpec one that is not.
	changeSpec, breakSpec func(runtime.Object)
	// changeStatus makes a move that is allowed; breakStatus one that is not.
	changeStatus, breakStatus func(runtime.Object)
	// spec and statusOf return parts of the object.
	spec, statusOf func(runtime.Object) any
	apiVersion     string
	clusterWide    bool
	finalizer      string
}

func kinds() map[string]kind {
	scheme := runtime.NewScheme()
	groveinstall.Install(scheme)
	schedulerinstall.Install(scheme)

	const groveVersion, schedulerVersion = "grove.io/v1alpha1", "scheduler.grove.io/v1alpha1"
	podSpec := corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{Name: "main", Image: "image"}}}
	sets := podcliqueset.NewStrategy(scheme, podcliqueset.Defaults{}, nil)
	cliques := podclique.NewStrategy(scheme)
	groups := podcliquescalinggroup.NewStrategy(scheme)
	bindings := clustertopologybinding.NewStrategy(scheme)
	gates := startgate.NewStrategy(scheme)
	gangs := podgang.NewStrategy(scheme)
	podGroups := podgroup.NewStrategy(scheme)

	return map[string]kind{
		"PodCliqueSet": {
			main: sets, status: podcliqueset.NewStatusStrategy(sets), apiVersion: groveVersion,
			finalizer: "grove.io/podcliqueset.grove.io",
			object: &grove.PodCliqueSet{
				ObjectMeta: stored("llm"),
				Spec: grove.PodCliqueSetSpec{
					Replicas:     1,
					WorkloadType: grove.WorkloadTypeInference,
					Template: grove.PodCliqueSetTemplateSpec{
						StartupType: ptr.To(grove.CliqueStartupTypeAnyOrder),
						Cliques: []grove.PodCliqueTemplateSpec{{
							Name: "worker",
							Spec: grove.PodCliqueSpec{Replicas: 1, MinAvailable: ptr.To[int32](1), PodSpec: podSpec},
						}},
					},
				},
				Status: grove.PodCliqueSetStatus{
					Phase: grove.PodCliqueSetRunning, Replicas: 1, CurrentGenerationHash: ptr.To("hash"),
					CliqueHashes: []grove.CliqueHash{{Name: "worker", Hash: "hash"}},
				},
			},
			changeSpec:   func(obj runtime.Object) { obj.(*grove.PodCliqueSet).Spec.Replicas = 2 },
			breakSpec:    func(obj runtime.Object) { obj.(*grove.PodCliqueSet).Spec.Replicas = -1 },
			changeStatus: func(obj runtime.Object) { obj.(*grove.PodCliqueSet).Status.Replicas = 2 },
			breakStatus:  func(obj runtime.Object) { obj.(*grove.PodCliqueSet).Status.Replicas = -1 },
			spec:         func(obj runtime.Object) any { return obj.(*grove.PodCliqueSet).Spec },
			statusOf:     func(obj runtime.Object) any { return obj.(*grove.PodCliqueSet).Status },
		},
		"PodClique": {
			main: cliques, status: podclique.NewStatusStrategy(cliques), apiVersion: groveVersion,
			finalizer: "grove.io/podclique.grove.io",
			object: &grove.PodClique{
				ObjectMeta: stored("llm-0-worker"),
				Spec:       grove.PodCliqueSpec{Replicas: 1, MinAvailable: ptr.To[int32](1), WorkloadType: grove.WorkloadTypeInference, PodSpec: podSpec},
				Status:     grove.PodCliqueStatus{Replicas: 1},
			},
			changeSpec:   func(obj runtime.Object) { obj.(*grove.PodClique).Spec.Replicas = 2 },
			breakSpec:    func(obj runtime.Object) { obj.(*grove.PodClique).Spec.Replicas = -1 },
			changeStatus: func(obj runtime.Object) { obj.(*grove.PodClique).Status.Replicas = 2 },
			breakStatus:  func(obj runtime.Object) { obj.(*grove.PodClique).Status.Replicas = -1 },
			spec:         func(obj runtime.Object) any { return obj.(*grove.PodClique).Spec },
			statusOf:     func(obj runtime.Object) any { return obj.(*grove.PodClique).Status },
		},
		"PodCliqueScalingGroup": {
			main: groups, status: podcliquescalinggroup.NewStatusStrategy(groups), apiVersion: groveVersion,
			finalizer: "grove.io/podcliquescalinggroup.grove.io",
			object: &grove.PodCliqueScalingGroup{
				ObjectMeta: stored("llm-0-decode"),
				Spec:       grove.PodCliqueScalingGroupSpec{Replicas: 1, MinAvailable: ptr.To[int32](1), CliqueNames: []string{"worker"}, WorkloadType: grove.WorkloadTypeInference},
				Status:     grove.PodCliqueScalingGroupStatus{Replicas: 1},
			},
			changeSpec:   func(obj runtime.Object) { obj.(*grove.PodCliqueScalingGroup).Spec.Replicas = 2 },
			breakSpec:    func(obj runtime.Object) { obj.(*grove.PodCliqueScalingGroup).Spec.Replicas = -1 },
			changeStatus: func(obj runtime.Object) { obj.(*grove.PodCliqueScalingGroup).Status.Replicas = 2 },
			breakStatus:  func(obj runtime.Object) { obj.(*grove.PodCliqueScalingGroup).Status.Replicas = -1 },
			spec:         func(obj runtime.Object) any { return obj.(*grove.PodCliqueScalingGroup).Spec },
			statusOf:     func(obj runtime.Object) any { return obj.(*grove.PodCliqueScalingGroup).Status },
		},
		"ClusterTopologyBinding": {
			main: bindings, status: clustertopologybinding.NewStatusStrategy(bindings), apiVersion: groveVersion,
			clusterWide: true,
			object: &grove.ClusterTopologyBinding{
				ObjectMeta: stored("gpu"),
				Spec:       grove.ClusterTopologyBindingSpec{Levels: []grove.TopologyLevel{{Domain: "rack", Key: "example.com/rack"}}},
				Status:     grove.ClusterTopologyBindingStatus{ObservedGeneration: ptr.To[int64](1)},
			},
			changeSpec: func(obj runtime.Object) { obj.(*grove.ClusterTopologyBinding).Spec.Levels[0].Key = "rack" },
			breakSpec:  func(obj runtime.Object) { obj.(*grove.ClusterTopologyBinding).Spec.Levels = nil },
			changeStatus: func(obj runtime.Object) {
				obj.(*grove.ClusterTopologyBinding).Status.ObservedGeneration = ptr.To[int64](2)
			},
			// Nothing in this status can be wrong by itself.
			spec:     func(obj runtime.Object) any { return obj.(*grove.ClusterTopologyBinding).Spec },
			statusOf: func(obj runtime.Object) any { return obj.(*grove.ClusterTopologyBinding).Status },
		},
		"StartGate": {
			main: gates, status: startgate.NewStatusStrategy(gates), apiVersion: groveVersion,
			object: &grove.StartGate{
				ObjectMeta: stored("llm-0"),
				Status:     grove.StartGateStatus{Cliques: []grove.StartGateClique{{Name: "llm-0-worker", Attempt: 1}}},
			},
			// A gate has no spec.
			changeStatus: func(obj runtime.Object) { obj.(*grove.StartGate).Status.Cliques[0].Open = true },
			breakStatus:  func(obj runtime.Object) { obj.(*grove.StartGate).Status.Cliques[0].Attempt = 0 },
			statusOf:     func(obj runtime.Object) any { return obj.(*grove.StartGate).Status },
		},
		"PodGang": {
			main: gangs, status: podgang.NewStatusStrategy(gangs), apiVersion: schedulerVersion,
			object: &scheduler.PodGang{
				ObjectMeta: stored("llm-0"),
				Spec:       scheduler.PodGangSpec{PodGroups: []scheduler.PodGangPodGroup{{Name: "llm-0-worker", MinReplicas: 1}}},
				Status:     scheduler.PodGangStatus{ObservedAttempt: 1},
			},
			changeSpec:   func(obj runtime.Object) { obj.(*scheduler.PodGang).Spec.PodGroups[0].MinReplicas = 2 },
			breakSpec:    func(obj runtime.Object) { obj.(*scheduler.PodGang).Spec.PodGroups = nil },
			changeStatus: func(obj runtime.Object) { obj.(*scheduler.PodGang).Status.ObservedAttempt = 2 },
			breakStatus:  func(obj runtime.Object) { obj.(*scheduler.PodGang).Status.ObservedAttempt = 0 },
			spec:         func(obj runtime.Object) any { return obj.(*scheduler.PodGang).Spec },
			statusOf:     func(obj runtime.Object) any { return obj.(*scheduler.PodGang).Status },
		},
		"PodGroup": {
			main: podGroups, status: podgroup.NewStatusStrategy(podGroups), apiVersion: schedulerVersion,
			object: &scheduler.PodGroup{
				ObjectMeta: stored("job"),
				Spec:       scheduler.PodGroupSpec{MinMember: ptr.To[int32](1)},
				Status:     scheduler.PodGroupStatus{Running: 1},
			},
			changeSpec:   func(obj runtime.Object) { obj.(*scheduler.PodGroup).Spec.MinMember = ptr.To[int32](2) },
			breakSpec:    func(obj runtime.Object) { obj.(*scheduler.PodGroup).Spec.MinMember = ptr.To[int32](-1) },
			changeStatus: func(obj runtime.Object) { obj.(*scheduler.PodGroup).Status.Running = 2 },
			// Nothing in this status can be wrong by itself.
			spec:     func(obj runtime.Object) any { return obj.(*scheduler.PodGroup).Spec },
			statusOf: func(obj runtime.Object) any { return obj.(*scheduler.PodGroup).Status },
		},
	}
}

// stored is the metadata of an object that exists.
func stored(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, UID: "uid", ResourceVersion: "7", Generation: 3}
}

// eachKind runs a test for each kind, with a copy of its object, in its namespace.
func eachKind(t *testing.T, test func(t *testing.T, ctx context.Context, k kind, obj runtime.Object)) {
	for name, k := range kinds() {
		t.Run(name, func(t *testing.T) {
			ctx := genericapirequest.WithNamespace(context.Background(), metav1.NamespaceNone)
			if !k.clusterWide {
				ctx = genericapirequest.WithNamespace(context.Background(), "ns")
				accessor(t, k.object).SetNamespace("ns")
			}
			test(t, ctx, k, k.object.DeepCopyObject())
		})
	}
}

func accessor(t testing.TB, obj runtime.Object) metav1.Object {
	t.Helper()
	accessor, err := meta.Accessor(obj)
	if err != nil {
		t.Fatal(err)
	}
	return accessor
}
