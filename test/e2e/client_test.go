package e2e

import (
	"context"
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	applygrovev1alpha1 "github.com/copse-dev/copse/pkg/generated/applyconfiguration/grove/v1alpha1"
	copseinformers "github.com/copse-dev/copse/pkg/generated/informers/externalversions"
)

// A Go program needs nothing but the generated apply configuration, clientset and
// informer to run a job and watch it to its end.
func TestTheGeneratedClientsRunAJobToItsEnd(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()

	phases := make(chan grovev1alpha1.PodCliqueSetPhase, 100)
	factory := copseinformers.NewSharedInformerFactoryWithOptions(cluster.Copse, 0, copseinformers.WithNamespace(ns.Name))
	informer := factory.Grove().V1alpha1().PodCliqueSets()
	_, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, obj any) {
			phases <- obj.(*grovev1alpha1.PodCliqueSet).Status.Phase
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			t.Fatalf("the informer of %s did not sync", kind)
		}
	}

	clique := applygrovev1alpha1.PodCliqueTemplateSpec().
		WithName("worker").
		WithAnnotations(map[string]string{"kwok.copse.dev/exit-after": "1s"}).
		WithSpec(applygrovev1alpha1.PodCliqueSpec().
			WithReplicas(2).
			WithPodSpec(applycorev1.PodSpec().WithContainers(applycorev1.Container().WithName("main").WithImage("example.com/trainer"))))
	job := applygrovev1alpha1.PodCliqueSet("job", ns.Name).
		WithSpec(applygrovev1alpha1.PodCliqueSetSpec().
			WithReplicas(1).
			WithWorkloadType(grovev1alpha1.WorkloadTypeTraining).
			WithTemplate(applygrovev1alpha1.PodCliqueSetTemplateSpec().WithCliques(clique)))
	applied, err := cluster.Copse.GroveV1alpha1().PodCliqueSets(ns.Name).Apply(ctx, job, metav1.ApplyOptions{FieldManager: "client-test", Force: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := applied.Spec.Template.Cliques[0].Spec.PodSpec.RestartPolicy; got != corev1.RestartPolicyNever {
		t.Errorf("the applied object came back without its defaults: restartPolicy %q", got)
	}
	for {
		select {
		case phase := <-phases:
			if phase != grovev1alpha1.PodCliqueSetSucceeded {
				continue
			}
			cached, err := informer.Lister().PodCliqueSets(ns.Name).Get("job")
			if err != nil || cached.Status.CompletionTime == nil {
				t.Errorf("the lister has %+v, error %v", cached, err)
			}
			return
		case <-ctx.Done():
			t.Fatal("the job did not succeed in time")
		}
	}
}
