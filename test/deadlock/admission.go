package deadlock

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/copse-dev/copse/pkg/apis/grove"
	groveinstall "github.com/copse-dev/copse/pkg/apis/grove/install"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/apis/scheduler"
	schedulerinstall "github.com/copse-dev/copse/pkg/apis/scheduler/install"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/registry/grove/podclique"
	"github.com/copse-dev/copse/pkg/registry/grove/podcliquescalinggroup"
	"github.com/copse-dev/copse/pkg/registry/grove/podcliqueset"
	"github.com/copse-dev/copse/pkg/registry/grove/startgate"
	"github.com/copse-dev/copse/pkg/registry/scheduler/podgang"
)

// admission is what the API server does with objects that are written: its defaults and
// its strategies.
type admission struct {
	scheme                          *runtime.Scheme
	set, group, clique, gang, gates strategies
}

type strategies struct {
	main interface {
		rest.RESTCreateStrategy
		rest.RESTUpdateStrategy
	}
	status rest.RESTUpdateStrategy
}

func newAdmission() *admission {
	scheme := runtime.NewScheme()
	groveinstall.Install(scheme)
	schedulerinstall.Install(scheme)
	set, group, clique := podcliqueset.NewStrategy(scheme, podcliqueset.Defaults{}, nil), podcliquescalinggroup.NewStrategy(scheme), podclique.NewStrategy(scheme)
	gang, gate := podgang.NewStrategy(scheme), startgate.NewStrategy(scheme)
	return &admission{
		scheme: scheme,
		set:    strategies{set, podcliqueset.NewStatusStrategy(set)},
		group:  strategies{group, podcliquescalinggroup.NewStatusStrategy(group)},
		clique: strategies{clique, podclique.NewStatusStrategy(clique)},
		gang:   strategies{gang, podgang.NewStatusStrategy(gang)},
		gates:  strategies{gate, startgate.NewStatusStrategy(gate)},
	}
}

// rulesFor are the strategies of an object's kind, and an empty object of it as the
// strategies know it.
func (a *admission) rulesFor(obj client.Object) (strategies, runtime.Object) {
	switch obj.(type) {
	case *grovev1alpha1.PodCliqueSet:
		return a.set, &grove.PodCliqueSet{}
	case *grovev1alpha1.PodCliqueScalingGroup:
		return a.group, &grove.PodCliqueScalingGroup{}
	case *grovev1alpha1.PodClique:
		return a.clique, &grove.PodClique{}
	case *grovev1alpha1.StartGate:
		return a.gates, &grove.StartGate{}
	case *schedulerv1alpha1.PodGang:
		return a.gang, &scheduler.PodGang{}
	}
	return strategies{}, nil
}

// create brings an object into the form in which the server stores it, or says why not.
func (a *admission) create(obj client.Object) (field.ErrorList, error) {
	obj.SetUID(types.UID("uid-of-" + obj.GetName()))
	obj.SetGeneration(1)
	obj.SetResourceVersion("1")
	rules, hub := a.rulesFor(obj)
	if hub == nil {
		// Of the cluster's own server.
		return nil, nil
	}
	a.scheme.Default(obj)
	if err := a.scheme.Convert(obj, hub, nil); err != nil {
		return nil, fmt.Errorf("convert %s: %w", obj.GetName(), err)
	}
	rules.main.PrepareForCreate(context.Background(), hub)
	errs := rules.main.Validate(context.Background(), hub)
	return errs, a.scheme.Convert(hub, obj, nil)
}

// update does so with a change of an object, or of its status alone.
func (a *admission) update(obj, before client.Object, status bool) error {
	rules, hub := a.rulesFor(obj)
	_, old := a.rulesFor(before)
	strategy := rest.RESTUpdateStrategy(rules.main)
	if status {
		strategy = rules.status
	}
	if err := a.scheme.Convert(obj, hub, nil); err != nil {
		return err
	}
	if err := a.scheme.Convert(before, old, nil); err != nil {
		return err
	}
	strategy.PrepareForUpdate(context.Background(), hub, old)
	if errs := strategy.ValidateUpdate(context.Background(), hub, old); len(errs) > 0 {
		return errs.ToAggregate()
	}
	return a.scheme.Convert(hub, obj, nil)
}
