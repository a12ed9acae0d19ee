// Package grove puts the endpoints of the grove.io API together.
package grove

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"

	clustertopologybinding "github.com/copse-dev/copse/pkg/registry/grove/clustertopologybinding/storage"
	podclique "github.com/copse-dev/copse/pkg/registry/grove/podclique/storage"
	podcliquescalinggroup "github.com/copse-dev/copse/pkg/registry/grove/podcliquescalinggroup/storage"
	"github.com/copse-dev/copse/pkg/registry/grove/podcliqueset"
	podcliquesetstorage "github.com/copse-dev/copse/pkg/registry/grove/podcliqueset/storage"
	startgate "github.com/copse-dev/copse/pkg/registry/grove/startgate/storage"
	internalrest "github.com/copse-dev/copse/pkg/registry/internal/rest"
)

// NewStorage returns the REST endpoint of each resource. There is one store per
// resource, whatever the number of versions that serve it. refusals is told of refused
// moves of a status.
func NewStorage(typer runtime.ObjectTyper, defaults podcliqueset.Defaults, refusals internalrest.Refusals, optsGetter generic.RESTOptionsGetter) (map[string]rest.Storage, error) {
	bindings, err := clustertopologybinding.NewStorage(typer, refusals, optsGetter)
	if err != nil {
		return nil, fmt.Errorf("clustertopologybindings: %w", err)
	}
	sets, err := podcliquesetstorage.NewStorage(typer, defaults, bindings.ClusterTopologyBinding, refusals, optsGetter)
	if err != nil {
		return nil, fmt.Errorf("podcliquesets: %w", err)
	}
	cliques, err := podclique.NewStorage(typer, refusals, optsGetter)
	if err != nil {
		return nil, fmt.Errorf("podcliques: %w", err)
	}
	groups, err := podcliquescalinggroup.NewStorage(typer, sets.PodCliqueSet, refusals, optsGetter)
	if err != nil {
		return nil, fmt.Errorf("podcliquescalinggroups: %w", err)
	}
	gates, err := startgate.NewStorage(typer, refusals, optsGetter)
	if err != nil {
		return nil, fmt.Errorf("startgates: %w", err)
	}
	return map[string]rest.Storage{
		"podcliquesets":                  sets.PodCliqueSet,
		"podcliquesets/status":           sets.Status,
		"podcliquesets/scale":            sets.Scale,
		"podcliques":                     cliques.PodClique,
		"podcliques/status":              cliques.Status,
		"podcliques/scale":               cliques.Scale,
		"podcliquescalinggroups":         groups.PodCliqueScalingGroup,
		"podcliquescalinggroups/status":  groups.Status,
		"podcliquescalinggroups/scale":   groups.Scale,
		"clustertopologybindings":        bindings.ClusterTopologyBinding,
		"clustertopologybindings/status": bindings.Status,
		"startgates":                     gates.StartGate,
		"startgates/status":              gates.Status,
	}, nil
}
