// Package scheduler puts the endpoints of the scheduler.grove.io API together.
package scheduler

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"

	podgang "github.com/copse-dev/copse/pkg/registry/scheduler/podgang/storage"
	podgroup "github.com/copse-dev/copse/pkg/registry/scheduler/podgroup/storage"
)

// NewStorage returns the REST endpoint of each resource. There is one store per
// resource, whatever the number of versions that serve it.
func NewStorage(typer runtime.ObjectTyper, optsGetter generic.RESTOptionsGetter) (map[string]rest.Storage, error) {
	gangs, err := podgang.NewStorage(typer, optsGetter)
	if err != nil {
		return nil, fmt.Errorf("podgangs: %w", err)
	}
	groups, err := podgroup.NewStorage(typer, optsGetter)
	if err != nil {
		return nil, fmt.Errorf("podgroups: %w", err)
	}
	return map[string]rest.Storage{
		"podgangs":         gangs.PodGang,
		"podgangs/status":  gangs.Status,
		"podgroups":        groups.PodGroup,
		"podgroups/status": groups.Status,
	}, nil
}
