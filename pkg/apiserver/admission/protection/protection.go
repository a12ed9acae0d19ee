// Package protection is the admission plugin that keeps people's hands off the children
// of a PodCliqueSet: what a controller made is changed by changing what it was made from.
// Whoever may "override", a verb of RBAC, is let through, the controller-manager among
// them; the cluster's own housekeeping is let do its part. The scale of a child needs no
// more than RBAC on it.
package protection

import (
	"context"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/scheduler"
)

const (
	// PluginName is the name of the plugin in flags and metrics.
	PluginName = "ManagedChildProtection"
	// Verb is what a role grants on a child's resource to whoever may change managed children.
	Verb = "override"
)

// Register makes the plugin known.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// Plugin refuses changes of managed children.
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
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete)}
}

// SetUnconditionalAuthorizer says who is asked whether a user may override.
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

// Validate refuses to change a managed child, to make one and to turn an object into
// one: what names our controller as its own is counted and deleted as its own.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	child, owner := managed(a.GetOldObject())
	if owner == nil {
		child, owner = managed(a.GetObject())
	}
	if owner == nil || isHousekeeping(a) {
		return nil
	}
	may, err := p.mayOverride(ctx, a, child.GetName())
	if err != nil {
		// The caller comes again, as when it is the request itself that cannot be authorized.
		return apierrors.NewServiceUnavailable(fmt.Sprintf("cannot find out who may %s managed children: %v", Verb, err))
	}
	if may {
		return nil
	}
	resource := a.GetResource().GroupResource()
	return apierrors.NewForbidden(resource, child.GetName(), fmt.Errorf("it is managed by %s %s: change that instead, or ask for the verb %q on %s", owner.Kind, owner.Name, Verb, resource))
}

// mayOverride asks whether the user may override everywhere first: the answer is cached
// for each question, so that the controller-manager costs one question and not one for
// each of its objects.
func (p *Plugin) mayOverride(ctx context.Context, a admission.Attributes, name string) (bool, error) {
	question := authorizer.AttributesRecord{
		User:            a.GetUserInfo(),
		Verb:            Verb,
		APIGroup:        a.GetResource().Group,
		APIVersion:      a.GetResource().Version,
		Resource:        a.GetResource().Resource,
		ResourceRequest: true,
	}
	decision, _, err := p.authorizer.Authorize(ctx, question)
	if decision == authorizer.DecisionAllow {
		return true, nil
	}
	question.Namespace, question.Name = a.GetNamespace(), name
	decision, _, errHere := p.authorizer.Authorize(ctx, question)
	if decision == authorizer.DecisionAllow {
		return true, nil
	}
	return false, errors.Join(err, errHere)
}

// managed returns an object and its controller, if that is one of ours; else nil. Labels
// say nothing here: everybody may set them.
func managed(obj runtime.Object) (metav1.Object, *metav1.OwnerReference) {
	if obj == nil {
		return nil, nil
	}
	object, err := meta.Accessor(obj)
	if err != nil {
		return nil, nil
	}
	owner := metav1.GetControllerOf(object)
	if owner == nil {
		return nil, nil
	}
	version, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil || (version.Group != grove.GroupName && version.Group != scheduler.GroupName) {
		return nil, nil
	}
	return object, owner
}
