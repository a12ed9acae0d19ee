package replica

import (
	"context"
	"errors"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/internal/index"
	"github.com/copse-dev/copse/pkg/labels"
)

// sharing has the set share a claim among all replicas, the router one of a template of its
// namespace, and each copy of the decode group one.
func sharing(pcs *grovev1alpha1.PodCliqueSet) {
	all, each := grovev1alpha1.ResourceSharingScopeAllReplicas, grovev1alpha1.ResourceSharingScopePerReplica
	template := &pcs.Spec.Template
	own := grovev1alpha1.ResourceClaimTemplateConfig{Name: "gpu"}
	// A template may be made from a claim, with its labels.
	own.TemplateSpec.Labels = map[string]string{"team": "red", labels.PartOf: "other", labels.ReplicaIndex: "1", labels.PodClique: "other"}
	own.TemplateSpec.Annotations = map[string]string{"note": "kept"}
	own.TemplateSpec.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu"}}
	template.ResourceClaimTemplates = []grovev1alpha1.ResourceClaimTemplateConfig{own}
	template.ResourceSharing = []grovev1alpha1.PCSResourceSharingSpec{{ResourceSharingSpec: grovev1alpha1.ResourceSharingSpec{Name: "gpu", Scope: all}}}
	template.Cliques[0].ResourceSharing = []grovev1alpha1.ResourceSharingSpec{{Name: "nic", Scope: each}}
	template.PodCliqueScalingGroups[0].ResourceSharing = []grovev1alpha1.PCSGResourceSharingSpec{{ResourceSharingSpec: grovev1alpha1.ResourceSharingSpec{Name: "gpu", Scope: each}}}
}

func served(have observed) observed {
	have.servesClaims = true
	return have
}

func nicTemplate() *resourcev1.ResourceClaimTemplate {
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "nic"}}
	template.Spec.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "nic"}}
	return template
}

// Claims are made as soon as what asks for them is there, and so before the gang, for which pods
// wait.
func TestClaimsAreMadeBeforeTheGang(t *testing.T) {
	gangs := []string{"PodGang llm-0", "PodGang llm-0-decode-0"}
	cliques := []string{"PodClique llm-0-decode-0-worker", "PodClique llm-0-decode-1-worker"}
	first := []string{"Service llm-0", "PodCliqueScalingGroup llm-0-decode"}
	ofGroup := []string{"ResourceClaim llm-0-decode-0-gpu", "ResourceClaim llm-0-decode-1-gpu"}
	join := func(lists ...[]string) []string {
		var out []string
		for _, list := range lists {
			out = append(out, list...)
		}
		return out
	}
	tests := map[string]struct {
		have  observed
		steps [][]string
	}{
		"with the template": {served(nothing()).add(nicTemplate()), [][]string{
			join(first, []string{"ResourceClaim llm-all-gpu", "PodClique llm-0-router"}),
			join(ofGroup, []string{"ResourceClaim llm-0-router-0-nic"}, cliques), gangs,
		}},
		"without": {served(nothing()), [][]string{
			join(first, []string{"ResourceClaim llm-all-gpu", "PodClique llm-0-router"}), join(ofGroup, cliques), gangs,
		}},
		"in a cluster that knows none": {nothing(), [][]string{join(first, []string{"PodClique llm-0-router"}), cliques, gangs}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pcs := newSet(sharing)
			for i, want := range append(tc.steps, nil) {
				p := planReplica(pcs, 0, tc.have)
				expect(t, "pass "+labels.Index(int32(i)), writes{Create: want}, writesOf(p))
				tc.have.add(p.create...)
			}
		})
	}
}

func TestDesiredClaims(t *testing.T) {
	have := served(nothing()).add(nicTemplate())
	pcs := newSet(sharing)
	for range 3 {
		have.add(planReplica(pcs, 0, have).create...)
	}
	set := metav1.OwnerReference{APIVersion: "grove.io/v1alpha1", Kind: "PodCliqueSet", Name: "llm", UID: "set-uid", BlockOwnerDeletion: ptr.To(true)}
	claim := func(name, request string, owner metav1.OwnerReference, extra map[string]string) *resourcev1.ResourceClaim {
		out := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID("uid-of-" + name), OwnerReferences: []metav1.OwnerReference{owner},
			Labels: map[string]string{
				"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "llm", "app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/component": "resource-claim",
			},
		}}
		if owner.Kind != set.Kind {
			out.OwnerReferences = append(out.OwnerReferences, set)
			out.Labels["grove.io/podcliqueset-replica-index"] = "0"
		}
		for key, value := range extra {
			out.Labels[key] = value
		}
		if request == "gpu" {
			out.Labels["team"], out.Annotations = "red", map[string]string{"note": "kept"}
		}
		out.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: request}}
		return out
	}
	controller := func(kind, name string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "grove.io/v1alpha1", Kind: kind, Name: name, UID: types.UID("uid-of-" + name), Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}
	}
	controls := set
	controls.Controller = ptr.To(true)
	expect(t, "of the set", claim("llm-all-gpu", "gpu", controls, nil), have.claims["llm-all-gpu"])
	expect(t, "of a copy", claim("llm-0-decode-1-gpu", "gpu", controller("PodCliqueScalingGroup", "llm-0-decode"), map[string]string{
		"grove.io/podcliquescalinggroup": "llm-0-decode", "grove.io/podcliquescalinggroup-replica-index": "1",
	}), have.claims["llm-0-decode-1-gpu"])
	expect(t, "of a pod", claim("llm-0-router-0-nic", "nic", controller("PodClique", "llm-0-router"), map[string]string{
		"grove.io/podclique": "llm-0-router", "grove.io/podclique-pod-index": "0",
	}), have.claims["llm-0-router-0-nic"])
}

func TestPlanClaims(t *testing.T) {
	// gang is what follows the size of the clique.
	gang := []string{"PodGang llm-0"}
	scaleIn := func(have observed) { have.groups["llm-0-decode"].Spec.Replicas = 1 }
	tests := map[string]struct {
		change func(observed)
		option setOption
		want   writes
	}{
		"all are there":         {},
		"the template has gone": {change: func(have observed) { clear(have.claimTemplates) }},
		"one asks for something else": {change: func(have observed) {
			have.claims["llm-all-gpu"].Spec.Devices.Requests[0].Name = "other"
		}},
		"labels of others are theirs": {change: func(have observed) { have.claims["llm-all-gpu"].Labels["mine"] = "kept" }},
		"a label of ours is taken": {change: func(have observed) {
			delete(have.claims["llm-all-gpu"].Labels, labels.PartOf)
		}, want: writes{Update: []string{"ResourceClaim llm-all-gpu"}}},
		"the clique has shrunk": {change: func(have observed) { have.cliques["llm-0-router"].Spec.Replicas = 0 }, want: writes{Update: gang, Remove: []string{"ResourceClaim llm-0-router-0-nic"}}},
		"while a pod uses it": {change: func(have observed) {
			have.cliques["llm-0-router"].Spec.Replicas = 0
			have.claims["llm-0-router-0-nic"].Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{UID: "pod"}}
		}, want: writes{Update: gang}},
		"the clique has grown": {change: func(have observed) { have.cliques["llm-0-router"].Spec.Replicas = 2 }, want: writes{Create: []string{"ResourceClaim llm-0-router-1-nic"}}},
		"a copy is scaled in": {change: scaleIn, want: writes{
			Remove: []string{"PodClique llm-0-decode-1-worker", "ResourceClaim llm-0-decode-1-gpu"},
		}},
		"the set goes, its pods first": {option: deletedSet, want: writes{Remove: []string{
			"PodClique llm-0-decode-0-worker", "PodClique llm-0-decode-1-worker", "PodClique llm-0-router",
		}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pcs := newSet(sharing)
			have := served(nothing()).add(nicTemplate())
			for range 3 {
				have.add(planReplica(pcs, 0, have).create...)
			}
			if tc.change != nil {
				tc.change(have)
			}
			if tc.option != nil {
				tc.option(pcs)
			}
			expect(t, "writes", tc.want, writesOf(planReplica(pcs, 0, have)))
		})
	}
}

// Of a clique that the cache does not show, nobody knows how many pods it has.
func TestAbsenceOfACliqueDeletesNoClaim(t *testing.T) {
	pcs := newSet(sharing)
	have := served(nothing()).add(nicTemplate())
	for range 3 {
		have.add(planReplica(pcs, 0, have).create...)
	}
	delete(have.cliques, "llm-0-router")
	have.groups["llm-0-decode"].Spec.Replicas = 1
	expect(t, "removed", []string{"PodClique llm-0-decode-1-worker"}, writesOf(planReplica(pcs, 0, have)).Remove)
}

func TestWhichUpdatesOfAClaimMatter(t *testing.T) {
	reserved := func(pods ...types.UID) func(*resourcev1.ResourceClaim) {
		return func(c *resourcev1.ResourceClaim) {
			c.Status.Allocation, c.Status.ReservedFor = &resourcev1.AllocationResult{}, nil
			for _, pod := range pods {
				c.Status.ReservedFor = append(c.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{UID: pod})
			}
		}
	}
	seen := func(pods ...types.UID) func(*resourcev1.ResourceClaim) {
		return func(c *resourcev1.ResourceClaim) {
			reserved(pods...)(c)
			c.Annotations = map[string]string{labels.AllocationSeen: "a"}
		}
	}
	nothingDone := func(*resourcev1.ResourceClaim) {}
	tests := map[string]struct {
		before, after func(*resourcev1.ResourceClaim)
		want          bool
	}{
		"it is allocated":          {nothingDone, reserved("a"), true},
		"that is noted":            {reserved("a"), seen("a"), false},
		"another pod uses it":      {seen("a"), seen("a", "b"), false},
		"the first pod has gone":   {seen("a", "b"), seen("b"), true},
		"the last pod has gone":    {seen("a"), seen(), true},
		"a label":                  {nothingDone, func(c *resourcev1.ResourceClaim) { c.Labels = map[string]string{"a": "b"} }, true},
		"an annotation":            {nothingDone, func(c *resourcev1.ResourceClaim) { c.Annotations = map[string]string{"a": "b"} }, false},
		"it is deleted":            {nothingDone, func(c *resourcev1.ResourceClaim) { c.DeletionTimestamp = ptr.To(metav1.Now()) }, true},
		"nothing but its revision": {nothingDone, func(c *resourcev1.ResourceClaim) { c.ResourceVersion = "8" }, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before, after := &resourcev1.ResourceClaim{}, &resourcev1.ResourceClaim{}
			tc.before(before)
			tc.after(after)
			expect(t, "matters", tc.want, claimChanged().Update(event.TypedUpdateEvent[*resourcev1.ResourceClaim]{ObjectOld: before, ObjectNew: after}))
			expect(t, "is heard", tc.want, Hears(before, after, false))
		})
	}
}

// The scheduler sees its allocation by a write that no other write can be in the way of.
func TestTheSchedulerIsShownWhatItHasAllocated(t *testing.T) {
	have := served(nothing()).add(nicTemplate())
	for range 3 {
		have.add(planReplica(newSet(sharing), 0, have).create...)
	}
	allocated := have.claims["llm-0-decode-0-gpu"]
	allocated.Status.Allocation = &resourcev1.AllocationResult{}
	allocated.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{UID: "pod"}}
	ofKAI := func(pcs *grovev1alpha1.PodCliqueSet) {
		for i := range pcs.Spec.Template.Cliques {
			pcs.Spec.Template.Cliques[i].Spec.PodSpec.SchedulerName = "kai-scheduler"
		}
	}
	const patch = `llm-0-decode-0-gpu application/merge-patch+json {"metadata":{"annotations":{"grove.io/allocation-seen":"pod"}}}`
	tests := map[string]struct {
		native  bool
		options []setOption
		want    []string
	}{
		"native gangs":      {true, []setOption{sharing}, []string{patch}},
		"no gangs":          {false, []setOption{sharing}, nil},
		"another scheduler": {true, []setOption{sharing, ofKAI}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var patches []string
			writer := interceptor.NewClient(build(t, nil), interceptor.Funcs{
				Patch: func(_ context.Context, _ client.WithWatch, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
					data, err := patch.Data(obj)
					patches = append(patches, obj.GetName()+" "+string(patch.Type())+" "+string(data))
					return err
				},
			})
			r := &Reconciler{Client: writer, Recorder: events.NewFakeRecorder(1), NativeGangs: tc.native}
			if err := r.seeAllocations(t.Context(), newSet(tc.options...), have); err != nil {
				t.Error(err)
			}
			expect(t, "patches", tc.want, patches)
		})
	}
}

// What keeps the scheduler from being shown an allocation, such as a webhook that does not answer,
// keeps neither the rest of the replica, nor its end.
func TestAClaimThatCannotBeWrittenKeepsNothingElse(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, autoscalingv2.AddToScheme, resourcev1.AddToScheme, grovev1alpha1.AddToScheme, schedulerv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	have := served(nothing()).add(nicTemplate())
	for range 3 {
		have.add(planReplica(newSet(sharing), 0, have).create...)
	}
	allocated := have.claims["llm-0-decode-0-gpu"]
	allocated.Status.Allocation = &resourcev1.AllocationResult{}
	allocated.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{UID: "pod"}}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(newSet(sharing), allocated).WithStatusSubresource(&grovev1alpha1.PodCliqueSet{})
	for _, register := range []func() error{
		func() error { return index.Register(t.Context(), fieldIndexer{builder}, false) },
		func() error { return index.RegisterClaims(t.Context(), fieldIndexer{builder}) },
	} {
		if err := register(); err != nil {
			t.Fatal(err)
		}
	}
	stored := builder.Build()
	writer := interceptor.NewClient(stored, interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return errors.New("no answer")
		},
	})
	r := &Reconciler{Client: writer, Cache: stored, Live: stored, Recorder: events.NewFakeRecorder(10), NativeGangs: true, ResourceClaims: true}
	_, err := r.Reconcile(t.Context(), Key{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "llm"}, UID: "set-uid"})
	if err == nil || err.Error() != "note that ResourceClaim llm-0-decode-0-gpu is allocated: no answer" {
		t.Errorf("error %v", err)
	}
	if err := stored.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "llm-0-router"}, &grovev1alpha1.PodClique{}); err != nil {
		t.Error(err)
	}
}
