package chaos

import (
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	groveinstall "github.com/copse-dev/copse/pkg/apis/grove/install"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerinstall "github.com/copse-dev/copse/pkg/apis/scheduler/install"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
)

// Kind is a kind of object that the servers hold.
type Kind string

// The kinds of Copse's server, and those of the cluster's.
const (
	KindSet      Kind = "PodCliqueSet"
	KindGroup    Kind = "PodCliqueScalingGroup"
	KindClique   Kind = "PodClique"
	KindGang     Kind = "PodGang"
	KindPod      Kind = "Pod"
	KindService  Kind = "Service"
	KindPodGroup Kind = "PodGroup"
	KindNode     Kind = "Node"

	KindGate      Kind = "StartGate"
	KindConfigMap Kind = "ConfigMap"

	KindAutoscaler Kind = "HorizontalPodAutoscaler"
)

// OurKinds are served by Copse, ClusterKinds by the cluster.
func OurKinds() []Kind { return []Kind{KindSet, KindGroup, KindClique, KindGang, KindGate} }

// ClusterKinds are served by the cluster.
func ClusterKinds() []Kind {
	return []Kind{KindPod, KindService, KindPodGroup, KindNode, KindConfigMap, KindAutoscaler}
}

func allKinds() []Kind { return append(OurKinds(), ClusterKinds()...) }

// kindOf is the kind of an object or of a list's items.
func kindOf(obj runtime.Object) (Kind, error) {
	switch obj.(type) {
	case *grovev1alpha1.PodCliqueSet, *grovev1alpha1.PodCliqueSetList:
		return KindSet, nil
	case *grovev1alpha1.PodCliqueScalingGroup, *grovev1alpha1.PodCliqueScalingGroupList:
		return KindGroup, nil
	case *grovev1alpha1.PodClique, *grovev1alpha1.PodCliqueList:
		return KindClique, nil
	case *schedulerv1alpha1.PodGang, *schedulerv1alpha1.PodGangList:
		return KindGang, nil
	case *grovev1alpha1.StartGate, *grovev1alpha1.StartGateList:
		return KindGate, nil
	case *corev1.ConfigMap, *corev1.ConfigMapList:
		return KindConfigMap, nil
	case *autoscalingv2.HorizontalPodAutoscaler, *autoscalingv2.HorizontalPodAutoscalerList:
		return KindAutoscaler, nil
	case *corev1.Pod, *corev1.PodList:
		return KindPod, nil
	case *corev1.Service, *corev1.ServiceList:
		return KindService, nil
	case *schedulingv1beta1.PodGroup, *schedulingv1beta1.PodGroupList:
		return KindPodGroup, nil
	case *corev1.Node, *corev1.NodeList:
		return KindNode, nil
	}
	return "", fmt.Errorf("the servers of this test do not hold a %T", obj)
}

func groupResource(k Kind) schema.GroupResource {
	resources := map[Kind]schema.GroupResource{
		KindSet:      {Group: grovev1alpha1.GroupName, Resource: "podcliquesets"},
		KindGroup:    {Group: grovev1alpha1.GroupName, Resource: "podcliquescalinggroups"},
		KindClique:   {Group: grovev1alpha1.GroupName, Resource: "podcliques"},
		KindGang:     {Group: schedulerv1alpha1.GroupName, Resource: "podgangs"},
		KindPod:      {Resource: "pods"},
		KindService:  {Resource: "services"},
		KindPodGroup: {Group: schedulingv1beta1.GroupName, Resource: "podgroups"},
		KindNode:     {Resource: "nodes"},

		KindGate:      {Group: grovev1alpha1.GroupName, Resource: "startgates"},
		KindConfigMap: {Resource: "configmaps"},

		KindAutoscaler: {Group: autoscalingv2.GroupName, Resource: "horizontalpodautoscalers"},
	}
	return resources[k]
}

func newObject(k Kind) client.Object {
	switch k {
	case KindSet:
		return &grovev1alpha1.PodCliqueSet{}
	case KindGroup:
		return &grovev1alpha1.PodCliqueScalingGroup{}
	case KindClique:
		return &grovev1alpha1.PodClique{}
	case KindGang:
		return &schedulerv1alpha1.PodGang{}
	case KindPod:
		return &corev1.Pod{}
	case KindService:
		return &corev1.Service{}
	case KindPodGroup:
		return &schedulingv1beta1.PodGroup{}
	case KindGate:
		return &grovev1alpha1.StartGate{}
	case KindConfigMap:
		return &corev1.ConfigMap{}
	case KindAutoscaler:
		return &autoscalingv2.HorizontalPodAutoscaler{}
	default:
		return &corev1.Node{}
	}
}

// newScheme knows the kinds of both servers, Copse's in their hub versions too.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	groveinstall.Install(scheme)
	schedulerinstall.Install(scheme)
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, schedulingv1beta1.AddToScheme, autoscalingv2.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

func newRESTMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, gv := range []schema.GroupVersion{grovev1alpha1.SchemeGroupVersion, schedulerv1alpha1.SchemeGroupVersion, corev1.SchemeGroupVersion, schedulingv1beta1.SchemeGroupVersion, autoscalingv2.SchemeGroupVersion} {
		for _, k := range allKinds() {
			if groupResource(k).Group == gv.Group {
				mapper.Add(gv.WithKind(string(k)), meta.RESTScopeNamespace)
			}
		}
	}
	return mapper
}
