package admission

import (
	"context"
	"reflect"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/util/compatibility"
	genericfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// The params of a policy are read, and not by an informer that the server's readiness is
// about. The policies themselves are among these.
func TestTheParamsOfPoliciesAreNoneOfTheServersInformers(t *testing.T) {
	name := metav1.ObjectMeta{Name: "p"}
	paramKind := &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}
	for kind, tc := range map[string]struct {
		plugin func() (admission.InitializationValidator, error)
		stored []runtime.Object
	}{
		"ValidatingAdmissionPolicy": {
			func() (admission.InitializationValidator, error) { return validating.NewPlugin(nil) },
			[]runtime.Object{
				&admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: name, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{ParamKind: paramKind}},
				&admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: name, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name.Name}},
			},
		},
		"MutatingAdmissionPolicy": {
			func() (admission.InitializationValidator, error) { return mutating.NewPlugin(nil) },
			[]runtime.Object{
				&admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: name, Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{ParamKind: paramKind}},
				&admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: name, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name.Name}},
			},
		},
	} {
		t.Run(kind, func(t *testing.T) {
			// The plugins look up namespaces and schemas with it, when there is a request.
			client, err := kubernetes.NewForConfig(&rest.Config{Host: "https://localhost:1"})
			if err != nil {
				t.Fatal(err)
			}
			params := fake.NewSimpleDynamicClient(scheme.Scheme)
			server := informers.NewSharedInformerFactory(kubefake.NewClientset(tc.stored...), 0)
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
			plugin, err := tc.plugin()
			if err != nil {
				t.Fatal(err)
			}
			admission.PluginInitializers{
				initializer.New(client, params, server, authorizerfactory.NewAlwaysAllowAuthorizer(), genericfeature.DefaultFeatureGate,
					compatibility.DefaultBuildEffectiveVersion(), t.Context().Done(), mapper),
				pluginInitializer{client, params, server},
			}.Initialize(plugin.(admission.Interface))
			if err := plugin.ValidateInitialization(); err != nil {
				t.Fatal(err)
			}
			server.Start(t.Context().Done())
			err = wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
				return len(params.Actions()) > 0, nil
			})
			if err != nil {
				t.Errorf("the params are not read: %v", err)
			}
			synced := server.WaitForCacheSync(t.Context().Done())
			if _, found := synced[reflect.TypeFor[*corev1.ConfigMap]()]; found {
				t.Error("the server waits for the params")
			}
			if !synced[reflect.TypeOf(tc.stored[0])] || !synced[reflect.TypeOf(tc.stored[1])] {
				t.Errorf("the server waits for %v, and not for the policies", synced)
			}
		})
	}
}
