package podgroup

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/podgroup/pods"
	"github.com/copse-dev/copse/pkg/controllers/podgroup/status"
	schedulerac "github.com/copse-dev/copse/pkg/generated/applyconfiguration/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/naming"
	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/desired"
	"github.com/copse-dev/copse/pkg/podgrouper/owners"
)

// appliedAnnotation tells of a PodGroup what it was made from, so that nothing is written
// while that is the same: also a label that the workload has no more shows in it.
const appliedAnnotation = "scheduler.grove.io/applied-hash"

// lasting is how long an owner may be missing before that is worth an event.
const lasting = time.Minute

// reasonPodGroupMissing is the reason of events on pods whose PodGroup is gone.
const reasonPodGroupMissing = "PodGroupMissing"

// reasonOwnerMissing is the reason of events on pods that cannot be grouped.
const reasonOwnerMissing = "OwnerMissing"

// follow has the PodGroup follow its workload. A group that somebody else made is left
// alone, and so is one without a pod that lives: garbage collection takes it.
func (r *Reconciler) follow(ctx context.Context, store store, s *state) error {
	speaker := oldest(s.members, func(pod *corev1.Pod) bool { return isOurs(pod) && inSchedulersGroup(pod) })
	if speaker == nil {
		speaker = oldest(s.members, isOurs)
	}
	if speaker == nil {
		r.owners.forget(s.key)
		if !slices.ContainsFunc(s.members, isThere) {
			r.queue.add(r.stray.put(s.key, nil)...)
		}
		return nil
	}
	if s.group != nil && !podgrouper.IsMade(s.group) {
		return nil
	}
	// A stripped pod has what grouping reads; what is kept in the cache is not changed.
	pod := speaker.DeepCopy()
	chain, err := r.Grouping.Resolver().Find(ctx, pod)
	r.owners.remember(s.key, chain.Owners)
	r.owners.follow(ctx, chain.Owners)
	if isGoing(s, err) {
		return nil
	}
	if err != nil {
		r.tellMissing(pod, err)
		return fmt.Errorf("find the owners of pod %s: %w", pod.Name, err)
	}
	group, err := r.Grouping.Current().Describe(ctx, pod, chain, r.reader)
	if podgrouper.IsInvalid(err) {
		s.invalid = err
		group, err = r.leastGroup(s, pod, chain)
	}
	if isGoing(s, err) {
		return nil
	}
	if err != nil {
		r.tellMissing(pod, err)
		return fmt.Errorf("describe the group of pod %s: %w", pod.Name, err)
	}
	if group != nil {
		r.followStrays(ctx, s, group)
	}
	if s.stray {
		group = stray(group, s.key.Name)
		if s.group != nil {
			// It stays as it was.
			group = nil
		}
	}
	if group != nil && group.Needed() {
		s.described = group
		if err := r.apply(ctx, store, s); err != nil {
			return err
		}
	}
	r.tellInvalid(s)
	return nil
}

// isGoing says that a workload is gone that has a group: its pods are about to go as well,
// and the group is as good as it was.
func isGoing(s *state, err error) bool {
	return s.group != nil && (owners.IsMissing(err) || apierrors.IsNotFound(err))
}

// leastGroup is what there is of a group whose workload does not say what it needs: enough
// to tell what is wrong. One that there is stays as it was.
func (r *Reconciler) leastGroup(s *state, pod *corev1.Pod, chain owners.Chain) (*podgrouper.Group, error) {
	if s.group != nil {
		return nil, nil
	}
	id, err := r.Grouping.Current().Identify(pod, chain)
	if err != nil {
		return nil, err
	}
	return &podgrouper.Group{Identity: id, MinMember: ptr.To[int32](1)}, nil
}

// stray is the group of pods that were put into it when other things were asked for. Later
// pods are in another, so it waits for none.
func stray(group *podgrouper.Group, name string) *podgrouper.Group {
	out := *group
	out.Name, out.MinMember, out.MinSubGroup, out.SubGroups = name, ptr.To[int32](1), nil, nil
	return &out
}

// apply writes the PodGroup that is wanted, unless it is as it should be.
func (r *Reconciler) apply(ctx context.Context, store store, s *state) error {
	wanted := desired.PodGroup(s.described, withQueue(s))
	hash, err := hashOf(s.described)
	if err != nil {
		return err
	}
	wanted.WithAnnotations(map[string]string{appliedAnnotation: hash})
	if s.group != nil && isApplied(s.group, wanted) {
		return nil
	}
	created := s.group == nil
	applied, err := store.apply(ctx, wanted)
	if err != nil {
		return fmt.Errorf("apply PodGroup %s: %w", s.key.Name, err)
	}
	s.group = applied
	if created {
		r.Metrics.PodGroupMade(s.described.Rule)
	}
	for _, note := range r.notes.fresh(s.key, s.described.Notes) {
		r.Recorder.Eventf(applied, nil, eventType(note.Reason), note.Reason, "Group", "%s", note.Message)
	}
	return nil
}

// withQueue is the PodGroup that there is. One of KAI's without a queue, such as one that was
// made before its workload said what it needs, gets that of its label or the workload's: KAI
// never places it without, so that is nobody's wish.
func withQueue(s *state) *schedulerv1alpha1.PodGroup {
	if s.group == nil || s.backEnd != podgrouper.KAI || s.group.Spec.Queue != "" {
		return s.group
	}
	out := s.group.DeepCopy()
	out.Spec.Queue = cmp.Or(out.Labels[podgrouper.QueueLabel], s.described.Queue)
	metav1.SetMetaDataLabel(&out.ObjectMeta, podgrouper.QueueLabel, out.Spec.Queue)
	return out
}

// eventType is Normal for what is as its user made it, and no mistake.
func eventType(reason string) string {
	switch reason {
	case string(owners.ReasonClusterScoped), string(owners.ReasonGone), string(owners.ReasonSeveralOwners):
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}

// hashOf condenses all that is said about a group, the notes included.
func hashOf(group *podgrouper.Group) (string, error) {
	text, err := json.Marshal(group)
	if err != nil {
		return "", fmt.Errorf("condense the group: %w", err)
	}
	return naming.Hash(string(text)), nil
}

// isApplied says that a PodGroup is as it is wanted, also where others have written to it.
func isApplied(live *schedulerv1alpha1.PodGroup, wanted *schedulerac.PodGroupApplyConfiguration) bool {
	for _, owner := range wanted.OwnerReferences {
		if !slices.ContainsFunc(live.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.UID == *owner.UID }) {
			return false
		}
	}
	return contains(live.Labels, wanted.Labels) && contains(live.Annotations, wanted.Annotations) && hasSpec(live, wanted)
}

func contains(all, some map[string]string) bool {
	for key := range maps.Keys(some) {
		if value, ok := all[key]; !ok || value != some[key] {
			return false
		}
	}
	return true
}

// hasSpec compares what is the pod grouper's alone; the rest is taken from live anyway.
func hasSpec(live *schedulerv1alpha1.PodGroup, wanted *schedulerac.PodGroupApplyConfiguration) bool {
	text, err := json.Marshal(wanted.Spec)
	if err != nil {
		return false
	}
	spec := schedulerv1alpha1.PodGroupSpec{}
	if err := json.Unmarshal(text, &spec); err != nil {
		return false
	}
	if spec.MinMember == nil && spec.MinSubGroup == nil {
		// It has a default.
		spec.MinMember = ptr.To[int32](1)
	}
	spec.MarkUnschedulable, spec.SchedulingBackoff = live.Spec.MarkUnschedulable, live.Spec.SchedulingBackoff
	return apiequality.Semantic.DeepEqual(spec, live.Spec)
}

// tellInvalid says once what is wrong with a workload: the condition remembers it.
func (r *Reconciler) tellInvalid(s *state) {
	// The status of KAI's groups is KAI's, so what was told of them is remembered here.
	kept := s.key.String()
	if s.invalid == nil {
		r.notes.forget(kept)
	}
	if s.invalid == nil || s.group == nil {
		return
	}
	if s.backEnd == podgrouper.KAI && !r.notes.changed(kept, s.invalid.Error()) {
		return
	}
	told := meta.FindStatusCondition(s.group.Status.Conditions, schedulerv1alpha1.PodGroupConditionInvalid)
	if told != nil && told.Status == metav1.ConditionTrue && told.Message == s.invalid.Error() {
		return
	}
	r.Recorder.Eventf(s.group, nil, corev1.EventTypeWarning, status.ReasonInvalidOwner, "Group", "the group does not follow its workload: %v", s.invalid)
}

// tellWithoutGroup says on pods that name a PodGroup themselves that it is not there: they
// are not placed without it. It is read live first, for a pod is often seen before the PodGroup
// that was made before it.
func (r *Reconciler) tellWithoutGroup(ctx context.Context, s *state) error {
	var waiting []*corev1.Pod
	for _, pod := range s.members {
		waits := pod.Spec.NodeName == "" && (inSchedulersGroup(pod) || isHeld(pod))
		if waits && !pods.IsGrouped(pod) && pod.DeletionTimestamp == nil && !pods.HasEnded(pod) && !r.notes.told(reasonPodGroupMissing+string(pod.UID)) {
			waiting = append(waiting, pod)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	group, err := getOwn(ctx, r.Live, s.key)
	if err != nil {
		return err
	}
	if group != nil && group.DeletionTimestamp != nil {
		group = nil
	}
	for _, pod := range waiting {
		missing := missingFor(pod, group)
		if missing == "" || !r.notes.first(reasonPodGroupMissing+string(pod.UID)) {
			continue
		}
		r.Recorder.Eventf(pod, nil, corev1.EventTypeWarning, reasonPodGroupMissing, "Group", "PodGroup %s, which the pod names, %s", s.key.Name, missing)
	}
	return nil
}

// missingFor says what a pod is to do without its PodGroup; nothing if the pod is in the one
// that there is now. Who makes one anew makes another for Kubernetes' own scheduler, which
// takes no pods later; our gate is taken away by any of the name.
func missingFor(pod *corev1.Pod, group *schedulerv1alpha1.PodGroup) string {
	switch {
	case !inSchedulersGroup(pod) && group != nil, group != nil && isIn(pod, podgrouper.NativeNameOf(group)):
		return ""
	case !inSchedulersGroup(pod):
		return "does not exist: the pod is held until there is one of this name"
	}
	return "is gone: delete the pod, and create it anew after the PodGroup"
}

// tellMissing says on a pod that its owner does not exist, if that lasts: caches and
// garbage collection may just be slow.
func (r *Reconciler) tellMissing(pod *corev1.Pod, err error) {
	if owners.IsMissing(err) && r.Clock.Since(pod.CreationTimestamp.Time) > lasting && r.notes.first(reasonOwnerMissing+string(pod.UID)) {
		r.Recorder.Eventf(pod, nil, corev1.EventTypeWarning, reasonOwnerMissing, "Group", "the pod is not grouped: %v", err)
	}
}
