package rules

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/fields"
)

// GroupPer says for what there is a group.
type GroupPer string

const (
	// GroupPerOwner is one group for all pods of an owner.
	GroupPerOwner GroupPer = "Owner"
	// GroupPerPod is a group for each pod.
	GroupPerPod GroupPer = "Pod"
)

// Declaration is a rule without code, for a kind whose fields say all that has to be known.
// Paths are names of fields with dots between them, such as spec.minAvailable.
type Declaration struct {
	// Group of the kind; empty for kinds of Kubernetes' core.
	Group string `json:"group,omitempty"`
	// Kind of the workload.
	Kind string `json:"kind"`
	// GroupPer is Owner, the default, or Pod.
	GroupPer GroupPer `json:"groupPer,omitempty"`
	// MinMemberPath leads to the minimum. Without it, or where the field is not there or 0,
	// all replicas are needed.
	MinMemberPath string `json:"minMemberPath,omitempty"`
	// ReplicasPath leads to the number of pods. Without it one pod is enough.
	ReplicasPath string `json:"replicasPath,omitempty"`
	// PriorityClassPath leads to the name of the PriorityClass.
	PriorityClassPath string `json:"priorityClassPath,omitempty"`
	// PriorityClassName where the workload names none; train by default.
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// Declared is the rule of a Declaration.
type Declared struct {
	kind                              schema.GroupKind
	perPod                            bool
	priorityClass                     string
	minMember, replicas, priorityPath []string
}

// Declare returns the rule of a declaration that stands at a path, or what is wrong with it.
func Declare(declaration Declaration, path *field.Path) (Declared, field.ErrorList) {
	var errs field.ErrorList
	rule := Declared{
		kind:          schema.GroupKind{Group: declaration.Group, Kind: declaration.Kind},
		priorityClass: declaration.PriorityClassName,
	}
	if declaration.Kind == "" {
		errs = append(errs, field.Required(path.Child("kind"), "the kind of the workload"))
	}
	switch declaration.GroupPer {
	case "", GroupPerOwner:
	case GroupPerPod:
		rule.perPod = true
		if declaration.MinMemberPath != "" {
			errs = append(errs, field.Forbidden(path.Child("minMemberPath"), "a group per pod has one pod"))
		}
		if declaration.ReplicasPath != "" {
			errs = append(errs, field.Forbidden(path.Child("replicasPath"), "a group per pod has one pod"))
		}
	default:
		errs = append(errs, field.NotSupported(path.Child("groupPer"), declaration.GroupPer, []GroupPer{GroupPerOwner, GroupPerPod}))
	}
	if rule.priorityClass == "" {
		rule.priorityClass = podgrouper.TrainPriorityClass
	}
	for _, msg := range validation.IsDNS1123Subdomain(rule.priorityClass) {
		errs = append(errs, field.Invalid(path.Child("priorityClassName"), rule.priorityClass, msg))
	}
	rule.minMember = parsePath(declaration.MinMemberPath, path.Child("minMemberPath"), &errs)
	rule.replicas = parsePath(declaration.ReplicasPath, path.Child("replicasPath"), &errs)
	rule.priorityPath = parsePath(declaration.PriorityClassPath, path.Child("priorityClassPath"), &errs)
	return rule, errs
}

// parsePath cuts a path into names of fields.
func parsePath(value string, path *field.Path, errs *field.ErrorList) []string {
	if value == "" {
		return nil
	}
	names := strings.Split(value, ".")
	for _, name := range names {
		if name == "" || strings.ContainsAny(name, "[]{}*$ ") {
			*errs = append(*errs, field.Invalid(path, value, "must be names of fields with dots between them, such as spec.minAvailable"))
			return nil
		}
	}
	return names
}

// Name of the rule.
func (r Declared) Name() string { return "Declared:" + r.kind.String() }

// Kinds that it groups the pods of.
func (r Declared) Kinds() []schema.GroupKind { return []schema.GroupKind{r.kind} }

// Identify says which group a pod is in.
func (r Declared) Identify(podgrouper.Input) (podgrouper.Membership, error) {
	return podgrouper.Membership{PerPod: r.perPod, PriorityClassName: r.priorityClass, PriorityInOwner: len(r.priorityPath) > 0}, nil
}

// Describe reads the fields that the paths lead to.
func (r Declared) Describe(_ context.Context, _ podgrouper.Input, owner fields.Fields, _ client.Reader) (podgrouper.Shape, error) {
	var shape podgrouper.Shape
	if len(r.priorityPath) > 0 {
		shape.OwnerPriorityClassName = owner.String(r.priorityPath...)
	}
	if len(r.replicas) > 0 {
		shape.AtOnce = owner.Count(r.replicas...)
		shape.MinMember = shape.AtOnce
	}
	if len(r.minMember) > 0 {
		if count := or(owner.Count(r.minMember...), 0); count > 0 {
			shape.MinMember = &count
		}
	}
	if shape.MinMember != nil && shape.AtOnce != nil {
		shape.MinMember, shape.Notes = atMost(*shape.MinMember, *shape.AtOnce)
	}
	return shape, nil
}
