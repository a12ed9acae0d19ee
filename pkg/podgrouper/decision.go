package podgrouper

import (
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/podgrouper/owners"
)

// decision is what metadata alone decides about a pod.
type decision struct {
	rule       Rule
	settings   *settings
	membership Membership
	identity   Identity
}

func (g *Grouper) decide(pod *corev1.Pod, chain owners.Chain) (decision, error) {
	d := decision{identity: Identity{Namespace: pod.Namespace, Exempt: g.exempt(pod, chain)}}
	if d.identity.Exempt != "" {
		return d, nil
	}
	rule, in := g.registry.place(chain.Owners, g.passedOver)
	in.Pod = pod
	d.rule, d.settings = rule, &settings{Input: in, options: g.options, backEnd: g.BackEnd(pod)}
	for _, note := range chain.Notes {
		d.settings.note(string(note.Reason), "%s", note.Message)
	}
	d.settings.MinMember = d.settings.minMember()
	membership, err := rule.Identify(d.settings.Input)
	if err != nil {
		return d, fmt.Errorf("rule %s: %w", rule.Name(), err)
	}
	d.membership = membership
	d.settings.notes = append(d.settings.notes, membership.Notes...)
	return d, nil
}

// identify completes the identity; ofOwner is the class that the owner asks for in its own
// way.
func (d *decision) identify(ofOwner string) Identity {
	id, in := d.identity, d.settings.Input
	id.Rule, id.PerPod, id.SubGroup = d.rule.Name(), d.membership.PerPod, d.membership.SubGroup
	if in.MinMember != nil {
		// A minimum in pods leaves no subgroups, see describe.
		id.SubGroup = ""
	}
	id.Owner = ownerRef(in.Owner)
	if id.PerPod || id.Owner == nil {
		id.Owner = podRef(in.Pod)
	}
	id.Name = d.groupName()
	class, byLabel := d.settings.priorityClass(ofOwner, d.membership.PriorityClassName)
	id.PriorityClassName = class
	id.PriorityInOwner = d.membership.PriorityInOwner && ofOwner == "" && !byLabel
	id.Notes = d.settings.notes
	return id
}

func ownerRef(owner *metav1.PartialObjectMetadata) *metav1.OwnerReference {
	if owner == nil {
		return nil
	}
	return &metav1.OwnerReference{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: owner.UID}
}

func podRef(pod *corev1.Pod) *metav1.OwnerReference {
	if pod.UID == "" {
		return nil
	}
	return &metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
}

// invalid blames the owner, or the pod that has none.
func (d *decision) invalid(err error) error {
	if owner := d.settings.Owner; owner != nil {
		return &InvalidOwnerError{Kind: owner.Kind, Name: owner.Name, Err: err}
	}
	return &InvalidOwnerError{Kind: podKind.Kind, Name: d.settings.Pod.Name, Err: err}
}

// describe applies what people ask for to the shape of a group.
func (d *decision) describe(shape Shape) (*Group, error) {
	s := d.settings
	s.notes = append(s.notes, shape.Notes...)
	if err := checkCounts(shape); err != nil {
		return nil, d.invalid(err)
	}
	ofOwner := d.membership.OwnerPriorityClassName
	if shape.OwnerPriorityClassName != "" {
		ofOwner = shape.OwnerPriorityClassName
	}
	group := &Group{SubGroups: shape.SubGroups}
	d.setMinimum(group, shape)
	group.NodePool = s.nodePool()
	group.Queue = s.queue(group.NodePool)
	group.Preemptibility = s.preemptibility()
	group.Topology = s.topology(d.membership.PerPod, shape.Topology)
	group.MarkUnschedulable = configured(s, func(k KindDefaults) *bool { return k.MarkUnschedulable })
	group.SchedulingBackoff = configured(s, func(k KindDefaults) *int32 { return k.SchedulingBackoff })
	group.Labels, group.Annotations = s.metadata()
	group.Identity = d.identify(ofOwner)
	if shape.Owner != nil {
		group.Owner = shape.Owner
	}
	return group, nil
}

// setMinimum sets how much of a group is enough. A minimum that was asked for is one in
// pods, whichever they are, so it leaves no subgroups. It is held to what can come true: a
// gang that waits for a pod which does not come until the gang runs waits for ever.
func (d *decision) setMinimum(group *Group, shape Shape) {
	s := d.settings
	if s.MinMember == nil {
		group.MinMember, group.MinSubGroup = toInt32(shape.MinMember), toInt32(shape.MinSubGroup)
		group.FirstPods, group.FirstPast = shape.FirstPods, shape.FirstPast
		if group.MinSubGroup == nil && len(group.SubGroups) == 0 {
			group.MinMember = ptr.To(max(1, ptr.Deref(group.MinMember, 1)))
		}
		return
	}
	group.SubGroups = nil
	most := int64(math.MaxInt32)
	if shape.AtOnce != nil {
		most = max(1, *shape.AtOnce)
	}
	if d.membership.PerPod {
		most = 1
	}
	asked := int64(*s.MinMember)
	if asked > most {
		s.note(ReasonMinMemberTooHigh, "a minimum of %d pods is asked for, but no more than %d come at once; %d counts", asked, most, most)
	}
	group.MinMember = ptr.To(int32(min(asked, most)))
}

// checkCounts refuses sums that are no number of pods.
func checkCounts(shape Shape) error {
	counts := []*int64{shape.MinMember, shape.MinSubGroup, shape.FirstPods}
	for i := range shape.SubGroups {
		counts = append(counts, shape.SubGroups[i].MinMember, shape.SubGroups[i].MinSubGroup)
	}
	for _, count := range counts {
		if n := ptr.Deref(count, 0); n < 0 || n > math.MaxInt32 {
			return field.Invalid(field.NewPath("spec"), n, "the pods that have to be scheduled together must be a number from 0 to 2147483647")
		}
	}
	return nil
}

func toInt32(count *int64) *int32 {
	if count == nil {
		return nil
	}
	return ptr.To(int32(*count))
}
