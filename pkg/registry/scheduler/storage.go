// Package scheduler puts the endpoints of the scheduler.grove.io API together.
package scheduler

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"

	internalrest "github.com/copse-dev/copse/pkg/registry/internal/rest"
	podgang "github.com/copse-dev/copse/pkg/registry/scheduler/podgang/storage"
	podgroup "github.com/copse-dev/copse/pkg/registry/scheduler/podgroup/storage"
)

// NewStorage returns the REST endpoint of each resource. There is one store per
// resource, whatever the number of versions that serve it. refusals is told of refused
// moves of a status.
func NewStorage(typer runtime.ObjectTyper, refusals internalrest.Refusals, optsGetter generic.RESTOptionsGetter) (map[string]rest.Storage, error) {
	gangs, err := podgang.NewStorage(typer, refusals, optsGetter)
	if err != nil {
		return nil, fmt.Errorf("podgangs: %w", err)
	}
	groups, err := podgroup.NewStorage(typer, refusals, optsGetter)
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
