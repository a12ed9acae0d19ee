// Package admission puts the admission plugins of Copse's API server together with those
// of every API server: which there are, in what order they run, and what they are given.
// Each can be switched off by --disable-admission-plugins. The rules of each are in a
// package of its own.
package admission

import (
	"fmt"
	"slices"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/copse-dev/copse/pkg/apiserver/admission/claimtemplate"
	"github.com/copse-dev/copse/pkg/apiserver/admission/podtemplate"
	"github.com/copse-dev/copse/pkg/apiserver/admission/protection"
)

// AddTo adds Copse's plugins to the options of a server.
func AddTo(options *genericoptions.RecommendedOptions) {
	protection.Register(options.Admission.Plugins)
	claimtemplate.Register(options.Admission.Plugins)
	podtemplate.Register(options.Admission.Plugins)
	resourcequota.Register(options.Admission.Plugins)
	options.Admission.RecommendedPluginOrder = order(options.Admission.RecommendedPluginOrder)
	options.ExtraAdmissionInitializers = initializers
}

// order puts protection before whatever costs a call, as it refuses by itself; what asks for
// access to templates after the plugins that may change the set; the dry run after all others that might refuse, as it costs most; and the quota last, because
// what is refused after it stays charged until the cluster counts again.
func order(generic []string) []string {
	after := slices.Index(generic, lifecycle.PluginName) + 1
	own := slices.Insert(slices.Clone(generic), after, protection.PluginName)
	return append(own, claimtemplate.PluginName, podtemplate.PluginName, resourcequota.PluginName)
}

// initializers give the plugins what the generic server does not: clients without a
// limit of their own, as the cluster's API server has priority and fairness for that, the
// counting of objects that quotas need, and informers for the params of policies.
func initializers(config *genericapiserver.RecommendedConfig) ([]admission.PluginInitializer, error) {
	if config.ClientConfig == nil {
		return nil, nil
	}
	unlimited := rest.CopyConfig(config.ClientConfig)
	unlimited.QPS = -1
	unlimited.WarningHandlerWithContext = podtemplate.WarningHandler{}
	client, err := kubernetes.NewForConfig(unlimited)
	if err != nil {
		return nil, fmt.Errorf("make a client for admission: %w", err)
	}
	dynamicClient, err := dynamic.NewForConfig(unlimited)
	if err != nil {
		return nil, fmt.Errorf("make a client for the params of policies: %w", err)
	}
	return []admission.PluginInitializer{pluginInitializer{client, dynamicClient, config.SharedInformerFactory}}, nil
}

type pluginInitializer struct {
	client        kubernetes.Interface
	dynamicClient dynamic.Interface
	informers     informers.SharedInformerFactory
}

// Initialize gives a plugin what it wants.
func (i pluginInitializer) Initialize(plugin admission.Interface) {
	if wants, ok := plugin.(initializer.WantsExternalKubeClientSet); ok {
		wants.SetExternalKubeClientSet(i.client)
	}
	if wants, ok := plugin.(initializer.WantsDynamicClient); ok {
		wants.SetDynamicClient(i.dynamicClient)
	}
	switch policies := plugin.(type) {
	case *validating.Plugin:
		policies.SetExternalKubeInformerFactory(policyInformers{i.informers})
	case *mutating.Plugin:
		policies.SetExternalKubeInformerFactory(policyInformers{i.informers})
	}
	if wants, ok := plugin.(initializer.WantsQuotaConfiguration); ok {
		// No evaluators: those that the plugin makes for kinds that it does not know count
		// objects, which is all that there is to count of ours.
		wants.SetQuotaConfiguration(generic.NewConfiguration(nil, nil))
	}
}
