package podspec

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
)

func expect(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// newClique is a standalone clique as the replica controller makes it.
func newClique(change func(*grovev1alpha1.PodClique)) *grovev1alpha1.PodClique {
	clique := &grovev1alpha1.PodClique{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "llm-1-worker", UID: "clique-uid",
			Labels: map[string]string{
				labels.AppName: "llm-1-worker", labels.ManagedBy: labels.ManagedByValue, labels.PartOf: "llm", labels.Component: labels.ComponentPodClique,
				labels.ReplicaIndex: "1", labels.PodGang: "llm-1", labels.PodTemplateHash: "hash", "team": "red",
			},
			Annotations: map[string]string{labels.GenerationHash: "generation", "note": "kept"},
		},
		Spec: grovev1alpha1.PodCliqueSpec{
			Replicas: 4,
			Attempt:  2,
			PodSpec:  corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}},
		},
	}
	if change != nil {
		change(clique)
	}
	return clique
}

// member makes a clique one of a scaling group.
func member(clique *grovev1alpha1.PodClique) {
	clique.Labels[labels.ScalingGroup] = "llm-1-decode"
	clique.Labels[labels.ScalingGroupReplicaIndex] = "3"
}

func context() Context {
	return Context{Set: "llm", Replica: 1, ClusterDomain: "cluster.local"}
}

func TestRenderedPodIsFoundByItsNames(t *testing.T) {
	pod := Render(newClique(nil), 3, context())
	expect(t, "meta", metav1.ObjectMeta{
		Namespace: "ns",
		Name:      naming.Pod("llm-1-worker", "clique-uid", 3, 2),
		Labels: map[string]string{
			labels.AppName: "llm-1-worker", labels.ManagedBy: labels.ManagedByValue, labels.PartOf: "llm", labels.Component: labels.ComponentPodClique,
			labels.ReplicaIndex: "1", labels.PodGang: "llm-1", labels.PodTemplateHash: "hash", "team": "red",
			labels.PodClique: "llm-1-worker", labels.PodIndex: "3", labels.RestartAttempt: "2",
		},
		// The hash of the set's generation is the clique's: it would say of the pod what is not so.
		Annotations: map[string]string{"note": "kept"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "grove.io/v1alpha1", Kind: "PodClique", Name: "llm-1-worker", UID: "clique-uid", Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
		}},
	}, pod.ObjectMeta)
	expect(t, "host name", "llm-1-worker-3", pod.Spec.Hostname)
	expect(t, "subdomain", "llm-1", pod.Spec.Subdomain)
}

func TestOurLabelsWinOverTheUsers(t *testing.T) {
	clique := newClique(func(c *grovev1alpha1.PodClique) {
		c.Labels[labels.PodIndex], c.Labels[labels.RestartAttempt], c.Labels[labels.PodClique] = "77", "77", "other"
	})
	got := Render(clique, 3, context()).Labels
	for key, want := range map[string]string{labels.PodIndex: "3", labels.RestartAttempt: "2", labels.PodClique: "llm-1-worker"} {
		expect(t, key, want, got[key])
	}
}

func TestEnvironment(t *testing.T) {
	value := func(name, v string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: v} }
	standalone := []corev1.EnvVar{
		value("GROVE_PCS_NAME", "llm"), value("GROVE_PCS_INDEX", "1"), value("GROVE_PCLQ_NAME", "llm-1-worker"),
		value("GROVE_HEADLESS_SERVICE", "llm-1.ns.svc.cluster.local"), value("GROVE_PCLQ_POD_INDEX", "3"),
	}
	inGroup := append(slices.Clone(standalone),
		value("GROVE_PCSG_NAME", "llm-1-decode"), value("GROVE_PCSG_INDEX", "3"), value("GROVE_PCSG_TEMPLATE_NUM_PODS", "6"), value("GROVE_PCSG_POD_INDEX", "5"))
	fromField := corev1.EnvVar{Name: "NODE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}}
	tests := map[string]struct {
		change  func(*grovev1alpha1.PodClique)
		context Context
		ours    []corev1.EnvVar
		users   []corev1.EnvVar
		// kept are the user's that stay.
		kept []corev1.EnvVar
	}{
		"of a standalone clique": {context: context(), ours: standalone},
		"of a member of a scaling group": {
			change: member, context: Context{Set: "llm", Replica: 1, GroupPods: 6, GroupOffset: 2, ClusterDomain: "cluster.local"}, ours: inGroup,
		},
		"of a cluster with another domain": {
			context: Context{Set: "llm", Replica: 1, ClusterDomain: "k8s.example"},
			ours: []corev1.EnvVar{
				standalone[0], standalone[1], standalone[2], value("GROVE_HEADLESS_SERVICE", "llm-1.ns.svc.k8s.example"), standalone[4],
			},
		},
		"ours come first, so that the user's can refer to them, and theirs keep their order": {
			context: context(), ours: standalone,
			users: []corev1.EnvVar{value("Z", "$(GROVE_PCLQ_POD_INDEX)"), fromField, value("A", "$(Z)")},
			kept:  []corev1.EnvVar{value("Z", "$(GROVE_PCLQ_POD_INDEX)"), fromField, value("A", "$(Z)")},
		},
		"ours win over a user's of the same name, also one with a source": {
			context: context(), ours: standalone,
			users: []corev1.EnvVar{
				value("GROVE_PCS_NAME", "mine"), value("X", "x"),
				{Name: "GROVE_PCLQ_POD_INDEX", ValueFrom: fromField.ValueFrom},
			},
			kept: []corev1.EnvVar{value("X", "x")},
		},
		"a standalone clique leaves the group's names to the user": {
			context: context(), ours: standalone,
			users: []corev1.EnvVar{value("GROVE_PCSG_NAME", "mine")}, kept: []corev1.EnvVar{value("GROVE_PCSG_NAME", "mine")},
		},
		"what the user says twice stays twice": {
			context: context(), ours: standalone,
			users: []corev1.EnvVar{value("X", "1"), value("X", "2")}, kept: []corev1.EnvVar{value("X", "1"), value("X", "2")},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			clique := newClique(tc.change)
			spec := &clique.Spec.PodSpec
			spec.InitContainers = []corev1.Container{{Name: "init", Env: slices.Clone(tc.users)}}
			spec.Containers = []corev1.Container{{Name: "main", Env: slices.Clone(tc.users)}, {Name: "sidecar"}}
			pod := Render(clique, 3, tc.context)
			expect(t, "init container", slices.Concat(tc.ours, tc.kept), pod.Spec.InitContainers[0].Env)
			expect(t, "container", slices.Concat(tc.ours, tc.kept), pod.Spec.Containers[0].Env)
			expect(t, "container of which the user says nothing", tc.ours, pod.Spec.Containers[1].Env)
		})
	}
}

// The variables of one container must not end up in another.
func TestContainersShareNoEnvironment(t *testing.T) {
	own := func(name string) corev1.Container {
		return corev1.Container{Name: name, Env: []corev1.EnvVar{{Name: "OWN", Value: name}}}
	}
	pod := Render(newClique(func(c *grovev1alpha1.PodClique) {
		member(c)
		c.Spec.PodSpec.InitContainers = []corev1.Container{own("init")}
		c.Spec.PodSpec.Containers = []corev1.Container{own("main"), own("sidecar")}
	}), 3, context())
	for _, container := range append(slices.Clone(pod.Spec.InitContainers), pod.Spec.Containers...) {
		expect(t, "last variable", corev1.EnvVar{Name: "OWN", Value: container.Name}, container.Env[len(container.Env)-1])
	}
}

// A clique that is rendered comes from a cache that others read at the same time.
func TestRenderLeavesTheCliqueAlone(t *testing.T) {
	clique := newClique(func(c *grovev1alpha1.PodClique) {
		member(c)
		// Room at the end of a slice is what an append writes into.
		roomy := func(variables ...corev1.EnvVar) []corev1.EnvVar {
			return append(make([]corev1.EnvVar, 0, 16), variables...)
		}
		c.Spec.PodSpec.Containers[0].Env = roomy(corev1.EnvVar{Name: "GROVE_PCS_NAME", Value: "mine"}, corev1.EnvVar{Name: "X"})
		c.Spec.PodSpec.InitContainers = []corev1.Container{{Name: "init", Env: roomy(corev1.EnvVar{Name: "Y"})}}
		c.Spec.PodSpec.NodeSelector = map[string]string{"zone": "a"}
		c.Spec.PodSpec.PriorityClassName = "low"
	})
	before := clique.DeepCopy()
	c := Context{Set: "llm", Replica: 1, GroupPods: 6, PriorityClass: "high", ClusterDomain: "cluster.local"}

	first := Render(clique, 0, c)
	unchanged := first.DeepCopy()
	second := Render(clique, 0, c)
	expect(t, "the second of two pods", first, second)
	expect(t, "clique", before, clique)

	// Whoever completes a pod must not reach the clique or the next pod through it.
	second.Labels["x"], second.Annotations["x"], second.Spec.NodeSelector["x"] = "x", "x", "x"
	second.Spec.Containers[0].Env[0].Value, second.Spec.Containers[0].Name = "x", "x"
	second.Spec.SchedulingGates = append(second.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: "x"})
	Render(clique, 1, c)
	expect(t, "the first pod", unchanged, first)
	expect(t, "clique after a pod was changed", before, clique)
	expect(t, "a third pod", unchanged, Render(clique, 0, c))
}

func TestRenderKeepsWhatTheUserWrote(t *testing.T) {
	users := corev1.PodSpec{
		SchedulingGates:  []corev1.PodSchedulingGate{{Name: "example.com/quota"}},
		SchedulerName:    "other",
		RestartPolicy:    corev1.RestartPolicyNever,
		NodeSelector:     map[string]string{"zone": "a"},
		Tolerations:      []corev1.Toleration{{Key: "gpu"}},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "secret"}},
		Volumes:          []corev1.Volume{{Name: "data"}},
		Containers:       []corev1.Container{{Name: "main", Image: "image", Args: []string{"$(GROVE_PCLQ_POD_INDEX)"}}},
	}
	got := Render(newClique(func(c *grovev1alpha1.PodClique) { c.Spec.PodSpec = *users.DeepCopy() }), 3, context()).Spec
	want := users.DeepCopy()
	want.Hostname, want.Subdomain = "llm-1-worker-3", "llm-1"
	want.Containers[0].Env = got.Containers[0].Env
	expect(t, "spec", *want, got)
}

// Pods find each other by these two, so they are not the user's to choose.
func TestHostNameAndSubdomainAreOurs(t *testing.T) {
	got := Render(newClique(func(c *grovev1alpha1.PodClique) {
		c.Spec.PodSpec.Hostname, c.Spec.PodSpec.Subdomain = "mine", "mine"
	}), 0, context()).Spec
	expect(t, "host name", "llm-1-worker-0", got.Hostname)
	expect(t, "subdomain", "llm-1", got.Subdomain)
}

func TestPriorityClass(t *testing.T) {
	tests := map[string]struct{ users, sets, want string }{
		"neither":                 {"", "", ""},
		"the user's":              {"users", "", "users"},
		"the set's":               {"", "sets", "sets"},
		"the set's, for all pods": {"users", "sets", "sets"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := context()
			c.PriorityClass = tc.sets
			got := Render(newClique(func(c *grovev1alpha1.PodClique) { c.Spec.PodSpec.PriorityClassName = tc.users }), 0, c)
			expect(t, "priority class", tc.want, got.Spec.PriorityClassName)
		})
	}
}

func TestPodNamesDiffer(t *testing.T) {
	base := Render(newClique(nil), 0, context()).Name
	for what, clique := range map[string]*grovev1alpha1.PodClique{
		"attempt": newClique(func(c *grovev1alpha1.PodClique) { c.Spec.Attempt = 3 }),
		"clique":  newClique(func(c *grovev1alpha1.PodClique) { c.UID = "other" }),
	} {
		if got := Render(clique, 0, context()).Name; got == base {
			t.Errorf("a pod of another %s has the same name, %s", what, got)
		}
	}
	// Two pods of one index cannot be there at once: the API server refuses the second.
	updated := newClique(func(c *grovev1alpha1.PodClique) { c.Labels[labels.PodTemplateHash] = "other" })
	if got := Render(updated, 0, context()).Name; got != base {
		t.Errorf("a pod of another template has the name %s, want %s", got, base)
	}
}

// One pod stands for a copy where pods are counted: index 0 of the first clique of the group.
func TestTheFirstPodOfACopyIsLabelled(t *testing.T) {
	tests := map[string]struct {
		index int32
		first bool
		want  string
	}{
		"index 0 of the first clique": {0, true, "true"},
		"another index":               {1, true, ""},
		"another clique":              {0, false, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := context()
			c.First = tc.first
			expect(t, "label", tc.want, Render(newClique(member), tc.index, c).Labels[labels.ScalingGroupFirstPod])
		})
	}
}

func TestRenderBareClique(t *testing.T) {
	pod := Render(&grovev1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, 0, Context{})
	expect(t, "labels", map[string]string{labels.PodClique: "c", labels.PodIndex: "0", labels.RestartAttempt: "0"}, pod.Labels)
	expect(t, "annotations", map[string]string(nil), pod.Annotations)
}

func TestContextOf(t *testing.T) {
	pcs := &grovev1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Name: "llm"}}
	pcs.Spec.Template.PriorityClassName = "high"
	for name, replicas := range map[string]int32{"router": 5, "leader": 1, "worker": 4, "prefill": 7} {
		pcs.Spec.Template.Cliques = append(pcs.Spec.Template.Cliques, grovev1alpha1.PodCliqueTemplateSpec{Name: name, Spec: grovev1alpha1.PodCliqueSpec{Replicas: replicas}})
	}
	pcs.Spec.Template.PodCliqueScalingGroups = []grovev1alpha1.PodCliqueScalingGroupConfig{
		{Name: "prefill", CliqueNames: []string{"prefill"}, Replicas: ptr.To[int32](3)},
		{Name: "decode", CliqueNames: []string{"leader", "worker"}, Replicas: ptr.To[int32](3)},
	}
	tests := map[string]struct {
		change func(*grovev1alpha1.PodClique)
		want   Context
	}{
		"of a standalone clique": {nil, Context{Set: "llm", Replica: 1, PriorityClass: "high", ClusterDomain: "d"}},
		"of a member, with the pods of one copy of its group": {func(c *grovev1alpha1.PodClique) {
			member(c)
			c.Name = "llm-1-decode-3-worker"
		}, Context{Set: "llm", Replica: 1, GroupPods: 5, GroupOffset: 1, PriorityClass: "high", ClusterDomain: "d"}},
		"of a member of the clique that the group names first": {func(c *grovev1alpha1.PodClique) {
			member(c)
			c.Name = "llm-1-decode-3-leader"
		}, Context{Set: "llm", Replica: 1, GroupPods: 5, First: true, PriorityClass: "high", ClusterDomain: "d"}},
		"of a member of a group that the template does not have": {
			func(c *grovev1alpha1.PodClique) { c.Labels[labels.ScalingGroup] = "llm-1-code" },
			Context{Set: "llm", Replica: 1, PriorityClass: "high", ClusterDomain: "d"},
		},
		"of a member in another replica": {
			func(c *grovev1alpha1.PodClique) {
				member(c)
				c.Labels[labels.ReplicaIndex], c.Labels[labels.ScalingGroup] = "2", "llm-2-decode"
				c.Name = "llm-2-decode-3-worker"
			},
			Context{Set: "llm", Replica: 2, GroupPods: 5, GroupOffset: 1, PriorityClass: "high", ClusterDomain: "d"},
		},
		"of a member of a group of another replica": {
			func(c *grovev1alpha1.PodClique) { c.Labels[labels.ScalingGroup] = "llm-2-decode" },
			Context{Set: "llm", Replica: 1, PriorityClass: "high", ClusterDomain: "d"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { expect(t, "context", tc.want, ContextOf(pcs, newClique(tc.change), "d")) })
	}
}

// Every container of the user uses the claims that the pod shares, beside its own; the waiter none.
func TestContainersUseTheClaimsOfTheirPod(t *testing.T) {
	clique := newClique(func(c *grovev1alpha1.PodClique) {
		pod := &c.Spec.PodSpec
		pod.ResourceClaims = []corev1.PodResourceClaim{{Name: "nic", ResourceClaimTemplateName: ptr.To("nic")}}
		pod.InitContainers = []corev1.Container{{Name: "init"}}
		pod.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "nic"}}}}, {Name: "log"}}
	})
	before := clique.DeepCopy()
	c := context()
	c.Claims = gang.PodClaims{
		Clique: clique.Name, Shared: []string{"llm-all-gpu"},
		Own: []grovev1alpha1.ResourceSharingSpec{{Name: "gpu", Scope: grovev1alpha1.ResourceSharingScopePerReplica}},
	}
	c.Wait, c.Waiter = Wait{Container: "wait"}, Waiter{Image: "example.com/waiter"}
	pod := Render(clique, 3, c)
	expect(t, "the clique", before, clique)
	expect(t, "claims", []corev1.PodResourceClaim{
		{Name: "nic", ResourceClaimTemplateName: ptr.To("nic")},
		{Name: "llm-all-gpu", ResourceClaimName: ptr.To("llm-all-gpu")},
		{Name: "llm-1-worker-3-gpu", ResourceClaimName: ptr.To("llm-1-worker-3-gpu")},
	}, pod.Spec.ResourceClaims)
	shared := []corev1.ResourceClaim{{Name: "llm-all-gpu"}, {Name: "llm-1-worker-3-gpu"}}
	want := map[string][]corev1.ResourceClaim{"init": shared, "log": shared, "main": append([]corev1.ResourceClaim{{Name: "nic"}}, shared...)}
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		expect(t, "container "+container.Name, want[container.Name], container.Resources.Claims)
	}
}
