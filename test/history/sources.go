package history

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	copseclient "github.com/copse-dev/copse/pkg/generated/clientset/versioned"
)

// source lists and watches one kind in one namespace.
type source struct {
	kind  Kind
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// lister is what typed clients have in common.
type lister[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

func sourceOf[L runtime.Object](kind Kind, client lister[L]) source {
	return source{
		kind: kind,
		list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, options)
		},
		watch: client.Watch,
	}
}

// sourcesOf are all kinds that are recorded.
func sourcesOf(kube kubernetes.Interface, copse copseclient.Interface, namespace string) []source {
	grove, scheduler := copse.GroveV1alpha1(), copse.SchedulerV1alpha1()
	return []source{
		sourceOf(Set, grove.PodCliqueSets(namespace)),
		sourceOf(Clique, grove.PodCliques(namespace)),
		sourceOf(Group, grove.PodCliqueScalingGroups(namespace)),
		sourceOf(Gate, grove.StartGates(namespace)),
		sourceOf(Gang, scheduler.PodGangs(namespace)),
		sourceOf(CopseGroup, scheduler.PodGroups(namespace)),
		sourceOf(Pod, kube.CoreV1().Pods(namespace)),
		sourceOf(Service, kube.CoreV1().Services(namespace)),
		sourceOf(File, kube.CoreV1().ConfigMaps(namespace)),
		sourceOf(NativeGroup, kube.SchedulingV1beta1().PodGroups(namespace)),
	}
}
