package podgrouper

import (
	"fmt"
	"maps"
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
)

// level is a place where people ask for something.
type level struct {
	what                string
	labels, annotations map[string]string
}

// levels are the places where metadata is looked at, the one that counts most first: the
// owner, those that are passed over, the pod. After them come the pod's spec, the defaults
// that are configured for the kind, and the rule's, for every setting alike.
func (in Input) levels() []level {
	levels := in.ownerLevels()
	return append(levels, level{what: "the pod", labels: in.Pod.Labels, annotations: in.Pod.Annotations})
}

func (in Input) ownerLevels() []level {
	levels := make([]level, 0, len(in.Above)+2)
	if in.Owner != nil {
		levels = append(levels, level{what: in.Owner.Kind + " " + in.Owner.Name, labels: in.Owner.Labels, annotations: in.Owner.Annotations})
	}
	for _, owner := range in.Above {
		levels = append(levels, level{what: owner.Kind + " " + owner.Name, labels: owner.Labels, annotations: owner.Annotations})
	}
	return levels
}

// settings reads what people ask for about one pod, and notes what it cannot follow.
type settings struct {
	Input
	options Options
	backEnd BackEnd
	notes   []Note
}

func (s *settings) note(reason, format string, args ...any) {
	s.notes = append(s.notes, Note{Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// label is the first value of a label that is as it has to be.
func (s *settings) label(key string, check func(string) string) string {
	for _, level := range s.levels() {
		if value := level.labels[key]; value != "" && s.passes(level.what, "label "+key, value, check) {
			return value
		}
	}
	return ""
}

func (s *settings) passes(where, key, value string, check func(string) string) bool {
	wrong := check(value)
	if wrong != "" {
		s.note(ReasonInvalidOverride, "%s %q of %s is passed over: %s", key, value, where, wrong)
	}
	return wrong == ""
}

// configured is what the configuration has for the kind that the pod is grouped by, or for
// one that is passed over.
func configured[T comparable](s *settings, setting func(KindDefaults) T) T {
	var none T
	kinds := []schema.GroupKind{podKind}
	if s.Owner != nil {
		kinds = []schema.GroupKind{kindOf(s.Owner)}
	}
	for _, owner := range s.Above {
		kinds = append(kinds, kindOf(owner))
	}
	for _, kind := range kinds {
		// One that is configured without a group is for the kind in any.
		for _, key := range []schema.GroupKind{kind, {Kind: kind.Kind}} {
			if value := setting(s.options.Kinds[key]); value != none {
				return value
			}
		}
	}
	return none
}

func (s *settings) minMember() *int32 {
	for _, level := range s.levels() {
		value := level.annotations[MinMemberAnnotation]
		if value == "" {
			continue
		}
		count, err := strconv.ParseInt(value, 10, 32)
		if err != nil || count < 1 {
			s.note(ReasonInvalidOverride, "annotation %s %q of %s is passed over: must be a whole number from 1 to %d", MinMemberAnnotation, value, level.what, math.MaxInt32)
			continue
		}
		out := int32(count)
		return &out
	}
	if count := configured(s, func(d KindDefaults) int32 { return d.MinMember }); count > 0 {
		return &count
	}
	return nil
}

func (s *settings) nodePool() string {
	if pool := s.label(NodePoolLabel, func(string) string { return "" }); pool != "" {
		return pool
	}
	if pool := s.Pod.Spec.NodeSelector[NodePoolLabel]; pool != "" {
		return pool
	}
	return configured(s, func(d KindDefaults) string { return d.NodePool })
}

// queue is the one that is named, or the one that the project has in its node pool. Other
// schedulers than KAI know no queues, and have no default one.
func (s *settings) queue(nodePool string) string {
	for _, level := range s.levels() {
		if queue := level.labels[QueueLabel]; queue != "" && s.passes(level.what, "label "+QueueLabel, queue, subdomain) {
			return queue
		}
		project := level.labels[ProjectLabel]
		if project == "" {
			continue
		}
		queue := project
		if nodePool != "" {
			queue += "-" + nodePool
		}
		if s.passes(level.what, "queue of label "+ProjectLabel, queue, subdomain) {
			return queue
		}
	}
	if queue := configured(s, func(d KindDefaults) string { return d.Queue }); queue != "" {
		return queue
	}
	if s.backEnd == KAI {
		return DefaultQueue
	}
	return ""
}

func (s *settings) preemptibility() string {
	value := s.label(PreemptibilityLabel, func(value string) string {
		if value != string(schedulerv1alpha1.Preemptible) && value != string(schedulerv1alpha1.NonPreemptible) {
			return `must be "preemptible" or "non-preemptible"`
		}
		return ""
	})
	if value != "" {
		return value
	}
	return configured(s, func(d KindDefaults) string { return d.Preemptibility })
}

// priorityClass is the class that is asked for and exists, and whether it is the owner's
// label that does. ofOwner is what the owner asks for in its own way, which counts right
// after its label; ofRule is what nobody has to ask for, so that its absence is not worth a
// word.
func (s *settings) priorityClass(ofOwner, ofRule string) (class string, byLabel bool) {
	known := func(class, where string) bool {
		if class == "" {
			return false
		}
		if !s.options.PriorityClasses.Exists(class) {
			s.note(ReasonUnknownPriorityClass, "PriorityClass %q of %s is passed over: it does not exist", class, where)
			return false
		}
		return true
	}
	levels := s.levels()
	for i, level := range levels {
		if class := level.labels[PriorityClassLabel]; known(class, level.what) {
			return class, i == 0 && s.Owner != nil
		}
		if i == 0 && s.Owner != nil && known(ofOwner, level.what) {
			return ofOwner, false
		}
	}
	// The API server writes the cluster's default class into pods that ask for none.
	if class := s.Pod.Spec.PriorityClassName; class != s.options.PriorityClasses.GlobalDefault() && known(class, "the pod's spec") {
		return class, false
	}
	if class := configured(s, func(d KindDefaults) string { return d.PriorityClassName }); known(class, "the configuration") {
		return class, false
	}
	if ofRule != "" && s.options.PriorityClasses.Exists(ofRule) {
		return ofRule, false
	}
	return "", false
}

// topology is what the annotations of owners ask for; those of pods are for parts of a
// group, unless the pod is the whole.
func (s *settings) topology(perPod bool, ofRule *Topology) *Topology {
	levels := s.ownerLevels()
	if perPod {
		levels = s.levels()
	}
	first := func(key string) string {
		for _, level := range levels {
			if value := level.annotations[key]; value != "" {
				return value
			}
		}
		return ""
	}
	asked, note := ReadTopology(first(TopologyAnnotation), first(RequiredPlacementAnnotation), first(PreferredPlacementAnnotation))
	s.notes = append(s.notes, note...)
	if asked == nil {
		return ofRule
	}
	return asked
}

// metadata of the workload, for the group; what the owner lacks comes from those that are
// passed over.
func (s *settings) metadata() (labels, annotations map[string]string) {
	labels, annotations = map[string]string{}, map[string]string{}
	levels := s.ownerLevels()
	if s.Owner == nil {
		levels = append([]level{{labels: s.Pod.Labels, annotations: s.Pod.Annotations}}, levels...)
	}
	for i := len(levels) - 1; i >= 0; i-- {
		maps.Copy(labels, levels[i].labels)
		maps.Copy(annotations, levels[i].annotations)
	}
	// What says something about that one object would be wrong about the group.
	for _, key := range []string{corev1.LastAppliedConfigAnnotation, "deployment.kubernetes.io/revision", PodGroupAnnotation, GroupedByAnnotation, MadeAsAnnotation, FirstPodsAnnotation, KAISkipAnnotation} {
		delete(annotations, key)
	}
	return labels, annotations
}

func subdomain(value string) string {
	if msgs := validation.IsDNS1123Subdomain(value); len(msgs) > 0 {
		return msgs[0]
	}
	return ""
}
