// Package clustertopologybinding gives KAI the topologies of ClusterTopologyBindings, and
// writes the status of these: how the topologies that schedulers have compare.
package clustertopologybinding

import (
	"context"
	"fmt"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/scheduling/kai"
)

// Reconciler brings bindings to KAI.
type Reconciler struct {
	Client client.Client
	Clock  clock.Clock
	// KAISchedulers are the names of schedulers that are KAI; none where the cluster does not
	// serve KAI's topologies.
	KAISchedulers []string
}

// Reconcile syncs one binding with KAI and writes its status.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	binding := &grovev1alpha1.ClusterTopologyBinding{}
	if err := r.Client.Get(ctx, req.NamespacedName, binding); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if binding.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	seen, err := r.sync(ctx, binding)
	if err != nil {
		return reconcile.Result{}, err
	}
	status := decide(binding, r.KAISchedulers, seen, r.Clock.Now())
	if apiequality.Semantic.DeepEqual(binding.Status, status) {
		return reconcile.Result{}, nil
	}
	updated := binding.DeepCopy()
	updated.Status = status
	if err := r.Client.Status().Update(ctx, updated); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("write the status: %w", err)
	}
	return reconcile.Result{}, nil
}

// sync keeps the topology that is made of a binding, and reads those that it refers to.
func (r *Reconciler) sync(ctx context.Context, binding *grovev1alpha1.ClusterTopologyBinding) (observed, error) {
	seen := observed{topologies: map[string]*kai.Topology{}}
	if len(r.KAISchedulers) == 0 {
		return seen, nil
	}
	for _, name := range namesOf(binding, r.KAISchedulers) {
		topology := &kai.Topology{}
		err := r.Client.Get(ctx, types.NamespacedName{Name: name}, topology)
		if client.IgnoreNotFound(err) != nil {
			return observed{}, fmt.Errorf("read KAI's Topology %s: %w", name, err)
		}
		if err == nil {
			seen.topologies[name] = topology
		}
	}
	current := seen.topologies[binding.Name]
	switch {
	case current != nil && !metav1.IsControlledBy(current, binding):
		// Somebody else's: it is compared, and not touched.
		return seen, nil
	case current != nil && slices.Equal(current.Keys(), keysOf(binding)) && isNeeded(binding, r.KAISchedulers):
		return seen, nil
	}
	if current != nil {
		// Its levels cannot be changed.
		if err := r.Client.Delete(ctx, current, client.Preconditions{UID: &current.UID}); client.IgnoreNotFound(err) != nil {
			return observed{}, fmt.Errorf("delete KAI's Topology %s: %w", current.Name, err)
		}
		delete(seen.topologies, binding.Name)
	}
	if !isNeeded(binding, r.KAISchedulers) {
		return seen, nil
	}
	want := desiredTopology(binding)
	err := r.Client.Create(ctx, want)
	switch {
	case apierrors.IsInvalid(err):
		seen.refused = err.Error()
	case err != nil:
		return observed{}, fmt.Errorf("create KAI's Topology %s: %w", want.Name, err)
	default:
		seen.topologies[binding.Name] = want
	}
	return seen, nil
}

// desiredTopology is KAI's topology of a binding.
func desiredTopology(binding *grovev1alpha1.ClusterTopologyBinding) *kai.Topology {
	topology := &kai.Topology{ObjectMeta: metav1.ObjectMeta{
		Name:            binding.Name,
		Labels:          map[string]string{labels.ManagedBy: labels.ManagedByValue},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(binding, grovev1alpha1.SchemeGroupVersion.WithKind("ClusterTopologyBinding"))},
	}}
	for _, key := range keysOf(binding) {
		topology.Spec.Levels = append(topology.Spec.Levels, kai.TopologyLevel{NodeLabel: key})
	}
	return topology
}

func keysOf(binding *grovev1alpha1.ClusterTopologyBinding) []string {
	keys := make([]string, 0, len(binding.Spec.Levels))
	for _, level := range binding.Spec.Levels {
		keys = append(keys, level.Key)
	}
	return keys
}

// isNeeded says that a scheduler knows the topology by the name of its binding.
func isNeeded(binding *grovev1alpha1.ClusterTopologyBinding, schedulers []string) bool {
	return slices.ContainsFunc(schedulers, func(scheduler string) bool { return referenceOf(binding, scheduler) == binding.Name })
}

// referenceOf is the name by which a scheduler knows the topology.
func referenceOf(binding *grovev1alpha1.ClusterTopologyBinding, scheduler string) string {
	for _, ref := range binding.Spec.SchedulerTopologyBindings {
		if ref.SchedulerName == scheduler {
			return ref.TopologyReference
		}
	}
	return binding.Name
}

// namesOf are the names of all topologies that may be the binding's.
func namesOf(binding *grovev1alpha1.ClusterTopologyBinding, schedulers []string) []string {
	names := []string{binding.Name}
	for _, scheduler := range schedulers {
		if name := referenceOf(binding, scheduler); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
