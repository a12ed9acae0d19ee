package replica

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/internal/topology"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/scheduling"
	"github.com/copse-dev/copse/pkg/scheduling/kai"
)

// packed is a set whose pods are to be in one rack, and its workers on one host.
func packed(pcs *grovev1alpha1.PodCliqueSet) {
	template := &pcs.Spec.Template
	template.TopologyConstraint = &grovev1alpha1.TopologyConstraint{TopologyName: "gpu", Pack: &grovev1alpha1.TopologyPackConstraint{Required: "rack"}}
	template.Cliques[1].TopologyConstraint = &grovev1alpha1.TopologyConstraint{Pack: &grovev1alpha1.TopologyPackConstraint{Preferred: "host"}}
}

// levels are a topology of domains, with keys that are told apart by a generation.
func levels(generation int64, keys ...string) *grovev1alpha1.ClusterTopologyBinding {
	binding := &grovev1alpha1.ClusterTopologyBinding{ObjectMeta: metav1.ObjectMeta{Name: "gpu", UID: "gpu-uid", Generation: generation}}
	for _, key := range keys {
		domain, _, _ := strings.Cut(key, "-")
		binding.Spec.Levels = append(binding.Spec.Levels, grovev1alpha1.TopologyLevel{Domain: domain, Key: key})
	}
	return binding
}

// placementOf is what a gang says of where it is placed: the whole, then each clique.
func placementOf(podGang *schedulerv1alpha1.PodGang) []string {
	var out []string
	say := func(what string, constraint *schedulerv1alpha1.TopologyConstraint) {
		if constraint != nil {
			out = append(out, what+": "+ptr.Deref(constraint.PackConstraint.Required, "-")+" "+ptr.Deref(constraint.PackConstraint.Preferred, "-"))
		}
	}
	say("whole", podGang.Spec.TopologyConstraint)
	for _, group := range podGang.Spec.PodGroups {
		say(group.Name, group.TopologyConstraint)
	}
	if name := podGang.Annotations[labels.TopologyName]; name != "" {
		out = append(out, "topology "+name)
	}
	return out
}

func TestGangsArePlacedAsTheSetSays(t *testing.T) {
	have := allOf(t, newSet(), 1).without("PodGang", "llm-1", "llm-1-decode-0")
	have.topology = gang.Topology{Binding: levels(1, "rack-a", "host-a")}
	got := map[string][]string{}
	for _, obj := range planReplica(newSet(packed), 1, have).create {
		podGang, _ := obj.(*schedulerv1alpha1.PodGang)
		got[podGang.Name] = placementOf(podGang)
	}
	expect(t, "placements", map[string][]string{
		"llm-1":          {"whole: rack-a -", "llm-1-decode-0-worker: - host-a", "topology gpu"},
		"llm-1-decode-0": {"whole: rack-a -", "llm-1-decode-1-worker: - host-a", "topology gpu"},
	}, got)
}

// A gang follows its topology, but where its scheduler places an attempt by what it was made
// with. The next attempt follows with every scheduler.
func TestAGangFollowsItsTopology(t *testing.T) {
	before := allOf(t, newSet(packed), 1)
	before.topology = gang.Topology{Binding: levels(1, "rack-a", "host-a")}
	before.add(planReplica(newSet(packed), 1, before).update...)
	was := []string{"whole: rack-a -", "llm-1-decode-0-worker: - host-a", "topology gpu"}
	expect(t, "placement before", was, placementOf(before.gangs["llm-1"]))
	tests := map[string]struct {
		topology gang.Topology
		options  []setOption
		want     []string
	}{
		"nothing changes":                      {gang.Topology{Binding: levels(1, "rack-a", "host-a")}, nil, was},
		"other keys":                           {gang.Topology{Binding: levels(2, "rack-b", "host-b")}, nil, []string{"whole: rack-b -", "llm-1-decode-0-worker: - host-b", "topology gpu"}},
		"a level goes":                         {gang.Topology{Binding: levels(2, "host-a")}, nil, []string{"llm-1-decode-0-worker: - host-a", "topology gpu"}},
		"the topology goes":                    {gang.Topology{}, nil, nil},
		"it is switched off":                   {gang.Topology{Off: true}, nil, nil},
		"the scheduler keeps to what it knows": {gang.Topology{Binding: levels(2, "rack-b"), Support: gang.TopologySupport{Fixed: true}}, nil, was},
		"also when the topology goes":          {gang.Topology{Support: gang.TopologySupport{Fixed: true}}, nil, was},
		"for the attempt": {
			gang.Topology{Binding: levels(2, "rack-b"), Support: gang.TopologySupport{Fixed: true}}, []setOption{attemptOf(1, 1)}, []string{"whole: rack-b -", "topology gpu"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			have := nothing()
			for _, all := range [][]client.Object{objectsOf(before.services), objectsOf(before.groups), objectsOf(before.cliques), objectsOf(before.gangs)} {
				have.add(all...)
			}
			have.topology = tc.topology
			have.gangs["llm-1"].Annotations["user"] = "kept"
			p := planReplica(newSet(append([]setOption{packed}, tc.options...)...), 1, have)
			have.add(p.update...)
			got := have.gangs["llm-1"]
			expect(t, "placement", tc.want, placementOf(got))
			expect(t, "an annotation of somebody else's", "kept", got.Annotations["user"])
			isGang := func(obj client.Object) bool { return kindOf(obj) == "PodGang" && obj.GetName() == "llm-1" }
			expect(t, "written", len(tc.options) > 0 || !slices.Equal(tc.want, was), slices.ContainsFunc(p.update, isGang))
		})
	}
}

func objectsOf[T client.Object](all map[string]T) []client.Object {
	var out []client.Object
	for _, obj := range all {
		out = append(out, obj)
	}
	return out
}

// A gang is not made while the topology that the cache shows is not that which there is: some
// schedulers would place it by that for as long as it lives.
func TestAGangWaitsForTheTopologyThatThereIs(t *testing.T) {
	scheduledByKAI := func(pcs *grovev1alpha1.PodCliqueSet) {
		for i := range pcs.Spec.Template.Cliques {
			pcs.Spec.Template.Cliques[i].Spec.PodSpec.SchedulerName = "kai-scheduler"
		}
	}
	source := topology.Source{Backends: &scheduling.Backends{ByScheduler: map[string]scheduling.Backend{"kai-scheduler": kai.New(nil, true)}}}
	set := newSet(packed, scheduledByKAI)
	without := func(objects []client.Object) []client.Object {
		return slices.DeleteFunc(objects, func(obj client.Object) bool {
			return kindOf(obj) == "PodGang" || kindOf(obj) == "*v1alpha1.PodCliqueSet"
		})
	}
	tests := map[string]struct {
		cached, live client.Object
		made         bool
		want         []string
	}{
		"it is the same":      {levels(1, "rack-a"), levels(1, "rack-a"), true, []string{"whole: rack-a -", "topology gpu"}},
		"there is none":       {nil, nil, true, nil},
		"it has just come":    {nil, levels(1, "rack-a"), false, nil},
		"it has just gone":    {levels(1, "rack-a"), nil, false, nil},
		"it has just changed": {levels(1, "rack-a"), levels(2, "rack-b"), false, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			objects := append(without(complete(t)), set)
			live := slices.Clone(objects)
			if tc.cached != nil {
				objects = append(objects, tc.cached)
			}
			if tc.live != nil {
				live = append(live, tc.live)
			}
			cache := build(t, objects)
			r := &Reconciler{Client: cache, Cache: cache, Live: build(t, live), Recorder: events.NewFakeRecorder(10), Topology: source}
			key := Key{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "llm"}, UID: "set-uid", Replica: 1}
			if _, err := r.Reconcile(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			podGang := &schedulerv1alpha1.PodGang{}
			err := cache.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "llm-1"}, podGang)
			expect(t, "the gang is made", tc.made, err == nil)
			expect(t, "placement", tc.want, placementOf(podGang))
		})
	}
}

func TestTheReplicasOfATopology(t *testing.T) {
	r := &Reconciler{Cache: build(t, []client.Object{newSet(packed), newSet(func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Name, pcs.UID = "free", "free-uid" })})}
	key := func(replica int32) Key {
		return Key{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "llm"}, UID: "set-uid", Replica: replica}
	}
	expect(t, "replicas", []Key{key(0), key(1)}, r.keysOfBinding(t.Context(), levels(1)))
}

// Without its topology a replica that has constraints is not looked at.
func TestATopologyThatCannotBeReadIsTriedAgain(t *testing.T) {
	source := topology.Source{Backends: &scheduling.Backends{Others: kai.New(nil, true)}}
	cache := build(t, []client.Object{newSet(packed)})
	writer := interceptor.NewClient(cache, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
		if key.Name == "gpu" {
			return errors.New("boom")
		}
		return c.Get(ctx, key, obj, opts...)
	}})
	r := &Reconciler{Client: writer, Cache: cache, Live: cache, Recorder: events.NewFakeRecorder(10), Topology: source}
	_, err := r.Reconcile(t.Context(), Key{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "llm"}, UID: "set-uid"})
	if err == nil || !strings.Contains(err.Error(), "read ClusterTopologyBinding gpu") {
		t.Errorf("the pass says %v", err)
	}
}
