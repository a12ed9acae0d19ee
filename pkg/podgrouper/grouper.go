package podgrouper

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/copse-dev/copse/pkg/podgrouper/fields"
	"github.com/copse-dev/copse/pkg/podgrouper/owners"
)

// Grouper groups pods by the rules of a registry.
type Grouper struct {
	registry   *Registry
	options    Options
	passedOver map[schema.GroupKind]bool
}

// New returns a Grouper. It does not change; another configuration is another Grouper.
func New(registry *Registry, options Options) *Grouper {
	if options.PriorityClasses == nil {
		options.PriorityClasses = noPriorityClasses{}
	}
	g := &Grouper{registry: registry, options: options, passedOver: map[schema.GroupKind]bool{}}
	for _, kind := range options.PassedOver {
		g.passedOver[kind] = true
	}
	return g
}

// Identify says which group a pod is in. It reads nothing: all it needs is the pod and the
// metadata of its owners.
func (g *Grouper) Identify(pod *corev1.Pod, chain owners.Chain) (Identity, error) {
	decided, err := g.decide(pod, chain)
	if err != nil || decided.identity.Exempt != "" {
		return decided.identity, err
	}
	return decided.identify(decided.membership.OwnerPriorityClassName), nil
}

// Describe says what the group of a pod wants, from its owner as it is now. Where pods of
// one group ask for different things in their own metadata, the answer depends on the pod,
// so the caller asks with the oldest one. An error that IsInvalid is the owner's, and
// stays until the owner changes; others are worth a retry.
func (g *Grouper) Describe(ctx context.Context, pod *corev1.Pod, chain owners.Chain, reader client.Reader) (*Group, error) {
	decided, err := g.decide(pod, chain)
	if err != nil || decided.identity.Exempt != "" {
		return &Group{Identity: decided.identity}, err
	}
	owner, err := readOwner(ctx, decided.settings.Owner, reader)
	if err != nil {
		return nil, err
	}
	f := fields.Of(owner)
	shape, err := decided.rule.Describe(ctx, decided.settings.Input, f, reader)
	if err != nil {
		return nil, fmt.Errorf("rule %s: %w", decided.rule.Name(), err)
	}
	if err := f.Err(); err != nil {
		return nil, decided.invalid(err)
	}
	return decided.describe(shape)
}

// InvalidOwnerError says that the fields of an owner are not as they have to be.
type InvalidOwnerError struct {
	// Kind and Name of the owner.
	Kind, Name string
	// Err names the fields.
	Err error
}

// Error says it for people.
func (e *InvalidOwnerError) Error() string {
	return fmt.Sprintf("%s %s: %s", e.Kind, e.Name, e.Err)
}

// Unwrap is what is wrong with the fields.
func (e *InvalidOwnerError) Unwrap() error { return e.Err }

// IsInvalid says whether an error is about what an owner's fields say.
func IsInvalid(err error) bool {
	var invalid *InvalidOwnerError
	return errors.As(err, &invalid)
}

func readOwner(ctx context.Context, meta *metav1.PartialObjectMetadata, reader client.Reader) (*unstructured.Unstructured, error) {
	if meta == nil {
		return nil, nil
	}
	owner := &unstructured.Unstructured{}
	owner.SetGroupVersionKind(meta.GroupVersionKind())
	if err := reader.Get(ctx, types.NamespacedName{Namespace: meta.Namespace, Name: meta.Name}, owner); err != nil {
		return nil, fmt.Errorf("read %s %s/%s: %w", meta.Kind, meta.Namespace, meta.Name, err)
	}
	if owner.GetUID() != meta.UID {
		return nil, &owners.MissingError{
			Ref:       metav1.OwnerReference{APIVersion: meta.APIVersion, Kind: meta.Kind, Name: meta.Name, UID: meta.UID},
			Namespace: meta.Namespace, Found: string(owner.GetUID()),
		}
	}
	return owner, nil
}
