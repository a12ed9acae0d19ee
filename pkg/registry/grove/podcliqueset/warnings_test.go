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
	constraint := &grove.TopologyConstraint{TopologyName: "gpu"}
	startupType := func(startupType grove.CliqueStartupType) func(*grove.PodCliqueSet) {
		return func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.StartupType = &startupType }
	}
	restartPolicy := func(policy corev1.RestartPolicy) func(*grove.PodCliqueSet) {
		return func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.Cliques[1].Spec.PodSpec.RestartPolicy = policy }
	}
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
		"startupPolicy InOrder":      {tweak: startup(grove.StartupPolicyInOrder), want: []string{"spec.startupPolicy"}},
		"groupSchedulingConfig":      {tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.GroupSchedulingConfig = &grove.GroupSchedulingConfig{} }, want: []string{"spec.groupSchedulingConfig"}},
		"updateStrategy":             {tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.UpdateStrategy = &grove.PodCliqueSetUpdateStrategy{} }, want: []string{"spec.updateStrategy"}},
		"cliqueStartupType InOrder":  {tweak: startupType(grove.CliqueStartupTypeInOrder), want: []string{template + "cliqueStartupType"}},
		"cliqueStartupType Explicit": {tweak: startupType(grove.CliqueStartupTypeExplicit), want: []string{template + "cliqueStartupType"}},
		"topologyConstraint":         {tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.TopologyConstraint = constraint }, want: []string{template + "topologyConstraint"}},
		"terminationDelay":           {tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.TerminationDelay = delay(time.Hour) }},
		"resourceSharing": {tweak: func(pcs *grove.PodCliqueSet) {
			pcs.Spec.Template.ResourceSharing = make([]grove.PCSResourceSharingSpec, 1)
		}, want: []string{template + "resourceSharing"}},
		"autoscaling of a clique": {tweak: func(pcs *grove.PodCliqueSet) {
			pcs.Spec.Template.Cliques[1].Spec.AutoScalingConfig = &grove.AutoScalingConfig{}
		}, want: []string{worker + "spec.autoScalingConfig"}},
		"topologyConstraint of a clique": {tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.Cliques[1].TopologyConstraint = constraint }, want: []string{worker + "topologyConstraint"}},
		"resourceSharing of a clique": {tweak: func(pcs *grove.PodCliqueSet) {
			pcs.Spec.Template.Cliques[1].ResourceSharing = make([]grove.ResourceSharingSpec, 1)
		}, want: []string{worker + "resourceSharing"}},
		"autoscaling of a group": {
			tweak: all(decode, func(pcs *grove.PodCliqueSet) {
				pcs.Spec.Template.PodCliqueScalingGroups[0].ScaleConfig = &grove.AutoScalingConfig{}
			}),
			want: []string{group + "scaleConfig"},
		},
		"topologyConstraint of a group": {
			tweak: all(decode, func(pcs *grove.PodCliqueSet) {
				pcs.Spec.Template.PodCliqueScalingGroups[0].TopologyConstraint = constraint
			}),
			want: []string{group + "topologyConstraint"},
		},
		"resourceSharing of a group": {
			tweak: all(decode, func(pcs *grove.PodCliqueSet) {
				pcs.Spec.Template.PodCliqueScalingGroups[0].ResourceSharing = make([]grove.PCSGResourceSharingSpec, 1)
			}),
			want: []string{group + "resourceSharing"},
		},
		"OnFailure in Training": {tweak: all(training, restartPolicy(corev1.RestartPolicyOnFailure)), want: []string{worker + "spec.podSpec.restartPolicy"}},
		"OnFailure in Training with time to recover": {tweak: all(training, restartPolicy(corev1.RestartPolicyOnFailure), func(pcs *grove.PodCliqueSet) {
			pcs.Spec.Template.TerminationDelay = delay(time.Minute)
		})},
		"OnFailure in Inference": {tweak: restartPolicy(corev1.RestartPolicyOnFailure)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, warning := range warnings(mkPodCliqueSet(tc.tweak)) {
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
