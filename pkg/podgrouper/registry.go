package podgrouper

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var podKind = schema.GroupKind{Kind: "Pod"}

// Registry knows the rule of each kind.
type Registry struct {
	rules    map[schema.GroupKind]Rule
	pod      Rule
	fallback Rule
}

// NewRegistry returns a registry. The rule for pods is for those that have no owner to be
// grouped by, the fallback for owners of kinds that have no rule. Where two rules have the
// same kind the later one counts, so that a configured rule can replace a built-in one.
func NewRegistry(pod, fallback Rule, rules ...Rule) *Registry {
	r := &Registry{rules: map[schema.GroupKind]Rule{}, pod: pod, fallback: fallback}
	for _, rule := range append([]Rule{pod}, rules...) {
		for _, kind := range rule.Kinds() {
			r.rules[kind] = rule
		}
	}
	return r
}

// place finds the owner that a pod is grouped by, and its rule: the highest owner that has
// one. A kind that is passed over hands on to those below it, and so does everything above
// it, which only orders its work. An owner without a rule hands on as well
// (KAI-Scheduler#856); if no other below it has one, the highest counts.
func (r *Registry) place(owners []*metav1.PartialObjectMetadata, passedOver map[schema.GroupKind]bool) (Rule, Input) {
	top := len(owners)
	for i, owner := range owners {
		if passedOver[kindOf(owner)] {
			top = i
			break
		}
	}
	if top == 0 {
		return r.pod, Input{Above: owners}
	}
	at := func(i int) Input {
		return Input{Owner: owners[i], Below: owners[:i], Above: owners[i+1:]}
	}
	for i := top - 1; i >= 0; i-- {
		kind := kindOf(owners[i])
		// A pod that owns pods is itself grouped by what owns it; so are they.
		if kind == podKind && i < top-1 {
			continue
		}
		if rule, ok := r.rules[kind]; ok {
			return rule, at(i)
		}
	}
	return r.fallback, at(top - 1)
}

func kindOf(owner *metav1.PartialObjectMetadata) schema.GroupKind {
	return owner.GroupVersionKind().GroupKind()
}
