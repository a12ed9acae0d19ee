package podcliqueset

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

// Each warning begins with the path of the field that it is about.
func TestWarnings(t *testing.T) {
	const (
		template = "spec.template."
		worker   = "spec.template.cliques[1]."
		group    = "spec.template.podCliqueScalingGroups[0]."
	)
	decode := withGroup(ptr.To[int32](1), nil)
	// shared has the set share a claim, with so many workers in each of its two replicas.
	shared := func(scope grove.ResourceSharingScope, workers int32, filter *grove.PCSResourceSharingFilter) func(*grove.PodCliqueSet) {
		return func(pcs *grove.PodCliqueSet) {
			pcs.Spec.Replicas = 2
			pcs.Spec.Template.Cliques[0].Spec.Replicas = 0
			pcs.Spec.Template.Cliques[1].Spec.Replicas = workers
			pcs.Spec.Template.ResourceSharing = []grove.PCSResourceSharingSpec{{ResourceSharingSpec: grove.ResourceSharingSpec{Name: "gpu", Scope: scope}, Filter: filter}}
		}
	}
	claimTemplate := func(names ...string) func(*grove.PodCliqueSet) {
		return func(pcs *grove.PodCliqueSet) {
			for _, name := range names {
				pcs.Spec.Template.ResourceClaimTemplates = append(pcs.Spec.Template.ResourceClaimTemplates, grove.ResourceClaimTemplateConfig{Name: name})
			}
		}
	}
	startupType := func(startupType grove.CliqueStartupType) func(*grove.PodCliqueSet) {
		return func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.StartupType = &startupType }
	}
	restartPolicy := func(policy corev1.RestartPolicy) func(*grove.PodCliqueSet) {
		return func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.Cliques[1].Spec.PodSpec.RestartPolicy = policy }
	}
	pod := func(tweak func(*corev1.PodSpec)) func(*grove.PodCliqueSet) {
		return func(pcs *grove.PodCliqueSet) { tweak(&pcs.Spec.Template.Cliques[1].Spec.PodSpec) }
	}
	startsAfter := func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.Cliques[1].Spec.StartsAfter = []string{"router"} }
	updates := func(pcs *grove.PodCliqueSet) { pcs.Spec.UpdateStrategy = &grove.PodCliqueSetUpdateStrategy{} }
	setPriority := func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.PriorityClassName = "high" }
	tests := map[string]struct {
		tweak func(*grove.PodCliqueSet)
		want  []string
	}{
		"nothing inert": {tweak: all()},
		"nothing inert in Training": {tweak: all(training, restartPolicy(corev1.RestartPolicyNever), func(pcs *grove.PodCliqueSet) {
			pcs.Spec.TrainingSpec = &grove.TrainingSpec{MaxRestarts: ptr.To[int32](0)}
			pcs.Spec.Template.TerminationDelay = delay(0)
		})},
		"no budgets":     {tweak: all(training, func(pcs *grove.PodCliqueSet) { pcs.Spec.TrainingSpec = &grove.TrainingSpec{} })},
		"nothing at all": {tweak: func(pcs *grove.PodCliqueSet) { *pcs = grove.PodCliqueSet{} }},
		"AnyOrder":       {tweak: all(startup(grove.StartupPolicyAnyOrder), startupType(grove.CliqueStartupTypeAnyOrder))},
		"budgets": {
			tweak: all(training, func(pcs *grove.PodCliqueSet) {
				pcs.Spec.TrainingSpec = &grove.TrainingSpec{MaxRestarts: ptr.To[int32](1), MaxRuntime: delay(time.Hour)}
			}),
		},
		"startupPolicy InOrder":      {tweak: startup(grove.StartupPolicyInOrder)},
		"groupSchedulingConfig":      {tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.GroupSchedulingConfig = &grove.GroupSchedulingConfig{} }},
		"updateStrategy":             {tweak: updates},
		"updateStrategy in Training": {tweak: all(training, updates), want: []string{"spec.updateStrategy"}},
		"cliqueStartupType InOrder":  {tweak: startupType(grove.CliqueStartupTypeInOrder)},
		"cliqueStartupType Explicit": {tweak: startupType(grove.CliqueStartupTypeExplicit)},
		"terminationDelay":           {tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.TerminationDelay = delay(time.Hour) }},
		"resourceSharing":            {tweak: all(shared(grove.ResourceSharingScopeAllReplicas, 128, nil), claimTemplate("gpu"))},
		"a template of claims that nothing names": {
			tweak: all(shared(grove.ResourceSharingScopeAllReplicas, 1, nil), claimTemplate("gpu", "other")), want: []string{template + "resourceClaimTemplates[1]"},
		},
		"a claim for too many pods":            {tweak: shared(grove.ResourceSharingScopeAllReplicas, 129, nil), want: []string{template + "resourceSharing[0]"}},
		"a claim for each of many replicas":    {tweak: shared(grove.ResourceSharingScopePerReplica, 256, nil)},
		"a claim for too many pods of replica": {tweak: shared(grove.ResourceSharingScopePerReplica, 257, nil), want: []string{template + "resourceSharing[0]"}},
		"a claim for few of many pods":         {tweak: shared(grove.ResourceSharingScopePerReplica, 257, &grove.PCSResourceSharingFilter{ChildCliqueNames: []string{"router"}})},
		"a claim for too many pods of a group": {
			tweak: all(decode, shared(grove.ResourceSharingScopePerReplica, 257, &grove.PCSResourceSharingFilter{ChildScalingGroupNames: []string{"decode"}})), want: []string{template + "resourceSharing[0]"},
		},
		"copies count": {
			tweak: all(withGroup(ptr.To[int32](2), nil), shared(grove.ResourceSharingScopePerReplica, 129, nil)), want: []string{template + "resourceSharing[0]"},
		},
		"autoscaling of a clique": {tweak: func(pcs *grove.PodCliqueSet) {
			pcs.Spec.Template.Cliques[1].Spec.AutoScalingConfig = &grove.AutoScalingConfig{}
		}},
		"resourceSharing of a clique": {tweak: func(pcs *grove.PodCliqueSet) {
			pcs.Spec.Template.Cliques[1].ResourceSharing = []grove.ResourceSharingSpec{{Name: "gpu", Scope: grove.ResourceSharingScopePerReplica}, {Name: "all", Scope: grove.ResourceSharingScopeAllReplicas}}
			pcs.Spec.Template.Cliques[1].Spec.Replicas = 257
		}, want: []string{worker + "resourceSharing[1]"}},
		"autoscaling of a group": {
			tweak: all(decode, func(pcs *grove.PodCliqueSet) {
				pcs.Spec.Template.PodCliqueScalingGroups[0].ScaleConfig = &grove.AutoScalingConfig{}
			}),
		},
		"resourceSharing of a group": {
			tweak: all(withGroup(ptr.To[int32](2), nil), func(pcs *grove.PodCliqueSet) {
				sharing := grove.PCSGResourceSharingSpec{ResourceSharingSpec: grove.ResourceSharingSpec{Name: "gpu", Scope: grove.ResourceSharingScopeAllReplicas}}
				own, other, nobody := sharing, sharing, sharing
				own.Scope = grove.ResourceSharingScopePerReplica
				other.Name = "other"
				nobody.Filter = &grove.PCSGResourceSharingFilter{ChildCliqueNames: []string{"nobody"}}
				pcs.Spec.Template.PodCliqueScalingGroups[0].ResourceSharing = []grove.PCSGResourceSharingSpec{own, other, nobody}
				pcs.Spec.Template.Cliques[1].Spec.Replicas = 129
			}),
			want: []string{group + "resourceSharing[1]"},
		},
		"memory fabric": {
			tweak: all(decode, func(pcs *grove.PodCliqueSet) {
				pcs.Annotations = map[string]string{"grove.io/mnnvl-group": "a"}
				pcs.Spec.Template.Cliques[1].Annotations = map[string]string{"grove.io/mnnvl-group": "b"}
				pcs.Spec.Template.PodCliqueScalingGroups[0].Annotations = map[string]string{"grove.io/mnnvl-group": "c"}
			}),
			want: []string{"metadata.annotations[grove.io/mnnvl-group]", worker + "annotations[grove.io/mnnvl-group]", group + "annotations[grove.io/mnnvl-group]"},
		},
		"memory fabric none": {tweak: func(pcs *grove.PodCliqueSet) { pcs.Annotations = map[string]string{"grove.io/mnnvl-group": "none"} }},
		"another scheduler":  {tweak: pod(func(s *corev1.PodSpec) { s.SchedulerName = "other" }), want: []string{worker + "spec.podSpec.schedulerName"}},
		"the scheduler":      {tweak: pod(func(s *corev1.PodSpec) { s.SchedulerName = "default-scheduler" })},
		"KAI":                {tweak: pod(func(s *corev1.PodSpec) { s.SchedulerName = "kai-scheduler" })},

		"rules in AnyOrder": {
			tweak: startup(grove.StartupPolicyAnyOrder, grove.StartupPolicyRule{TargetCliques: []string{"router"}, WaitForCliquesStatus: grove.CliqueStatusReady}),
			want:  []string{"spec.startupPolicy.rules"},
		},
		"startsAfter in AnyOrder": {tweak: startsAfter, want: []string{worker + "spec.startsAfter"}},
		"startsAfter in InOrder":  {tweak: all(startsAfter, startupType(grove.CliqueStartupTypeInOrder)), want: []string{worker + "spec.startsAfter"}},
		"startsAfter in Explicit": {tweak: all(startsAfter, startupType(grove.CliqueStartupTypeExplicit))},
		"more pods than a set may have": {tweak: func(pcs *grove.PodCliqueSet) {
			pcs.Spec.Template.Cliques[1].Spec.AutoScalingConfig = &grove.AutoScalingConfig{MaxReplicas: 10000}
		}, want: []string{"spec"}},
		"as many pods as a set may have": {tweak: func(pcs *grove.PodCliqueSet) {
			pcs.Spec.Template.Cliques[1].Spec.AutoScalingConfig = &grove.AutoScalingConfig{MaxReplicas: 9999}
		}},
		"labels of the controller": {tweak: func(pcs *grove.PodCliqueSet) {
			pcs.Spec.Template.Cliques[1].Labels = map[string]string{
				"app.kubernetes.io/name": "a", "app.kubernetes.io/part-of": "a", "app.kubernetes.io/managed-by": "a", "app.kubernetes.io/component": "a", "app.kubernetes.io/version": "a",
			}
		}, want: []string{worker + "labels[app.kubernetes.io/component]", worker + "labels[app.kubernetes.io/managed-by]", worker + "labels[app.kubernetes.io/name]", worker + "labels[app.kubernetes.io/part-of]"}},
		"hostname":                    {tweak: pod(func(s *corev1.PodSpec) { s.Hostname = "a" }), want: []string{worker + "spec.podSpec.hostname"}},
		"subdomain":                   {tweak: pod(func(s *corev1.PodSpec) { s.Subdomain = "a" }), want: []string{worker + "spec.podSpec.subdomain"}},
		"a priority beside the set's": {tweak: all(setPriority, pod(func(s *corev1.PodSpec) { s.PriorityClassName = "low" })), want: []string{worker + "spec.podSpec.priorityClassName"}},
		"the set's priority":          {tweak: all(setPriority, pod(func(s *corev1.PodSpec) { s.PriorityClassName = "high" }))},
		"a priority":                  {tweak: pod(func(s *corev1.PodSpec) { s.PriorityClassName = "high" })},
		"variables of the controller": {tweak: pod(func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{{Env: []corev1.EnvVar{{Name: "A"}, {Name: "GROVE_PCS_NAME"}}}}
			s.Containers[0].Env = []corev1.EnvVar{{Name: "GROVE_PCSG_INDEX"}, {Name: "GROVE_OTHER"}}
		}), want: []string{worker + "spec.podSpec.containers[0].env[0]", worker + "spec.podSpec.initContainers[0].env[1]"}},
		"OnFailure in Training": {tweak: all(training, restartPolicy(corev1.RestartPolicyOnFailure)), want: []string{worker + "spec.podSpec.restartPolicy"}},
		"OnFailure in Training with time to recover": {tweak: all(training, restartPolicy(corev1.RestartPolicyOnFailure), func(pcs *grove.PodCliqueSet) {
			pcs.Spec.Template.TerminationDelay = delay(time.Minute)
		})},
		"OnFailure in Inference": {tweak: restartPolicy(corev1.RestartPolicyOnFailure)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			pcs := mkPodCliqueSet(tc.tweak)
			for _, warning := range slices.Concat(inertFields(pcs), untoldSchedulers(pcs), replacedFields(pcs), sharedByMany(pcs)) {
				path, text, _ := strings.Cut(warning, ": ")
				if text == "" {
					t.Errorf("warning %q says nothing", warning)
				}
				got = append(got, path)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
