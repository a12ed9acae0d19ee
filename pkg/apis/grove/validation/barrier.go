package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

// validateGroupScheduling checks the start barrier of seed 002 (D21).
func validateGroupScheduling(spec *grove.PodCliqueSetSpec, path *field.Path) field.ErrorList {
	config := spec.GroupSchedulingConfig
	if config == nil {
		return nil
	}
	barrierPath := path.Child("groupSchedulingConfig")
	var errs field.ErrorList
	if config.TimeoutAfterSeconds != nil && *config.TimeoutAfterSeconds <= 0 {
		errs = append(errs, field.Invalid(barrierPath.Child("timeoutAfterSeconds"), *config.TimeoutAfterSeconds, "must be more than 0; leave it out for no deadline").WithOrigin("minimum"))
	}
	known := cliqueNames(&spec.Template)
	targets := sets.New[string]()
	for i, name := range config.TargetCliques {
		targetPath := barrierPath.Child("targetCliques").Index(i)
		if !known.Has(name) {
			errs = append(errs, field.NotFound(targetPath, name))
		}
		if targets.Has(name) {
			errs = append(errs, field.Duplicate(targetPath, name))
		}
		targets.Insert(name)
	}
	if len(targets) == 0 {
		targets = known
	}
	for i := range spec.Template.Cliques {
		clique := &spec.Template.Cliques[i]
		if targets.Has(clique.Name) {
			errs = append(errs, validateBarrierTarget(&clique.Spec, path.Child("template", "cliques").Index(i).Child("spec"))...)
		}
	}
	return append(errs, validateNoOrderAmong(targets, spec, barrierPath.Child("targetCliques"))...)
}

// validateBarrierTarget checks that it is known how many pods the barrier waits for.
func validateBarrierTarget(clique *grove.PodCliqueSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if minAvailable := ptr.Deref(clique.MinAvailable, clique.Replicas); minAvailable != clique.Replicas {
		errs = append(errs, field.Invalid(path.Child("minAvailable"), minAvailable,
			fmt.Sprintf("must be replicas, %d: the barrier of groupSchedulingConfig waits for every pod", clique.Replicas)))
	}
	if clique.AutoScalingConfig != nil {
		errs = append(errs, field.Forbidden(path.Child("autoScalingConfig"), "the barrier of groupSchedulingConfig waits for a fixed number of pods: leave the clique out of its targetCliques"))
	}
	return errs
}

// validateNoOrderAmong checks that no target waits for another one to be Ready, which it
// cannot be while it is held at the barrier.
func validateNoOrderAmong(targets sets.Set[string], spec *grove.PodCliqueSetSpec, path *field.Path) field.ErrorList {
	order := ""
	switch {
	case isStaged(spec):
		order = "startupPolicy InOrder"
	case ptr.Deref(spec.Template.StartupType, grove.CliqueStartupTypeAnyOrder) == grove.CliqueStartupTypeInOrder:
		order = string(grove.CliqueStartupTypeInOrder)
	case !isExplicit(&spec.Template):
		return nil
	}
	if order != "" {
		if len(targets) < 2 {
			return nil
		}
		return field.ErrorList{field.Forbidden(path, "more than one target excludes "+order+": one would wait to start for another that waits at the barrier; name one clique")}
	}
	waits := startsAfter(&spec.Template, nil)
	var errs field.ErrorList
	for _, name := range sets.List(targets) {
		if others := waits.from(name).Intersection(targets).Delete(name); len(others) > 0 {
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("%q starts after %q, which waits for it at the barrier: name one of them", name, sets.List(others)[0])))
		}
	}
	return errs
}
