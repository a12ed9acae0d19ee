package replica

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
)

// controlledBySet is the owner of every child but the members of scaling groups.
func controlledBySet() metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: "grove.io/v1alpha1", Kind: "PodCliqueSet", Name: "llm", UID: "set-uid", Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}
}

func childLabels(name, component string, more map[string]string) map[string]string {
	out := map[string]string{
		labels.AppName: name, labels.ManagedBy: "grove-operator", labels.PartOf: "llm", labels.Component: component, labels.ReplicaIndex: "1",
	}
	for key, value := range more {
		out[key] = value
	}
	return out
}

func TestDesiredService(t *testing.T) {
	tests := map[string]struct {
		config *grovev1alpha1.HeadlessServiceConfig
		want   bool
	}{
		// Pods look for each other before they are Ready.
		"not Ready addresses are published": {nil, true},
		"or nothing":                        {&grovev1alpha1.HeadlessServiceConfig{}, true},
		"unless the user says otherwise":    {&grovev1alpha1.HeadlessServiceConfig{PublishNotReadyAddresses: ptr.To(false)}, false},
		"or says so":                        {&grovev1alpha1.HeadlessServiceConfig{PublishNotReadyAddresses: ptr.To(true)}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pcs := newSet(func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Spec.Template.HeadlessServiceConfig = tc.config })
			expect(t, "Service", &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "ns", Name: "llm-1", Labels: childLabels("llm-1", "pcs-headless-service", nil), OwnerReferences: []metav1.OwnerReference{controlledBySet()},
				},
				Spec: corev1.ServiceSpec{
					ClusterIP:                "None",
					Selector:                 map[string]string{labels.ManagedBy: "grove-operator", labels.PartOf: "llm", labels.ReplicaIndex: "1"},
					PublishNotReadyAddresses: tc.want,
				},
			}, desiredService(pcs, 1))
		})
	}
}

func TestDesiredScalingGroup(t *testing.T) {
	pcs := newSet()
	want := &grovev1alpha1.PodCliqueScalingGroup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "llm-1-decode", Labels: childLabels("llm-1-decode", "pcs-podcliquescalinggroup", nil),
			Annotations: map[string]string{"group": "kept"}, OwnerReferences: []metav1.OwnerReference{controlledBySet()},
		},
		Spec: grovev1alpha1.PodCliqueScalingGroupSpec{
			Replicas: 2, MinAvailable: ptr.To[int32](1), CliqueNames: []string{"worker"}, WorkloadType: grovev1alpha1.WorkloadTypeInference,
		},
	}
	got := desiredScalingGroup(pcs, 1, &pcs.Spec.Template.PodCliqueScalingGroups[0])
	expect(t, "group", want, got)
	got.Annotations["x"] = "x"
	expect(t, "annotations of the template", map[string]string{"group": "kept"}, pcs.Spec.Template.PodCliqueScalingGroups[0].Annotations)

	bare := desiredScalingGroup(pcs, 1, &grovev1alpha1.PodCliqueScalingGroupConfig{Name: "g"})
	expect(t, "size of a group that says none", int32(1), bare.Spec.Replicas)
	expect(t, "minimum of a group that says none", ptr.To[int32](1), bare.Spec.MinAvailable)
}

// expectedClique is one of the set's, by its name.
func expectedClique(t *testing.T, pcs *grovev1alpha1.PodCliqueSet, name string) gang.ExpectedClique {
	t.Helper()
	for _, e := range gang.ExpectedCliques(pcs, 1, gang.TemplateSizes) {
		if e.Name == name {
			return e
		}
	}
	t.Fatalf("no clique %s", name)
	return gang.ExpectedClique{}
}

func TestDesiredClique(t *testing.T) {
	group := &grovev1alpha1.PodCliqueScalingGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "llm-1-decode", UID: "group-uid"}}
	group.Status.ReplicaAttempts = []grovev1alpha1.ScalingGroupReplicaAttempt{{Index: 1, Attempt: 4}}
	byGroup := []metav1.OwnerReference{
		{
			APIVersion: "grove.io/v1alpha1", Kind: "PodCliqueScalingGroup", Name: "llm-1-decode", UID: "group-uid",
			Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
		},
		// Owned by the set as well, so that it is found by the set's UID; controlled by one.
		{APIVersion: "grove.io/v1alpha1", Kind: "PodCliqueSet", Name: "llm", UID: "set-uid", BlockOwnerDeletion: ptr.To(true)},
	}
	memberLabels := func(name, copyIndex, podGang string, more map[string]string) map[string]string {
		out := childLabels(name, "pcsg-podclique", map[string]string{
			labels.ScalingGroup: "llm-1-decode", labels.ScalingGroupReplicaIndex: copyIndex, labels.PodGang: podGang,
			labels.PodTemplateHash: "worker-hash", "team": "red",
		})
		for key, value := range more {
			out[key] = value
		}
		return out
	}
	worker := grovev1alpha1.PodCliqueSpec{
		Replicas: 3, MinAvailable: ptr.To[int32](2), PodSpec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}},
		WorkloadType: grovev1alpha1.WorkloadTypeInference,
	}
	inAttempt := func(spec grovev1alpha1.PodCliqueSpec, attempt int32) grovev1alpha1.PodCliqueSpec {
		spec.Attempt = attempt
		return spec
	}
	tests := map[string]struct {
		set   *grovev1alpha1.PodCliqueSet
		name  string
		group *grovev1alpha1.PodCliqueScalingGroup
		want  *grovev1alpha1.PodClique
	}{
		"standalone": {
			newSet(attemptOf(1, 2)), "llm-1-router", nil,
			&grovev1alpha1.PodClique{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "ns", Name: "llm-1-router",
					Labels:          childLabels("llm-1-router", "pcs-podclique", map[string]string{labels.PodGang: "llm-1", labels.PodTemplateHash: "router-hash"}),
					Annotations:     map[string]string{labels.GenerationHash: "generation"},
					OwnerReferences: []metav1.OwnerReference{controlledBySet()},
				},
				Spec: grovev1alpha1.PodCliqueSpec{Replicas: 1, MinAvailable: ptr.To[int32](1), WorkloadType: grovev1alpha1.WorkloadTypeInference, Attempt: 2},
			},
		},
		"member in the base gang": {
			newSet(), "llm-1-decode-0-worker", group,
			&grovev1alpha1.PodClique{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "ns", Name: "llm-1-decode-0-worker", Labels: memberLabels("llm-1-decode-0-worker", "0", "llm-1", nil),
					Annotations: map[string]string{"note": "kept", labels.GenerationHash: "generation"}, OwnerReferences: byGroup,
				},
				Spec: worker,
			},
		},
		"member of a scaled gang, in the sum of the attempts": {
			newSet(attemptOf(1, 2)), "llm-1-decode-1-worker", group,
			&grovev1alpha1.PodClique{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "ns", Name: "llm-1-decode-1-worker",
					Labels:      memberLabels("llm-1-decode-1-worker", "1", "llm-1-decode-0", map[string]string{labels.BasePodGang: "llm-1"}),
					Annotations: map[string]string{"note": "kept", labels.GenerationHash: "generation"}, OwnerReferences: byGroup,
				},
				Spec: inAttempt(worker, 6),
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := tc.set.DeepCopy()
			got := desiredClique(tc.set, expectedClique(t, tc.set, tc.name), tc.group)
			expect(t, "clique", tc.want, got)
			got.Labels["x"], got.Annotations["x"], *got.Spec.MinAvailable = "x", "x", 9
			expect(t, "the set that was read", before, tc.set)
		})
	}
}

func TestOurLabelsOfACliqueWinOverTheTemplates(t *testing.T) {
	pcs := newSet(func(pcs *grovev1alpha1.PodCliqueSet) {
		pcs.Spec.Template.Cliques[0].Labels = map[string]string{labels.PodGang: "x", labels.ReplicaIndex: "9", labels.PartOf: "x", "app": "mine"}
		pcs.Spec.Template.Cliques[0].Annotations = map[string]string{labels.GenerationHash: "x"}
	})
	got := desiredClique(pcs, expectedClique(t, pcs, "llm-1-router"), nil)
	expect(t, "labels", childLabels("llm-1-router", "pcs-podclique", map[string]string{
		labels.PodGang: "llm-1", labels.PodTemplateHash: "router-hash", "app": "mine",
	}), got.Labels)
	expect(t, "annotations", map[string]string{labels.GenerationHash: "generation"}, got.Annotations)
}

func TestDesiredGang(t *testing.T) {
	clique := func(name string, uid types.UID, replicas int32, minimum *int32, attempt int32) *grovev1alpha1.PodClique {
		return &grovev1alpha1.PodClique{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid, Labels: map[string]string{labels.PodTemplateHash: "hash"}},
			Spec:       grovev1alpha1.PodCliqueSpec{Replicas: replicas, MinAvailable: minimum, Attempt: attempt},
		}
	}
	pod := func(name string, uid types.UID, index, attempt int32) schedulerv1alpha1.NamespacedName {
		return schedulerv1alpha1.NamespacedName{Namespace: "ns", Name: naming.Pod(name, uid, index, attempt)}
	}
	members := []*grovev1alpha1.PodClique{
		clique("z", "uid-z", 3, ptr.To[int32](2), 5), clique("all", "uid-all", 2, nil, 0),
		clique("small", "uid-small", 1, ptr.To[int32](4), 0), clique("idle", "uid-idle", 0, ptr.To[int32](4), 0),
	}
	want := func(name string, more map[string]string) *schedulerv1alpha1.PodGang {
		return &schedulerv1alpha1.PodGang{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: name, Labels: childLabels(name, "podgang", more), OwnerReferences: []metav1.OwnerReference{controlledBySet()},
			},
			Spec: schedulerv1alpha1.PodGangSpec{
				PriorityClassName: "high",
				// In the order of the cliques, with the pods below each minimum, in each clique's attempt.
				PodGroups: []schedulerv1alpha1.PodGangPodGroup{
					{Name: "z", MinReplicas: 2, PodReferences: []schedulerv1alpha1.NamespacedName{pod("z", "uid-z", 0, 5), pod("z", "uid-z", 1, 5)}},
					{Name: "all", MinReplicas: 2, PodReferences: []schedulerv1alpha1.NamespacedName{pod("all", "uid-all", 0, 0), pod("all", "uid-all", 1, 0)}},
					{Name: "small", MinReplicas: 1, PodReferences: []schedulerv1alpha1.NamespacedName{pod("small", "uid-small", 0, 0)}},
					{Name: "idle"},
				},
			},
		}
	}
	gangOf := func(name string, attempt int32) *schedulerv1alpha1.PodGang {
		plan := &gangPlan{name: name, base: "llm-1", attempt: attempt}
		for _, clique := range members {
			plan.members = append(plan.members, gangMember{clique: clique})
		}
		podGang, complete := desiredGang(newSet(), 1, plan, nil, gang.Topology{})
		if !complete {
			t.Errorf("gang %s is not complete", name)
		}
		return podGang
	}
	expect(t, "base gang", want("llm-1", map[string]string{labels.RestartAttempt: "3", labels.SchedulerName: "default-scheduler"}), gangOf("llm-1", 3))
	expect(t, "scaled gang", want("llm-1-decode-0", map[string]string{labels.RestartAttempt: "0", labels.BasePodGang: "llm-1", labels.SchedulerName: "default-scheduler"}), gangOf("llm-1-decode-0", 0))
}

// kube-scheduler refuses a group of another priority than its pods'.
func TestAGangHasThePriorityOfItsPods(t *testing.T) {
	tests := map[string]struct{ set, first, second, want string }{
		"the set's":                  {set: "high", first: "own", second: "own", want: "high"},
		"its pods', if it says none": {first: "own", second: "own", want: "own"},
		"the first that says":        {second: "own", want: "own"},
		"none":                       {},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pcs := newSet()
			pcs.Spec.Template.PriorityClassName = tc.set
			plan := &gangPlan{name: "llm-1", base: "llm-1"}
			for _, class := range []string{tc.first, tc.second} {
				member := &grovev1alpha1.PodClique{}
				member.Spec.PodSpec.PriorityClassName = class
				plan.members = append(plan.members, gangMember{clique: member})
			}
			podGang, _ := desiredGang(pcs, 1, plan, nil, gang.Topology{})
			expect(t, "class", tc.want, podGang.Spec.PriorityClassName)
		})
	}
}

// What cannot be the value of a label is no label: the cliques say it too.
func TestAGangIsLabelledWithItsScheduler(t *testing.T) {
	for scheduler, want := range map[string]string{"": "default-scheduler", "mine": "mine", strings.Repeat("long.", 20) + "er": ""} {
		member := &grovev1alpha1.PodClique{}
		member.Spec.PodSpec.SchedulerName = scheduler
		podGang, _ := desiredGang(newSet(), 1, &gangPlan{name: "llm-1", base: "llm-1", members: []gangMember{{clique: member}}}, nil, gang.Topology{})
		expect(t, "label for scheduler "+scheduler, want, podGang.Labels[labels.SchedulerName])
	}
}

// A base gang has its replica's attempt, whatever that of its members is; a scaled gang
// has that of its copy (D3).
func TestAttemptsOfGangs(t *testing.T) {
	recycled := func(o observed) observed {
		o.groups["llm-1-decode"].Status.ReplicaAttempts = []grovev1alpha1.ScalingGroupReplicaAttempt{{Index: 0, Attempt: 5}, {Index: 1, Attempt: 7}}
		return o
	}
	have := recycled(allOf(t, newSet(), 1)).without("PodGang", "llm-1", "llm-1-decode-0")
	got := map[string]string{}
	for _, obj := range planReplica(newSet(attemptOf(1, 2)), 1, have).create {
		got[obj.GetName()] = obj.GetLabels()[labels.RestartAttempt]
	}
	expect(t, "attempts", map[string]string{"llm-1": "2", "llm-1-decode-0": "9"}, got)
}
