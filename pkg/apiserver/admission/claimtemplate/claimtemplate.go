// Package claimtemplate is the admission plugin that lets nobody have claims made from a
// ResourceClaimTemplate of another namespace that they may not read: the controller-manager reads
// it for them, and the claims show what it says.
package claimtemplate

import (
	"context"
	"errors"
	"fmt"
	"io"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

// PluginName is the name of the plugin in flags and metrics.
const PluginName = "ClaimTemplateAccess"

const resource = "resourceclaimtemplates"

// Register makes the plugin known.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// Plugin refuses references to templates that their author may not read.
type Plugin struct {
	*admission.Handler
	authorizer authorizer.UnconditionalAuthorizer
}

var (
	_ admission.ValidationInterface            = &Plugin{}
	_ initializer.WantsUnconditionalAuthorizer = &Plugin{}
)

// New returns the plugin, which still needs an authorizer.
func New() *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// SetUnconditionalAuthorizer says who is asked whether a user may read a template.
func (p *Plugin) SetUnconditionalAuthorizer(a authorizer.UnconditionalAuthorizer) {
	p.authorizer = a
}

// ValidateInitialization tells of a plugin without an authorizer.
func (p *Plugin) ValidateInitialization() error {
	if p.authorizer == nil {
		return errors.New(PluginName + " needs an authorizer")
	}
	return nil
}

// Validate asks for each template of another namespace to which a set has not referred before.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pcs, ok := a.GetObject().(*grove.PodCliqueSet)
	if !ok || a.GetSubresource() != "" {
		return nil
	}
	asked := sets.New[reference]()
	if old, ok := a.GetOldObject().(*grove.PodCliqueSet); ok {
		for _, foreign := range foreignTemplates(old) {
			asked.Insert(foreign.reference)
		}
	}
	for _, foreign := range foreignTemplates(pcs) {
		if asked.Has(foreign.reference) {
			continue
		}
		asked.Insert(foreign.reference)
		decision, _, err := p.authorizer.Authorize(ctx, authorizer.AttributesRecord{
			User: a.GetUserInfo(), Verb: "get", Namespace: foreign.namespace, Name: foreign.name, ResourceRequest: true,
			APIGroup: resourcev1.GroupName, APIVersion: resourcev1.SchemeGroupVersion.Version, Resource: resource,
		})
		if decision == authorizer.DecisionAllow {
			continue
		}
		if err != nil {
			// The caller comes again, as when it is the request itself that cannot be authorized.
			return apierrors.NewServiceUnavailable(fmt.Sprintf("cannot find out who may read %s: %v", resource, err))
		}
		return apierrors.NewForbidden(a.GetResource().GroupResource(), a.GetName(),
			fmt.Errorf("%s: to have claims made from a template of another namespace you need the verb %q on %s.%s %q in namespace %q",
				foreign.path, "get", resource, resourcev1.GroupName, foreign.name, foreign.namespace))
	}
	return nil
}

// reference is to a template of another namespace.
type reference struct {
	namespace, name string
}

type foreignTemplate struct {
	reference
	path *field.Path
}

// foreignTemplates are the references of a set to templates of other namespaces. A set's own
// templates have none.
func foreignTemplates(pcs *grove.PodCliqueSet) []foreignTemplate {
	var out []foreignTemplate
	add := func(sharing *grove.ResourceSharingSpec, path *field.Path) {
		if sharing.Namespace != "" && sharing.Namespace != pcs.Namespace {
			out = append(out, foreignTemplate{reference{sharing.Namespace, sharing.Name}, path.Child("namespace")})
		}
	}
	template, path := &pcs.Spec.Template, field.NewPath("spec", "template")
	for i := range template.ResourceSharing {
		add(&template.ResourceSharing[i].ResourceSharingSpec, path.Child("resourceSharing").Index(i))
	}
	for i := range template.Cliques {
		for j := range template.Cliques[i].ResourceSharing {
			add(&template.Cliques[i].ResourceSharing[j], path.Child("cliques").Index(i).Child("resourceSharing").Index(j))
		}
	}
	for i := range template.PodCliqueScalingGroups {
		group := &template.PodCliqueScalingGroups[i]
		for j := range group.ResourceSharing {
			add(&group.ResourceSharing[j].ResourceSharingSpec, path.Child("podCliqueScalingGroups").Index(i).Child("resourceSharing").Index(j))
		}
	}
	return out
}
