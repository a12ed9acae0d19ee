// Package podtemplate is the admission plugin that tries the pods of a PodCliqueSet out
// before the set is stored: it asks the cluster's own API server for one pod of each
// clique, as a dry run. So a template that no pod can be made from is refused when it is
// applied, and not found out from a condition later.
//
// What the cluster says of a pod spec alone holds for ever and becomes a refusal. What
// depends on other objects, a quota, a ServiceAccount, a security profile or a webhook,
// may be right by the time of the pod and becomes a warning. A cluster that does not
// answer is no reason to refuse: the plugin fails open.
package podtemplate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/kubernetes"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

// PluginName is the name of the plugin in flags and metrics.
const PluginName = "PodTemplateDryRun"

const (
	// timeout bounds what the plugin adds to a request, however many cliques there are.
	timeout = 2 * time.Second
	// concurrency bounds how many pods of a set are tried at once.
	concurrency = 4
)

// Register makes the plugin known.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// Plugin tries pod templates out.
type Plugin struct {
	*admission.Handler
	client kubernetes.Interface
}

var (
	_ admission.ValidationInterface          = &Plugin{}
	_ initializer.WantsExternalKubeClientSet = &Plugin{}
)

// New returns the plugin, which still needs a client.
func New() *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// SetExternalKubeClientSet says how the cluster is asked.
func (p *Plugin) SetExternalKubeClientSet(client kubernetes.Interface) {
	p.client = client
}

// ValidateInitialization tells of a plugin without a client.
func (p *Plugin) ValidateInitialization() error {
	if p.client == nil {
		return errors.New(PluginName + " needs a client")
	}
	return nil
}

// Validate tries one pod of each clique whose template is new.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != grove.Resource("podcliquesets") || a.GetSubresource() != "" {
		return nil
	}
	pcs, ok := a.GetObject().(*grove.PodCliqueSet)
	if !ok || pcs.DeletionTimestamp != nil {
		return nil
	}
	old, _ := a.GetOldObject().(*grove.PodCliqueSet)
	found := p.tryAll(ctx, pcs, changed(pcs, old))
	var causes []metav1.StatusCause
	for _, f := range found {
		causes = append(causes, f.causes...)
		for _, text := range f.warnings {
			warning.AddWarning(ctx, "", text)
		}
	}
	if len(causes) > 0 {
		return invalid(pcs.Name, causes)
	}
	return nil
}

// changed returns the indexes of the cliques whose pods differ from those of the old set.
func changed(pcs, old *grove.PodCliqueSet) []int {
	var indexes []int
	for i := range pcs.Spec.Template.Cliques {
		clique := &pcs.Spec.Template.Cliques[i]
		if old != nil {
			before := old.Spec.Template.Clique(clique.Name)
			if before != nil && grove.SamePodTemplate(clique, pcs.Spec.Template.PriorityClassName, before, old.Spec.Template.PriorityClassName) {
				continue
			}
		}
		indexes = append(indexes, i)
	}
	return indexes
}

// tryAll tries the pods of some cliques, and returns what was found in their order.
func (p *Plugin) tryAll(ctx context.Context, pcs *grove.PodCliqueSet, indexes []int) []finding {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	found := make([]finding, len(indexes))
	// No error ends the group early: each pod has its own.
	var group errgroup.Group
	group.SetLimit(concurrency)
	for at, index := range indexes {
		group.Go(func() error {
			found[at] = p.tryOne(ctx, pcs, index)
			return nil
		})
	}
	// The functions return none.
	_ = group.Wait()
	return found
}

func (p *Plugin) tryOne(ctx context.Context, pcs *grove.PodCliqueSet, index int) finding {
	path := field.NewPath("spec", "template", "cliques").Index(index)
	clique := &pcs.Spec.Template.Cliques[index]
	pod := render(pcs, clique)
	heard := &heard{}
	tried, err := p.client.CoreV1().Pods(pcs.Namespace).Create(withHeard(ctx, heard), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil && ctx.Err() != nil {
		// Said here, because the client's words for it name its server.
		return finding{warnings: []string{unchecked(path, clique, fmt.Sprintf("the cluster did not answer within %s", timeout))}}
	}
	result := judge(err, path, clique, pod)
	if err == nil && isAboveGroups(tried) {
		result.warnings = append(result.warnings, aboveGroups(path, clique, tried))
	}
	for _, text := range heard.texts() {
		result.warnings = append(result.warnings, fmt.Sprintf("%s: a pod of clique %s: %s", path, clique.Name, text))
	}
	return result
}

// invalid is the refusal of a set with what is wrong with its pods.
func invalid(name string, causes []metav1.StatusCause) error {
	kind := grove.SchemeGroupVersion.WithKind("PodCliqueSet").GroupKind()
	err := apierrors.NewInvalid(kind, name, nil)
	err.ErrStatus.Details.Causes = causes
	err.ErrStatus.Message = fmt.Sprintf("%s %q is invalid: %s", kind, name, describe(causes))
	return err
}
