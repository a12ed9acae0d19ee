package replica

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/internal/live"
	"github.com/copse-dev/copse/pkg/controllers/internal/pace"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
	"github.com/copse-dev/copse/pkg/podspec"
)

// planGate makes the StartGate of a replica whose pods wait, and the ConfigMap that says
// the same to pods that cannot reach the API.
func planGate(p *plan, pcs *grovev1alpha1.PodCliqueSet, replica int32, have observed) {
	if !gang.NeedsGate(pcs) {
		return
	}
	if gate := desiredGate(pcs, replica); have.gates[gate.Name] == nil {
		p.create = append(p.create, gate)
	}
	if configMap := desiredGateConfigMap(pcs, replica); have.configMaps[configMap.Name] == nil {
		p.create = append(p.create, configMap)
	}
}

func desiredGate(pcs *grovev1alpha1.PodCliqueSet, replica int32) *grovev1alpha1.StartGate {
	name := naming.Replica(pcs.Name, replica)
	return &grovev1alpha1.StartGate{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: pcs.Namespace, Labels: labels.ForReplica(name, pcs.Name, labels.ComponentStartGate, replica),
		OwnerReferences: []metav1.OwnerReference{ownedBySet(pcs)},
	}}
}

// desiredGateConfigMap is labelled with the name of its gate: its own may be too long for a label.
func desiredGateConfigMap(pcs *grovev1alpha1.PodCliqueSet, replica int32) *corev1.ConfigMap {
	gate := naming.Replica(pcs.Name, replica)
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: naming.GateConfigMap(pcs.Name, replica), Namespace: pcs.Namespace, Labels: labels.ForReplica(gate, pcs.Name, labels.ComponentStartGate, replica),
		OwnerReferences: []metav1.OwnerReference{ownedBySet(pcs)},
	}}
}

// decideGate opens what may be opened, and tells the pods. made is what became of the
// replica's objects in this pass. It returns how long until a gate expires.
func (r *Reconciler) decideGate(ctx context.Context, pcs *grovev1alpha1.PodCliqueSet, key Key, have observed, made error) (time.Duration, error) {
	gate := have.gates[naming.Replica(pcs.Name, key.Replica)]
	if gate == nil || gate.DeletionTimestamp != nil || !gang.NeedsGate(pcs) || gang.ParentOf(pcs) != gang.ParentActive || key.Replica >= pcs.Spec.Replicas {
		return 0, nil
	}
	now := r.Clock.Now()
	snapshot := gang.GateSnapshot{Set: pcs, Replica: key.Replica, Gate: gate, Cliques: have.cliques, Groups: have.groups}
	decision := gang.DecideGate(snapshot, now)
	if len(decision.Expired) > 0 {
		// The cache may be behind: the last pod may have started in time.
		if err := r.readLive(ctx, &snapshot, decision.Expired); err != nil {
			// That it has expired is not written without; the next try comes soon.
			return 0, err
		}
		decision = gang.DecideGate(snapshot, now)
	}
	setConflict(&decision.Status, gate, pcs, key.Replica, made, now)
	if !apiequality.Semantic.DeepEqual(gate.Status, decision.Status) {
		updated := gate.DeepCopy()
		updated.Status = decision.Status
		if err := r.Client.Status().Update(ctx, updated); err != nil {
			return 0, fmt.Errorf("write the gate: %w", err)
		}
		const conflict = grovev1alpha1.ConditionTypeNameConflict
		if c := meta.FindStatusCondition(updated.Status.Conditions, conflict); c != nil && !meta.IsStatusConditionTrue(gate.Status.Conditions, conflict) {
			r.Recorder.Eventf(pcs, gate, corev1.EventTypeWarning, conflict, "Create", "%s", c.Message)
		}
		for _, e := range decision.Events {
			r.Recorder.Eventf(pcs, gate, e.Type, e.Reason, e.Reason, "%s", e.Message)
		}
		gate = updated
	}
	return pace.Until(decision.Next, now), r.writeFile(ctx, pcs, key, have, gate)
}

// shutGate forgets what the gate of a replica says that goes, before its PodCliques do:
// those of a replica that comes back have their names, and would start by it. Pods that
// wait may wait: they go.
func (r *Reconciler) shutGate(ctx context.Context, pcs *grovev1alpha1.PodCliqueSet, key Key, have observed) error {
	gate := have.gates[naming.Replica(pcs.Name, key.Replica)]
	if gate == nil || gate.DeletionTimestamp != nil || key.Replica < pcs.Spec.Replicas || len(gate.Status.Cliques) == 0 {
		return nil
	}
	current, err := live.Set(ctx, r.Live, key.NamespacedName, key.UID)
	if err != nil || !agree(pcs, current, key.Replica) {
		// To a cache that is behind, a replica that has just come goes.
		return err
	}
	updated := gate.DeepCopy()
	updated.Status.Cliques = nil
	if err := r.Client.Status().Update(ctx, updated); err != nil {
		return fmt.Errorf("shut the gate: %w", err)
	}
	return r.writeFile(ctx, pcs, key, have, updated)
}

// forgetGone takes out of the gate what it says of PodCliques that the plan makes: that was
// opened for others of their names, whose end no pass has come to write, as while the API is
// away. What is made would start by it.
func (r *Reconciler) forgetGone(ctx context.Context, pcs *grovev1alpha1.PodCliqueSet, key Key, have observed, p plan) error {
	cached := have.gates[naming.Replica(pcs.Name, key.Replica)]
	made := sets.New[string]()
	for _, obj := range p.create {
		if clique, ok := obj.(*grovev1alpha1.PodClique); ok {
			made.Insert(clique.Name)
		}
	}
	if cached == nil || len(made) == 0 || !gang.NeedsGate(pcs) {
		return nil
	}
	gate := &grovev1alpha1.StartGate{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(cached), gate); err != nil {
		return client.IgnoreNotFound(err)
	}
	gone := sets.New[string]()
	for _, entry := range gate.Status.Cliques {
		if !made.Has(entry.Name) || (!entry.Open && !entry.Expired && entry.FirstStarted == nil) {
			continue
		}
		// To a cache that is behind, one that is there may have to be made.
		err := r.Live.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: entry.Name}, &grovev1alpha1.PodClique{})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read clique %s: %w", entry.Name, err)
		}
		if err != nil {
			gone.Insert(entry.Name)
		}
	}
	if len(gone) > 0 {
		gate.Status.Cliques = slices.DeleteFunc(gate.Status.Cliques, func(entry grovev1alpha1.StartGateClique) bool { return gone.Has(entry.Name) })
		if err := r.Client.Status().Update(ctx, gate); err != nil {
			return fmt.Errorf("forget what the gate was opened for: %w", err)
		}
	}
	have.gates[gate.Name] = gate
	return r.writeFile(ctx, pcs, key, have, gate)
}

// readLive puts PodCliques and their pods, as they are, into a snapshot.
func (r *Reconciler) readLive(ctx context.Context, snapshot *gang.GateSnapshot, expired []*grovev1alpha1.PodClique) error {
	cliques, err := live.Cliques(ctx, r.Live, snapshot.Set)
	if err != nil {
		return err
	}
	all, err := live.ReplicaPods(ctx, r.Live, snapshot.Set, labels.Index(snapshot.Replica))
	if err != nil {
		return err
	}
	pods := map[types.UID][]corev1.Pod{}
	for i := range all {
		if ref := metav1.GetControllerOfNoCopy(&all[i]); ref != nil {
			pods[ref.UID] = append(pods[ref.UID], all[i])
		}
	}
	read := map[string]*grovev1alpha1.PodClique{}
	for i := range cliques {
		read[cliques[i].Name] = &cliques[i]
	}
	snapshot.Cliques, snapshot.Pods = maps.Clone(snapshot.Cliques), map[string][]gang.Pod{}
	for _, cached := range expired {
		current := read[cached.Name]
		if current == nil {
			delete(snapshot.Cliques, cached.Name)
			continue
		}
		snapshot.Cliques[current.Name] = current
		snapshot.Pods[current.Name] = gang.NewPods(current, pods[current.UID])
	}
	return nil
}

// writeFile writes the ConfigMap of the gate, if it is ours and says something else.
func (r *Reconciler) writeFile(ctx context.Context, pcs *grovev1alpha1.PodCliqueSet, key Key, have observed, gate *grovev1alpha1.StartGate) error {
	configMap := have.configMaps[naming.GateConfigMap(pcs.Name, key.Replica)]
	text := gang.GateFile(&gate.Status)
	if configMap == nil || configMap.DeletionTimestamp != nil || configMap.Data[podspec.GateFile] == text {
		return nil
	}
	if err := r.mayForget(ctx, configMap.Data[podspec.GateFile], text, gate); err != nil {
		return err
	}
	updated := configMap.DeepCopy()
	// An empty file would be taken for a gate that is open by who only looks whether it is there.
	if updated.Data = nil; text != "" {
		updated.Data = map[string]string{podspec.GateFile: text}
	}
	if err := r.Client.Update(ctx, updated); err != nil {
		return fmt.Errorf("write ConfigMap %s: %w", configMap.Name, err)
	}
	have.configMaps[updated.Name] = updated
	return nil
}

// mayForget looks at the gate as it is before the file says less than it did: the cache of
// gates may be behind that of ConfigMaps, and what is open stays open.
func (r *Reconciler) mayForget(ctx context.Context, said, says string, gate *grovev1alpha1.StartGate) error {
	for line := range strings.Lines(said) {
		if strings.Contains(says, line) {
			continue
		}
		current := &grovev1alpha1.StartGate{}
		if err := r.Live.Get(ctx, client.ObjectKeyFromObject(gate), current); err != nil {
			return fmt.Errorf("read StartGate %s: %w", gate.Name, err)
		}
		if current.UID != gate.UID || current.ResourceVersion != gate.ResourceVersion {
			return fmt.Errorf("the cached StartGate %s is out of date", gate.Name)
		}
		return nil
	}
	return nil
}

// setConflict tells of a ConfigMap that belongs to somebody else: pods that cannot reach
// the API do not learn that they may start.
func setConflict(status *grovev1alpha1.StartGateStatus, gate *grovev1alpha1.StartGate, pcs *grovev1alpha1.PodCliqueSet, replica int32, made error, now time.Time) {
	if conflict := (conflictError{"ConfigMap", naming.GateConfigMap(pcs.Name, replica)}); errors.Is(made, conflict) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: grovev1alpha1.ConditionTypeNameConflict, Status: metav1.ConditionTrue, Reason: grovev1alpha1.ReasonForeignConfigMap,
			Message:            conflict.Error() + ": it is left alone, and pods that cannot reach the API wait in vain",
			ObservedGeneration: gate.Generation, LastTransitionTime: metav1.NewTime(now),
		})
		return
	}
	if made == nil {
		meta.RemoveStatusCondition(&status.Conditions, grovev1alpha1.ConditionTypeNameConflict)
	}
}

// conflictError is a name that is taken.
type conflictError struct{ kind, name string }

func (e conflictError) Error() string {
	return fmt.Sprintf("%s %s exists and belongs to something else", e.kind, e.name)
}
