package rest

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

// The strategies only have to be told apart here.
type (
	createStrategy struct{ rest.RESTCreateStrategy }
	updateStrategy struct{ rest.RESTUpdateStrategy }
	deleteStrategy struct{ rest.RESTDeleteStrategy }
	statusStrategy struct{ rest.RESTUpdateStrategy }
)

func (updateStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{"main": nil}
}

func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{"status": nil}
}

func TestStatusHasRulesOfItsOwn(t *testing.T) {
	store := &genericregistry.Store{
		NewFunc:                  func() runtime.Object { return &grove.PodClique{} },
		DefaultQualifiedResource: grove.Resource("podcliques"),
		CreateStrategy:           createStrategy{},
		UpdateStrategy:           updateStrategy{},
		DeleteStrategy:           deleteStrategy{},
		ResetFieldsStrategy:      updateStrategy{},
	}
	status := statusStrategy{}
	refusals := &told{}
	r := NewStatusREST(store, status, refusals)
	if got := r.store.UpdateStrategy; got != rest.RESTUpdateStrategy(observedStrategy{status, "podcliques", refusals}) {
		t.Errorf("status is updated under %v", got)
	}
	if r.store.CreateStrategy != nil || r.store.DeleteStrategy != nil {
		t.Error("the status endpoint can create or delete")
	}
	if _, ok := r.GetResetFields()["status"]; !ok {
		t.Errorf("the status endpoint resets %v", r.GetResetFields())
	}
	if _, ok := r.New().(*grove.PodClique); !ok {
		t.Errorf("New returns %T", r.New())
	}
	if _, ok := store.GetResetFields()["main"]; !ok || store.CreateStrategy == nil || store.DeleteStrategy == nil {
		t.Error("the main endpoint has changed")
	}
}
