package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/rest"

	"github.com/copse-dev/copse/pkg/apiserver/admission/podtemplate"
)

func options() *genericoptions.RecommendedOptions {
	options := genericoptions.NewRecommendedOptions("/registry/test", runtime.NoopEncoder{})
	AddTo(options)
	return options
}

func TestThePluginsRunInTheirOrder(t *testing.T) {
	admission := options().Admission
	want := []string{
		"NamespaceLifecycle", "ManagedChildProtection", "MutatingAdmissionPolicy", "MutatingAdmissionWebhook", "ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook",
		"ClaimTemplateAccess", "PodTemplateDryRun", "ResourceQuota",
	}
	if diff := cmp.Diff(want, admission.RecommendedPluginOrder); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// The library compares what is registered with what is in the order.
	if errs := admission.Validate(); len(errs) > 0 {
		t.Error(errs)
	}
	admission.DisablePlugins = []string{"ManagedChildProtection", "ClaimTemplateAccess", "PodTemplateDryRun", "ResourceQuota"}
	if errs := admission.Validate(); len(errs) > 0 {
		t.Errorf("they cannot be switched off: %v", errs)
	}
}

// The quota plugin of the library starts with what it is given here.
func TestThePluginsAreGivenWhatTheyNeed(t *testing.T) {
	config := &genericapiserver.RecommendedConfig{ClientConfig: &rest.Config{Host: "https://localhost:1"}}
	given, err := options().ExtraAdmissionInitializers(config)
	if err != nil || len(given) != 1 {
		t.Fatalf("%d initializers, error %v", len(given), err)
	}
	quota, err := resourcequota.NewResourceQuota(nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	// The generic server tells the plugin first when it is drained.
	quota.SetDrainedNotification(t.Context().Done())
	template := podtemplate.New()
	for _, plugin := range []admission.Interface{quota, template} {
		given[0].Initialize(plugin)
	}
	if err := template.ValidateInitialization(); err != nil {
		t.Error(err)
	}
	if err := quota.ValidateInitialization(); err == nil || err.Error() != "missing quotaAccessor.lister" {
		t.Errorf("the quota plugin lacks more than the informers of the generic server: %v", err)
	}
	if config.ClientConfig.QPS != 0 || config.ClientConfig.WarningHandlerWithContext != nil {
		t.Error("the configuration of the other clients was changed")
	}
}

func TestAServerWithoutAClusterGetsNoClient(t *testing.T) {
	if given, err := options().ExtraAdmissionInitializers(&genericapiserver.RecommendedConfig{}); err != nil || len(given) > 0 {
		t.Errorf("%d initializers, error %v", len(given), err)
	}
}
