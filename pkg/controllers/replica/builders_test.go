package replica

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

func expect(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

type setOption func(*grovev1alpha1.PodCliqueSet)

// newSet is a set of 2 replicas with a standalone clique of 1 pod, and a scaling group
// of 2 copies, one of them in the base gang, of a clique of 2 pods.
func newSet(options ...setOption) *grovev1alpha1.PodCliqueSet {
	pcs := &grovev1alpha1.PodCliqueSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "llm", UID: "set-uid"},
		Spec: grovev1alpha1.PodCliqueSetSpec{
			Replicas: 2, WorkloadType: grovev1alpha1.WorkloadTypeInference,
			Template: grovev1alpha1.PodCliqueSetTemplateSpec{
				PriorityClassName: "high",
				Cliques: []grovev1alpha1.PodCliqueTemplateSpec{
					{Name: "router", Spec: grovev1alpha1.PodCliqueSpec{Replicas: 1, MinAvailable: ptr.To[int32](1)}},
					{
						Name: "worker", Labels: map[string]string{"team": "red"}, Annotations: map[string]string{"note": "kept"},
						Spec: grovev1alpha1.PodCliqueSpec{
							Replicas: 3, MinAvailable: ptr.To[int32](2), PodSpec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}},
						},
					},
				},
				PodCliqueScalingGroups: []grovev1alpha1.PodCliqueScalingGroupConfig{{
					Name: "decode", CliqueNames: []string{"worker"}, Replicas: ptr.To[int32](2), MinAvailable: ptr.To[int32](1),
					Annotations: map[string]string{"group": "kept"},
				}},
			},
		},
		Status: grovev1alpha1.PodCliqueSetStatus{
			CurrentGenerationHash: ptr.To("generation"),
			CliqueHashes:          []grovev1alpha1.CliqueHash{{Name: "router", Hash: "router-hash"}, {Name: "worker", Hash: "worker-hash"}},
		},
	}
	for _, option := range options {
		option(pcs)
	}
	return pcs
}

func deletedSet(pcs *grovev1alpha1.PodCliqueSet) { pcs.DeletionTimestamp = ptr.To(metav1.Now()) }

func failing(pcs *grovev1alpha1.PodCliqueSet) {
	pcs.Status.Conditions = []metav1.Condition{{Type: grovev1alpha1.ConditionTypeFailureTarget, Status: metav1.ConditionTrue}}
}

func finished(pcs *grovev1alpha1.PodCliqueSet) {
	pcs.Status.Phase = grovev1alpha1.PodCliqueSetSucceeded
}

func attemptOf(replica, attempt int32) setOption {
	return func(pcs *grovev1alpha1.PodCliqueSet) {
		pcs.Status.ReplicaStatuses = []grovev1alpha1.PodCliqueSetReplicaStatus{{Index: replica, Attempt: attempt}}
	}
}

func withoutGroups(pcs *grovev1alpha1.PodCliqueSet) {
	pcs.Spec.Template.PodCliqueScalingGroups = nil
}

// nothing is a replica of which nothing exists.
func nothing() observed {
	return NewChildren().have
}

// add puts objects into what is observed, with the UIDs that a server would give them.
func (o observed) add(objects ...client.Object) observed {
	for _, obj := range objects {
		obj = obj.DeepCopyObject().(client.Object)
		if obj.GetUID() == "" {
			obj.SetUID(types.UID("uid-of-" + obj.GetName()))
		}
		Children{o}.Put(obj)
	}
	return o
}

// allOf is everything that a replica consists of: what the controller makes of it, pass
// by pass, until there is nothing left to do.
func allOf(t *testing.T, pcs *grovev1alpha1.PodCliqueSet, replica int32) observed {
	t.Helper()
	have := nothing()
	for range 5 {
		p := planReplica(pcs, replica, have)
		if p.empty() {
			return have
		}
		have.add(p.create...)
		have.add(p.update...)
	}
	t.Fatal("the replica is never complete")
	return observed{}
}

// writes are a plan by kind and name, each list in its order.
type writes struct{ Create, Update, Remove []string }

func writesOf(p plan) writes {
	names := func(objects []client.Object) []string {
		var out []string
		for _, obj := range objects {
			out = append(out, fmt.Sprintf("%s %s", kindOf(obj), obj.GetName()))
		}
		return out
	}
	w := writes{Create: names(p.create), Update: names(p.update), Remove: names(p.remove)}
	// Removal goes over maps, and waits for nothing.
	slices.Sort(w.Remove)
	return w
}

// deleting are the names of objects of a replica that are on their way out.
func (o observed) deleting(names ...string) observed {
	gone := ptr.To(metav1.Now())
	for _, name := range names {
		if service := o.services[name]; service != nil {
			service.DeletionTimestamp = gone
		}
		if group := o.groups[name]; group != nil {
			group.DeletionTimestamp = gone
		}
		if clique := o.cliques[name]; clique != nil {
			clique.DeletionTimestamp = gone
		}
		if podGang := o.gangs[name]; podGang != nil {
			podGang.DeletionTimestamp = gone
		}
	}
	return o
}

// without drops objects from what the cache shows.
func (o observed) without(kind string, names ...string) observed {
	for _, name := range names {
		switch kind {
		case "Service":
			delete(o.services, name)
		case "PodCliqueScalingGroup":
			delete(o.groups, name)
		case "PodClique":
			delete(o.cliques, name)
		case "PodGang":
			delete(o.gangs, name)
		case "HorizontalPodAutoscaler":
			delete(o.autoscalers, name)
		}
	}
	return o
}
