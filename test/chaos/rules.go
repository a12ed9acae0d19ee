package chaos

import (
	"context"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/scheduler"
	"github.com/copse-dev/copse/pkg/registry/grove/podclique"
	"github.com/copse-dev/copse/pkg/registry/grove/podcliquescalinggroup"
	"github.com/copse-dev/copse/pkg/registry/grove/podcliqueset"
	"github.com/copse-dev/copse/pkg/registry/grove/startgate"
	"github.com/copse-dev/copse/pkg/registry/scheduler/podgang"
)

// rules are what a server does to the objects of a kind that are written to it. They may
// change obj, which nobody else holds, and never before.
type rules interface {
	create(obj client.Object) (client.Object, error)
	update(obj, before client.Object) (client.Object, error)
	updateStatus(obj, before client.Object) (client.Object, error)
	// gracePeriod is how many seconds an object stays after its deletion was requested.
	gracePeriod(obj client.Object) int64
}

// strategyRules are those of a kind of Copse's: its strategies, between the versioned
// types that clients write and the hub types that strategies know.
type strategyRules struct {
	kind   Kind
	scheme *runtime.Scheme
	hub    func() runtime.Object
	main   mainStrategy
	status rest.RESTUpdateStrategy
}

type mainStrategy interface {
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
}

func ourRules(scheme *runtime.Scheme) map[Kind]rules {
	set := podcliqueset.NewStrategy(scheme, podcliqueset.Defaults{}, nil)
	group := podcliquescalinggroup.NewStrategy(scheme)
	clique := podclique.NewStrategy(scheme)
	gang := podgang.NewStrategy(scheme)
	gate := startgate.NewStrategy(scheme)
	return map[Kind]rules{
		KindSet:    strategyRules{KindSet, scheme, func() runtime.Object { return &grove.PodCliqueSet{} }, set, podcliqueset.NewStatusStrategy(set)},
		KindGroup:  strategyRules{KindGroup, scheme, func() runtime.Object { return &grove.PodCliqueScalingGroup{} }, group, podcliquescalinggroup.NewStatusStrategy(group)},
		KindClique: strategyRules{KindClique, scheme, func() runtime.Object { return &grove.PodClique{} }, clique, podclique.NewStatusStrategy(clique)},
		KindGang:   strategyRules{KindGang, scheme, func() runtime.Object { return &scheduler.PodGang{} }, gang, podgang.NewStatusStrategy(gang)},
		KindGate:   strategyRules{KindGate, scheme, func() runtime.Object { return &grove.StartGate{} }, gate, startgate.NewStatusStrategy(gate)},
	}
}

// toHub converts; the result shares memory with obj.
func (r strategyRules) toHub(obj client.Object) (runtime.Object, error) {
	hub := r.hub()
	return hub, r.scheme.Convert(obj, hub, nil)
}

func (r strategyRules) fromHub(hub runtime.Object) (client.Object, error) {
	obj := newObject(r.kind)
	return obj, r.scheme.Convert(hub, obj, nil)
}

func (r strategyRules) create(obj client.Object) (client.Object, error) {
	r.scheme.Default(obj)
	hub, err := r.toHub(obj)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	r.main.PrepareForCreate(ctx, hub)
	if errs := r.main.Validate(ctx, hub); len(errs) > 0 {
		return nil, apierrors.NewInvalid(obj.GetObjectKind().GroupVersionKind().GroupKind(), obj.GetName(), errs)
	}
	return r.fromHub(hub)
}

func (r strategyRules) update(obj, before client.Object) (client.Object, error) {
	return r.change(r.main, obj, before)
}

func (r strategyRules) updateStatus(obj, before client.Object) (client.Object, error) {
	return r.change(r.status, obj, before)
}

func (r strategyRules) change(strategy rest.RESTUpdateStrategy, obj, before client.Object) (client.Object, error) {
	r.scheme.Default(obj)
	hub, err := r.toHub(obj)
	if err != nil {
		return nil, err
	}
	old, err := r.toHub(before)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	truncateTimes(reflect.ValueOf(hub).Elem().FieldByName("Status"))
	strategy.PrepareForUpdate(ctx, hub, old)
	if errs := strategy.ValidateUpdate(ctx, hub, old); len(errs) > 0 {
		return nil, apierrors.NewInvalid(obj.GetObjectKind().GroupVersionKind().GroupKind(), obj.GetName(), errs)
	}
	return r.fromHub(hub)
}

func (strategyRules) gracePeriod(client.Object) int64 { return 0 }

// clusterRules are those of the cluster's kinds, as far as the controllers rely on them.
type clusterRules struct{}

func clusterRulesOf() map[Kind]rules {
	out := map[Kind]rules{}
	for _, k := range ClusterKinds() {
		out[k] = clusterRules{}
	}
	return out
}

func (clusterRules) create(obj client.Object) (client.Object, error) {
	switch obj := obj.(type) {
	case *corev1.Pod:
		obj.Status = corev1.PodStatus{Phase: corev1.PodPending}
	case *schedulingv1beta1.PodGroup:
		obj.Status = schedulingv1beta1.PodGroupStatus{}
	}
	return obj, nil
}

func (clusterRules) update(obj, before client.Object) (client.Object, error) {
	spec := true
	switch obj := obj.(type) {
	case *corev1.Pod:
		obj.Status = before.(*corev1.Pod).Status
		spec = !apiequality.Semantic.DeepEqual(obj.Spec, before.(*corev1.Pod).Spec)
	case *schedulingv1beta1.PodGroup:
		obj.Status = before.(*schedulingv1beta1.PodGroup).Status
		spec = !apiequality.Semantic.DeepEqual(obj.Spec, before.(*schedulingv1beta1.PodGroup).Spec)
	}
	if spec {
		obj.SetGeneration(before.GetGeneration() + 1)
	}
	return obj, nil
}

func (clusterRules) updateStatus(obj, before client.Object) (client.Object, error) {
	after := copyOf(before)
	switch obj := obj.(type) {
	case *corev1.Pod:
		after.(*corev1.Pod).Status = obj.Status
	case *schedulingv1beta1.PodGroup:
		after.(*schedulingv1beta1.PodGroup).Status = obj.Status
	}
	return after, nil
}

// gracePeriod is that of the pods' own strategy: one that has no node, or has ended, is
// not waited for.
func (clusterRules) gracePeriod(obj client.Object) int64 {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" || hasEnded(pod) {
		return 0
	}
	return ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, 30)
}

func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
