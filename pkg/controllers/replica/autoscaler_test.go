package replica

import (
	"context"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

// scaled has the router and the decode group scaled by autoscalers.
func scaled(pcs *grovev1alpha1.PodCliqueSet) {
	pcs.Spec.Template.Cliques[0].Spec.AutoScalingConfig = &grovev1alpha1.AutoScalingConfig{MinReplicas: ptr.To[int32](1), MaxReplicas: 6}
	pcs.Spec.Template.PodCliqueScalingGroups[0].ScaleConfig = &grovev1alpha1.AutoScalingConfig{
		MinReplicas: ptr.To[int32](2), MaxReplicas: 4, Metrics: []autoscalingv2.MetricSpec{queue("30")},
	}
}

func queue(perCopy string) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
		Metric: autoscalingv2.MetricIdentifier{Name: "queue"},
		Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: ptr.To(resource.MustParse(perCopy))},
	}}
}

func cpu(percent int32) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
		Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent},
	}}
}

func TestAutoscalersAreMadeOnceThereIsSomethingToScale(t *testing.T) {
	pcs := newSet(scaled)
	have := nothing()
	steps := []writes{
		{Create: []string{"Service llm-1", "PodCliqueScalingGroup llm-1-decode", "PodClique llm-1-router"}},
		{Create: []string{
			"PodClique llm-1-decode-0-worker", "PodClique llm-1-decode-1-worker",
			"HorizontalPodAutoscaler llm-1-router", "HorizontalPodAutoscaler llm-1-decode",
		}},
		{Create: []string{"PodGang llm-1", "PodGang llm-1-decode-0"}},
		{},
	}
	for i, want := range steps {
		p := planReplica(pcs, 1, have)
		expect(t, "pass "+labels.Index(int32(i)), want, writesOf(p))
		have.add(p.create...)
	}
}

func TestDesiredAutoscaler(t *testing.T) {
	have := allOf(t, newSet(scaled), 1)
	autoscaler := func(kind, name string, lower, upper int32, metrics ...autoscalingv2.MetricSpec) *autoscalingv2.HorizontalPodAutoscaler {
		return &autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: name, UID: types.UID("uid-of-" + name),
				Labels: map[string]string{
					"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "llm", "app.kubernetes.io/managed-by": "grove-operator",
					"app.kubernetes.io/component": "pcs-hpa", "grove.io/podcliqueset-replica-index": "1",
				},
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: "grove.io/v1alpha1", Kind: "PodCliqueSet", Name: "llm", UID: "set-uid", Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
				}},
			},
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "grove.io/v1alpha1", Kind: kind, Name: name},
				MinReplicas:    &lower, MaxReplicas: upper, Metrics: metrics,
			},
		}
	}
	// Without metrics an autoscaler has the default of the API server.
	expect(t, "of the clique", autoscaler("PodClique", "llm-1-router", 1, 6, cpu(80)), have.autoscalers["llm-1-router"])
	expect(t, "of the group", autoscaler("PodCliqueScalingGroup", "llm-1-decode", 2, 4, queue("30")), have.autoscalers["llm-1-decode"])
}

// An autoscaler that the API server has given its defaults is as it should be.
func TestBehaviorIsComparedWithTheDefaultsOfTheServer(t *testing.T) {
	pods := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 15}
	percent := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15}
	most := ptr.To(autoscalingv2.MaxChangePolicySelect)
	up := &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: ptr.To[int32](0), SelectPolicy: most, Policies: []autoscalingv2.HPAScalingPolicy{pods, percent}}
	down := &autoscalingv2.HPAScalingRules{SelectPolicy: most, Policies: []autoscalingv2.HPAScalingPolicy{percent}}
	slow := autoscalingv2.HPAScalingRules{
		StabilizationWindowSeconds: ptr.To[int32](600), SelectPolicy: ptr.To(autoscalingv2.MinChangePolicySelect), Tolerance: ptr.To(resource.MustParse("50m")),
		Policies: []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PodsScalingPolicy, Value: 1, PeriodSeconds: 60}},
	}
	tests := map[string]struct {
		given, want *autoscalingv2.HorizontalPodAutoscalerBehavior
	}{
		"none":         {},
		"an empty one": {&autoscalingv2.HorizontalPodAutoscalerBehavior{}, &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: up, ScaleDown: down}},
		"that of down": {&autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &slow}, &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: up, ScaleDown: &slow}},
		"that of up":   {&autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: &slow}, &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: &slow, ScaleDown: down}},
		"a window alone": {
			&autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: ptr.To[int32](9)}},
			&autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: up, ScaleDown: &autoscalingv2.HPAScalingRules{
				StabilizationWindowSeconds: ptr.To[int32](9), SelectPolicy: most, Policies: []autoscalingv2.HPAScalingPolicy{percent},
			}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			config := &grovev1alpha1.AutoScalingConfig{MaxReplicas: 2, Behavior: tc.given}
			before := config.DeepCopy()
			expect(t, "behaviour", tc.want, behaviorOf(config))
			expect(t, "the template", before, config)
		})
	}
}

func TestPlanAutoscalers(t *testing.T) {
	const router, decode = "llm-1-router", "llm-1-decode"
	updated := func(name string) writes { return writes{Update: []string{"HorizontalPodAutoscaler " + name}} }
	edit := func(name string, change func(*autoscalingv2.HorizontalPodAutoscaler)) func(observed) observed {
		return func(o observed) observed {
			change(o.autoscalers[name])
			return o
		}
	}
	tests := map[string]struct {
		set    *grovev1alpha1.PodCliqueSet
		change func(observed) observed
		want   writes
	}{
		"all is well": {},
		"sizes are the autoscalers'": {change: func(o observed) observed {
			o.cliques[router].Spec.Replicas = 5
			o.groups[decode].Spec.Replicas = 2
			return o
		}, want: writes{}},
		"one is missing": {
			change: func(o observed) observed { return o.without("HorizontalPodAutoscaler", decode) },
			want:   writes{Create: []string{"HorizontalPodAutoscaler llm-1-decode"}},
		},
		"its target goes": {change: func(o observed) observed {
			return o.without("HorizontalPodAutoscaler", router, decode).deleting(router, decode)
		}, want: writes{Remove: []string{"PodClique llm-1-decode-0-worker", "PodClique llm-1-decode-1-worker"}}},
		"one goes": {change: edit(router, func(s *autoscalingv2.HorizontalPodAutoscaler) {
			s.DeletionTimestamp, s.Spec.MaxReplicas = ptr.To(metav1.Now()), 99
		})},
		"somebody raised its maximum":  {change: edit(router, func(s *autoscalingv2.HorizontalPodAutoscaler) { s.Spec.MaxReplicas = 99 }), want: updated(router)},
		"somebody lowered its minimum": {change: edit(decode, func(s *autoscalingv2.HorizontalPodAutoscaler) { s.Spec.MinReplicas = ptr.To[int32](1) }), want: updated(decode)},
		"somebody changed its metrics": {change: edit(router, func(s *autoscalingv2.HorizontalPodAutoscaler) { s.Spec.Metrics[0] = cpu(20) }), want: updated(router)},
		"somebody gave it a behaviour": {change: edit(router, func(s *autoscalingv2.HorizontalPodAutoscaler) {
			s.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{}
		}), want: updated(router)},
		"somebody changed its target":   {change: edit(router, func(s *autoscalingv2.HorizontalPodAutoscaler) { s.Spec.ScaleTargetRef.Name = decode }), want: updated(router)},
		"somebody took a label":         {change: edit(router, func(s *autoscalingv2.HorizontalPodAutoscaler) { delete(s.Labels, labels.Component) }), want: updated(router)},
		"somebody added a label":        {change: edit(router, func(s *autoscalingv2.HorizontalPodAutoscaler) { s.Labels["team"] = "red" })},
		"a number is written otherwise": {change: edit(decode, func(s *autoscalingv2.HorizontalPodAutoscaler) { s.Spec.Metrics[0] = queue("30000m") })},
		"its controller has looked":     {change: edit(decode, func(s *autoscalingv2.HorizontalPodAutoscaler) { s.Status.DesiredReplicas = 3 })},
		"the bounds change, of the clique as well": {
			set: newSet(scaled, func(pcs *grovev1alpha1.PodCliqueSet) {
				pcs.Spec.Template.Cliques[0].Spec.AutoScalingConfig.MaxReplicas = 9
			}),
			want: writes{Update: []string{"PodClique llm-1-router", "HorizontalPodAutoscaler llm-1-router"}},
		},
		"the bounds of the group change": {
			set: newSet(scaled, func(pcs *grovev1alpha1.PodCliqueSet) {
				pcs.Spec.Template.PodCliqueScalingGroups[0].ScaleConfig.MaxReplicas = 9
			}),
			want: updated(decode),
		},
		"nothing is to be scaled any more": {
			set:  newSet(),
			want: writes{Update: []string{"PodClique llm-1-router"}, Remove: []string{"HorizontalPodAutoscaler llm-1-decode", "HorizontalPodAutoscaler llm-1-router"}},
		},
		"the set is scaled in: at once": {
			set: newSet(scaled, func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Spec.Replicas = 1 }),
			want: writes{Remove: []string{
				"HorizontalPodAutoscaler llm-1-decode", "HorizontalPodAutoscaler llm-1-router",
				"PodClique llm-1-decode-0-worker", "PodClique llm-1-decode-1-worker", "PodClique llm-1-router",
			}},
		},
		"the set goes: its Service last": {
			set: newSet(scaled, deletedSet),
			change: func(o observed) observed {
				return o.without("PodClique", "llm-1-decode-0-worker", "llm-1-decode-1-worker", router).without("HorizontalPodAutoscaler", decode)
			},
			want: writes{Remove: []string{"HorizontalPodAutoscaler llm-1-router", "PodCliqueScalingGroup llm-1-decode", "PodGang llm-1", "PodGang llm-1-decode-0"}},
		},
		"below a set that has ended they stay": {set: newSet(finished), change: edit(router, func(s *autoscalingv2.HorizontalPodAutoscaler) { s.Spec.MaxReplicas = 99 })},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			have := allOf(t, newSet(scaled), 1)
			if tc.change != nil {
				have = tc.change(have)
			}
			pcs := tc.set
			if pcs == nil {
				pcs = newSet(scaled)
			}
			expect(t, "writes", tc.want, writesOf(planReplica(pcs, 1, have)))
		})
	}
}

// What is written is what should be, with all that is not ours.
func TestAnAutoscalerIsPutRight(t *testing.T) {
	have := allOf(t, newSet(scaled), 1)
	want := have.autoscalers["llm-1-router"].DeepCopy()
	want.Labels["team"], want.ResourceVersion, want.Annotations = "red", "8", map[string]string{"note": "kept"}
	changed := want.DeepCopy()
	changed.Spec = autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 99}
	changed.Labels[labels.PartOf] = "other"
	have.autoscalers["llm-1-router"] = changed
	before := changed.DeepCopy()

	p := planReplica(newSet(scaled), 1, have)
	expect(t, "writes", writes{Update: []string{"HorizontalPodAutoscaler llm-1-router"}}, writesOf(p))
	expect(t, "autoscaler", client.Object(want), p.update[0])
	expect(t, "what was observed", before, changed)
}

// The clique says what /scale allows. Its size is not the template's, whatever else of it is.
func TestACliqueFollowsTheBoundsAndKeepsItsSize(t *testing.T) {
	have := allOf(t, newSet(scaled), 1)
	router := have.cliques["llm-1-router"]
	router.Spec.Replicas, router.ResourceVersion = 5, "8"
	want := router.DeepCopy()
	want.Spec.AutoScalingConfig = &grovev1alpha1.AutoScalingConfig{MinReplicas: ptr.To[int32](1), MaxReplicas: 3}
	want.Spec.Attempt = 2
	p := planReplica(newSet(scaled, attemptOf(1, 2), func(pcs *grovev1alpha1.PodCliqueSet) {
		pcs.Spec.Template.Cliques[0].Spec.AutoScalingConfig.MaxReplicas = 3
	}), 1, have)
	expect(t, "clique", client.Object(want), p.update[0])
}

func TestWhichUpdatesOfAnAutoscalerMatter(t *testing.T) {
	tests := map[string]struct {
		change func(*autoscalingv2.HorizontalPodAutoscaler)
		want   bool
	}{
		"what its controller writes": {func(s *autoscalingv2.HorizontalPodAutoscaler) { s.Status.CurrentReplicas, s.ResourceVersion = 7, "8" }, false},
		"an annotation":              {func(s *autoscalingv2.HorizontalPodAutoscaler) { s.Annotations = map[string]string{"a": "b"} }, false},
		"its spec":                   {func(s *autoscalingv2.HorizontalPodAutoscaler) { s.Spec.MaxReplicas = 7 }, true},
		"a label":                    {func(s *autoscalingv2.HorizontalPodAutoscaler) { delete(s.Labels, labels.PartOf) }, true},
		"a deletion":                 {func(s *autoscalingv2.HorizontalPodAutoscaler) { s.DeletionTimestamp = ptr.To(metav1.Now()) }, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := allOf(t, newSet(scaled), 1).autoscalers["llm-1-router"]
			after := before.DeepCopy()
			tc.change(after)
			expect(t, "matters", tc.want, autoscalerChanged().Update(event.TypedUpdateEvent[*autoscalingv2.HorizontalPodAutoscaler]{ObjectOld: before, ObjectNew: after}))
			expect(t, "is heard", tc.want, Hears(before, after, false))
		})
	}
}

// The cache shows what has our label. An autoscaler that lost it is not made again in vain.
func TestAnAutoscalerThatTheCacheDoesNotShowIsShownAgain(t *testing.T) {
	all := allOf(t, newSet(scaled), 1)
	hidden := all.autoscalers["llm-1-router"].DeepCopy()
	hidden.Labels = map[string]string{"team": "red"}
	tests := map[string]struct {
		change func(*autoscalingv2.HorizontalPodAutoscaler)
		want   []string
		fails  bool
	}{
		"without its labels": {want: []string{"create", "update"}},
		"on its way out": {change: func(s *autoscalingv2.HorizontalPodAutoscaler) {
			s.DeletionTimestamp, s.Finalizers = ptr.To(metav1.Now()), []string{"example.com/held"}
		}, want: []string{"create"}},
		"of another": {change: func(s *autoscalingv2.HorizontalPodAutoscaler) { s.OwnerReferences = nil }, want: []string{"create"}, fails: true},
		"just made":  {change: func(s *autoscalingv2.HorizontalPodAutoscaler) { s.Labels = all.autoscalers["llm-1-router"].Labels }, want: []string{"create"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			server := hidden.DeepCopy()
			if tc.change != nil {
				tc.change(server)
			}
			stored := build(t, []client.Object{newSet(scaled), server})
			var writes []string
			writer := interceptor.NewClient(stored, interceptor.Funcs{
				Create: func(ctx context.Context, w client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
					writes = append(writes, "create")
					return w.Create(ctx, obj, opts...)
				},
				Update: func(ctx context.Context, w client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
					writes = append(writes, "update")
					return w.Update(ctx, obj, opts...)
				},
			})
			recorder := events.NewFakeRecorder(10)
			r := &Reconciler{Client: writer, Cache: stored, Live: stored, Recorder: recorder}
			want := all.autoscalers["llm-1-router"].DeepCopy()
			want.UID = ""
			err := r.create(t.Context(), newSet(scaled), want.DeepCopy())
			expect(t, "fails", tc.fails, err != nil)
			expect(t, "writes", tc.want, writes)
			if tc.fails {
				expect(t, "event", "Warning NameConflict HorizontalPodAutoscaler llm-1-router exists and belongs to something else", <-recorder.Events)
			}
			if len(tc.want) < 2 {
				return
			}
			got := &autoscalingv2.HorizontalPodAutoscaler{}
			if err := stored.Get(t.Context(), client.ObjectKeyFromObject(want), got); err != nil {
				t.Fatal(err)
			}
			want.Labels["team"] = "red"
			expect(t, "labels", want.Labels, got.Labels)
		})
	}
}

// Of metrics that no autoscaler can have, the set's events tell.
func TestAnAutoscalerThatIsRefusedIsToldOf(t *testing.T) {
	all := allOf(t, newSet(scaled), 1)
	scaler := all.autoscalers["llm-1-router"]
	scaler.Spec.MaxReplicas = 99
	stored := build(t, []client.Object{newSet(scaled), scaler})
	refusal := apierrors.NewInvalid(schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}, scaler.Name, nil)
	writer := interceptor.NewClient(stored, interceptor.Funcs{
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return refusal },
	})
	recorder := events.NewFakeRecorder(10)
	r := &Reconciler{Client: writer, Cache: stored, Live: stored, Recorder: recorder}
	err := r.apply(t.Context(), newSet(scaled), plan{update: []client.Object{scaler}})
	if !apierrors.IsInvalid(err) {
		t.Errorf("error %v", err)
	}
	expect(t, "event", `Warning UpdateFailed HorizontalPodAutoscaler llm-1-router: HorizontalPodAutoscaler.autoscaling "llm-1-router" is invalid`, <-recorder.Events)
}
