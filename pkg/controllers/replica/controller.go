// Package replica makes and removes what one replica of a PodCliqueSet consists of:
// its headless Service, PodCliqueScalingGroups, PodCliques (members of scaling groups
// too), PodGangs, HorizontalPodAutoscalers of what the template wants scaled, ResourceClaims that
// pods share and, where pods wait to start, a StartGate and its ConfigMap. It opens
// the gate, and writes no other status. It makes no pods.
package replica

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/internal/index"
	"github.com/copse-dev/copse/pkg/controllers/internal/live"
	"github.com/copse-dev/copse/pkg/controllers/internal/topology"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
)

// Key is one replica of one set: replicas of a set do not wait for each other.
type Key struct {
	types.NamespacedName
	UID     types.UID
	Replica int32
}

// Reconciler brings replicas in line with their sets.
type Reconciler struct {
	Client client.Client
	// Cache is the client's cache without its waiting for own writes: for event handlers,
	// which must not block.
	Cache    client.Reader
	Live     client.Reader
	Recorder events.EventRecorder
	Clock    clock.Clock
	// ResourceClaims says that the cluster serves them.
	ResourceClaims bool
	// NativeGangs says that the cluster's own scheduler schedules gangs.
	NativeGangs bool
	// Topology says what the constraints of sets speak of.
	Topology topology.Source

	// queue is the controller's own, for deadlines of passes that have failed.
	queue delayer
}

// delayer has a replica looked at after a while.
type delayer interface {
	AddAfter(key Key, wait time.Duration)
}

// Reconcile brings one replica in line with its set.
func (r *Reconciler) Reconcile(ctx context.Context, key Key) (reconcile.Result, error) {
	pcs := &grovev1alpha1.PodCliqueSet{}
	if err := r.Client.Get(ctx, key.NamespacedName, pcs); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if pcs.UID != key.UID || isOrphaning(pcs) {
		return reconcile.Result{}, nil
	}
	have, err := r.observe(ctx, pcs, key)
	if err != nil {
		return reconcile.Result{}, err
	}
	noted := r.seeAllocations(ctx, pcs, have)
	wait, err := r.bringInLine(ctx, pcs, key, have)
	if err = errors.Join(noted, err); err != nil && wait > 0 {
		// An error is tried again by a back-off of its own, which says nothing of the deadline.
		r.queue.AddAfter(key, wait)
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: wait}, err
}

// bringInLine plans and writes what the replica lacks, and decides about its gate. It returns how
// long until a gate expires.
func (r *Reconciler) bringInLine(ctx context.Context, pcs *grovev1alpha1.PodCliqueSet, key Key, have observed) (time.Duration, error) {
	var err error
	if have.topology, err = r.Topology.Of(ctx, r.Client, pcs); err != nil {
		return 0, err
	}
	if err := r.shutGate(ctx, pcs, key, have); err != nil {
		return 0, err
	}
	var made error
	if p := planReplica(pcs, key.Replica, have); !p.empty() {
		var done bool
		if done, made = r.carryOut(ctx, pcs, key, have, p); !done {
			return 0, made
		}
	}
	wait, err := r.decideGate(ctx, pcs, key, have, made)
	return wait, errors.Join(made, err)
}

// carryOut writes what was planned, unless the cache is behind what the plan was made from.
func (r *Reconciler) carryOut(ctx context.Context, pcs *grovev1alpha1.PodCliqueSet, key Key, have observed, p plan) (done bool, err error) {
	current, err := live.Set(ctx, r.Live, key.NamespacedName, key.UID)
	if err != nil {
		return false, err
	}
	if !agree(pcs, current, key.Replica) {
		// The cache is behind; the event that brings it up to date comes here again.
		log.FromContext(ctx).V(1).Info("The cached set is out of date", "set", key.Name)
		return false, nil
	}
	if ok, err := r.groupsAgree(ctx, have, p); err != nil || !ok {
		return false, err
	}
	if ok, err := r.cliquesAgree(ctx, have, p); err != nil || !ok {
		return false, err
	}
	if ok, err := r.topologyAgrees(ctx, pcs, have, p); err != nil || !ok {
		return false, err
	}
	if err := r.forgetGone(ctx, pcs, key, have, p); err != nil {
		return false, err
	}
	return true, r.apply(ctx, pcs, p)
}

// groupsAgree says that the scaling groups whose members the plan makes or removes, or any whose
// claims it removes, are as the cache shows them: a size from the past would take healthy copies
// away (D11).
func (r *Reconciler) groupsAgree(ctx context.Context, have observed, p plan) (bool, error) {
	touched, all := map[string]bool{}, false
	for _, obj := range append(slices.Clone(p.create), p.remove...) {
		if clique, ok := obj.(*grovev1alpha1.PodClique); ok {
			touched[clique.Labels[labels.ScalingGroup]] = true
		}
	}
	for _, obj := range p.remove {
		if _, ok := obj.(*resourcev1.ResourceClaim); ok {
			all = true
		}
	}
	for name, cached := range have.groups {
		if !touched[name] && !all {
			continue
		}
		current := &grovev1alpha1.PodCliqueScalingGroup{}
		if err := r.Live.Get(ctx, client.ObjectKeyFromObject(cached), current); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("read scaling group %s: %w", name, err)
		}
		// A group that is gone, or another by now, has an event on its way.
		if current.UID != cached.UID || current.Generation != cached.Generation {
			log.FromContext(ctx).V(1).Info("The cached scaling group is out of date", "group", name)
			return false, nil
		}
	}
	return true, nil
}

// topologyAgrees says that gangs which the plan makes or changes are placed by the levels that
// there are: some schedulers place a gang by what it was made with for as long as it lives,
// and a set may come with its topology.
func (r *Reconciler) topologyAgrees(ctx context.Context, pcs *grovev1alpha1.PodCliqueSet, have observed, p plan) (bool, error) {
	isGang := func(obj client.Object) bool {
		_, ok := obj.(*schedulerv1alpha1.PodGang)
		return ok
	}
	if !slices.ContainsFunc(p.create, isGang) && !slices.ContainsFunc(p.update, isGang) {
		return true, nil
	}
	current, err := r.Topology.Of(ctx, r.Live, pcs)
	if err != nil {
		return false, err
	}
	if !topology.Same(have.topology, current) {
		// The event of the binding comes here again.
		log.FromContext(ctx).V(1).Info("The cached topology is out of date", "set", pcs.Name)
		return false, nil
	}
	return true, nil
}

// isOrphaning says that the user asked to keep what is below the set.
func isOrphaning(pcs *grovev1alpha1.PodCliqueSet) bool {
	if pcs.DeletionTimestamp == nil {
		return false
	}
	for _, finalizer := range pcs.Finalizers {
		if finalizer == metav1.FinalizerOrphanDependents {
			return true
		}
	}
	return false
}

// agree says that the cached set and the live one lead to the same plan for a replica.
func agree(cached, current *grovev1alpha1.PodCliqueSet, replica int32) bool {
	return current != nil && cached.Generation == current.Generation &&
		gang.ParentOf(cached) == gang.ParentOf(current) &&
		gang.ReplicaAttempt(cached, replica) == gang.ReplicaAttempt(current, replica) &&
		gang.SameTurns(cached, current)
}

func (r *Reconciler) observe(ctx context.Context, pcs *grovev1alpha1.PodCliqueSet, key Key) (observed, error) {
	have := NewChildren().have
	have.servesClaims = r.ResourceClaims
	var (
		services corev1.ServiceList
		groups   grovev1alpha1.PodCliqueScalingGroupList
		cliques  grovev1alpha1.PodCliqueList
		gangs    schedulerv1alpha1.PodGangList
		gates    grovev1alpha1.StartGateList
		files    corev1.ConfigMapList
		scalers  autoscalingv2.HorizontalPodAutoscalerList
	)
	for _, list := range []client.ObjectList{&services, &groups, &cliques, &gangs, &gates, &files, &scalers} {
		if err := r.Client.List(ctx, list, index.OwnedByReplica(key.Namespace, key.UID, key.Replica)...); err != nil {
			return observed{}, fmt.Errorf("list %T: %w", list, err)
		}
	}
	for i := range services.Items {
		have.services[services.Items[i].Name] = &services.Items[i]
	}
	for i := range groups.Items {
		have.groups[groups.Items[i].Name] = &groups.Items[i]
	}
	for i := range cliques.Items {
		have.cliques[cliques.Items[i].Name] = &cliques.Items[i]
	}
	for i := range gangs.Items {
		have.gangs[gangs.Items[i].Name] = &gangs.Items[i]
	}
	for i := range gates.Items {
		have.gates[gates.Items[i].Name] = &gates.Items[i]
	}
	for i := range files.Items {
		have.configMaps[files.Items[i].Name] = &files.Items[i]
	}
	for i := range scalers.Items {
		have.autoscalers[scalers.Items[i].Name] = &scalers.Items[i]
	}
	return have, r.observeClaims(ctx, pcs, key.Replica, have)
}

func (r *Reconciler) apply(ctx context.Context, pcs *grovev1alpha1.PodCliqueSet, p plan) error {
	var errs []error
	for _, obj := range p.remove {
		if err := r.Client.Delete(ctx, obj, asSeen(obj)); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("delete %T %s: %w", obj, obj.GetName(), err))
		}
	}
	for _, obj := range p.update {
		if err := r.Client.Update(ctx, obj); err != nil {
			if apierrors.IsInvalid(err) {
				r.Recorder.Eventf(pcs, nil, corev1.EventTypeWarning, "UpdateFailed", "Update", "%s %s: %v", kindOf(obj), obj.GetName(), err)
			}
			errs = append(errs, fmt.Errorf("update %T %s: %w", obj, obj.GetName(), err))
		}
	}
	for _, obj := range p.create {
		errs = append(errs, r.create(ctx, pcs, obj))
	}
	return errors.Join(errs...)
}

// create makes a child. One that exists is a success if it is ours; a foreign one is
// left alone, and the set's events say so.
func (r *Reconciler) create(ctx context.Context, pcs *grovev1alpha1.PodCliqueSet, obj client.Object) error {
	err := r.Client.Create(ctx, obj)
	if err == nil || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		// In a namespace that goes away the set goes as well: its own deletion is on the way.
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		r.Recorder.Eventf(pcs, nil, corev1.EventTypeWarning, "CreateFailed", "Create", "%s %s: %v", kindOf(obj), obj.GetName(), err)
		return fmt.Errorf("create %T %s: %w", obj, obj.GetName(), err)
	}
	key, want := client.ObjectKeyFromObject(obj), obj.DeepCopyObject()
	if err := r.Live.Get(ctx, key, obj); err != nil {
		return fmt.Errorf("read %T %s that exists already: %w", obj, key.Name, err)
	}
	if isOurs(obj, pcs) {
		return r.showAgain(ctx, obj, want)
	}
	conflict := conflictError{kind: kindOf(obj), name: key.Name}
	if _, isFile := obj.(*corev1.ConfigMap); isFile {
		// The gate records it, and is what tells whether it is news.
		return conflict
	}
	r.Recorder.Eventf(pcs, nil, corev1.EventTypeWarning, "NameConflict", "Create", "%s", conflict.Error())
	return conflict
}

// showAgain gives a child of ours the labels back without which the cache does not show it:
// people may change those of what is not of our own kinds.
func (r *Reconciler) showAgain(ctx context.Context, obj client.Object, want runtime.Object) error {
	var updated client.Object
	switch want := want.(type) {
	case *corev1.Service:
		updated = serviceAsWanted(obj.(*corev1.Service), want)
	case *autoscalingv2.HorizontalPodAutoscaler:
		updated = putRight(obj.(*autoscalingv2.HorizontalPodAutoscaler), want)
	case *corev1.ConfigMap, *resourcev1.ResourceClaim:
		updated = withLabels(obj, want.(client.Object).GetLabels())
	}
	if updated == nil {
		return nil
	}
	if err := r.Client.Update(ctx, updated); err != nil {
		return fmt.Errorf("update %T %s: %w", updated, updated.GetName(), err)
	}
	return nil
}

// isOurs says that an object is a child of a set. Whoever else makes a Service or a ConfigMap may
// have the set own it, so that it goes along: those of ours are controlled by the set. Of others
// the controller is a PodClique or a scaling group.
func isOurs(obj client.Object, pcs *grovev1alpha1.PodCliqueSet) bool {
	switch obj.(type) {
	case *corev1.Service, *corev1.ConfigMap:
		return metav1.IsControlledBy(obj, pcs)
	}
	return slices.ContainsFunc(obj.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == pcs.UID })
}

// kindOf names the kind of a child for people.
func kindOf(obj client.Object) string {
	switch obj.(type) {
	case *corev1.Service:
		return "Service"
	case *grovev1alpha1.PodCliqueScalingGroup:
		return "PodCliqueScalingGroup"
	case *grovev1alpha1.PodClique:
		return "PodClique"
	case *schedulerv1alpha1.PodGang:
		return "PodGang"
	case *grovev1alpha1.StartGate:
		return "StartGate"
	case *corev1.ConfigMap:
		return "ConfigMap"
	case *autoscalingv2.HorizontalPodAutoscaler:
		return "HorizontalPodAutoscaler"
	case *resourcev1.ResourceClaim:
		return "ResourceClaim"
	}
	return fmt.Sprintf("%T", obj)
}

// replicaOf is the index of the replica that a child belongs to.
func replicaOf(obj client.Object) (int32, bool) {
	return labels.ParseIndex(obj.GetLabels()[labels.ReplicaIndex])
}
