package v1alpha1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// TestDefaults holds the exact value of every fixed default. Everything else about an
// object stays as it was sent: defaults that depend on other fields are not set here,
// because they would be set on every read from etcd, too.
func TestDefaults(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	template := func(tweaks ...func(*PodCliqueSet)) *PodCliqueSet {
		pcs := &PodCliqueSet{Spec: PodCliqueSetSpec{
			WorkloadType: WorkloadTypeInference,
			Template: PodCliqueSetTemplateSpec{
				StartupType:           ptr.To(CliqueStartupTypeAnyOrder),
				HeadlessServiceConfig: &HeadlessServiceConfig{PublishNotReadyAddresses: ptr.To(true)},
			},
		}}
		for _, tweak := range tweaks {
			tweak(pcs)
		}
		return pcs
	}
	tests := map[string]struct{ in, want runtime.Object }{
		"PodCliqueSet: nothing given": {in: &PodCliqueSet{}, want: template()},
		"PodCliqueSet: Training": {
			in:   &PodCliqueSet{Spec: PodCliqueSetSpec{WorkloadType: WorkloadTypeTraining}},
			want: template(func(pcs *PodCliqueSet) { pcs.Spec.WorkloadType = WorkloadTypeTraining }),
		},
		"PodCliqueSet: empty updateStrategy": {
			in: &PodCliqueSet{Spec: PodCliqueSetSpec{UpdateStrategy: &PodCliqueSetUpdateStrategy{}}},
			want: template(func(pcs *PodCliqueSet) {
				pcs.Spec.UpdateStrategy = &PodCliqueSetUpdateStrategy{Type: UpdateStrategyRollingRecreate}
			}),
		},
		"PodCliqueSet: empty startupPolicy and rule": {
			in: &PodCliqueSet{Spec: PodCliqueSetSpec{StartupPolicy: &StartupPolicy{Rules: []StartupPolicyRule{{TargetCliques: []string{"a"}}}}}},
			want: template(func(pcs *PodCliqueSet) {
				pcs.Spec.StartupPolicy = &StartupPolicy{
					StartupPolicyOrder: StartupPolicyAnyOrder,
					Rules:              []StartupPolicyRule{{TargetCliques: []string{"a"}, WaitForCliquesStatus: CliqueStatusReady}},
				}
			}),
		},
		"PodCliqueSet: clique and group": {
			in: &PodCliqueSet{Spec: PodCliqueSetSpec{Template: PodCliqueSetTemplateSpec{
				Cliques:                []PodCliqueTemplateSpec{{Name: "a"}, {Name: "b", Spec: PodCliqueSpec{Replicas: 3}}},
				PodCliqueScalingGroups: []PodCliqueScalingGroupConfig{{Name: "g", CliqueNames: []string{"b"}}},
			}}},
			// restartPolicy and minAvailable depend on other fields, so the strategy sets them.
			want: template(func(pcs *PodCliqueSet) {
				pcs.Spec.Template.Cliques = []PodCliqueTemplateSpec{
					{Name: "a", Spec: PodCliqueSpec{Replicas: 1, PodSpec: corev1.PodSpec{TerminationGracePeriodSeconds: ptr.To[int64](30)}}},
					{Name: "b", Spec: PodCliqueSpec{Replicas: 3, PodSpec: corev1.PodSpec{TerminationGracePeriodSeconds: ptr.To[int64](30)}}},
				}
				pcs.Spec.Template.PodCliqueScalingGroups = []PodCliqueScalingGroupConfig{{Name: "g", CliqueNames: []string{"b"}, Replicas: ptr.To[int32](1)}}
			}),
		},
		"PodCliqueSet: empty headless config": {
			in:   &PodCliqueSet{Spec: PodCliqueSetSpec{Template: PodCliqueSetTemplateSpec{HeadlessServiceConfig: &HeadlessServiceConfig{}}}},
			want: template(),
		},
		"PodCliqueSet: everything given": {in: everythingGiven(), want: everythingGiven()},
		"PodCliqueSet: defaults of core/v1": {
			in: &PodCliqueSet{Spec: PodCliqueSetSpec{Template: PodCliqueSetTemplateSpec{Cliques: []PodCliqueTemplateSpec{{
				Spec: PodCliqueSpec{PodSpec: corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{ContainerPort: 80}}}}}},
			}}}}},
			want: template(func(pcs *PodCliqueSet) {
				pcs.Spec.Template.Cliques = []PodCliqueTemplateSpec{{Spec: PodCliqueSpec{Replicas: 1, PodSpec: corev1.PodSpec{
					TerminationGracePeriodSeconds: ptr.To[int64](30),
					Containers:                    []corev1.Container{{Ports: []corev1.ContainerPort{{ContainerPort: 80, Protocol: corev1.ProtocolTCP}}}},
				}}}}
			}),
		},
		"PodCliqueSetList": {
			in:   &PodCliqueSetList{Items: make([]PodCliqueSet, 2)},
			want: &PodCliqueSetList{Items: []PodCliqueSet{*template(), *template()}},
		},
		"PodClique: nothing given": {
			in:   &PodClique{},
			want: &PodClique{Spec: PodCliqueSpec{WorkloadType: WorkloadTypeInference}},
		},
		"PodClique: Training, scaled to nothing": {
			in:   &PodClique{Spec: PodCliqueSpec{WorkloadType: WorkloadTypeTraining, Replicas: 0}},
			want: &PodClique{Spec: PodCliqueSpec{WorkloadType: WorkloadTypeTraining, Replicas: 0}},
		},
		"PodCliqueScalingGroup: nothing given": {
			in:   &PodCliqueScalingGroup{},
			want: &PodCliqueScalingGroup{Spec: PodCliqueScalingGroupSpec{WorkloadType: WorkloadTypeInference}},
		},
		"PodCliqueScalingGroup: Training, scaled to nothing": {
			in:   &PodCliqueScalingGroup{Spec: PodCliqueScalingGroupSpec{WorkloadType: WorkloadTypeTraining, Replicas: 0}},
			want: &PodCliqueScalingGroup{Spec: PodCliqueScalingGroupSpec{WorkloadType: WorkloadTypeTraining, Replicas: 0}},
		},
		"ClusterTopologyBinding": {in: &ClusterTopologyBinding{}, want: &ClusterTopologyBinding{}},
		"StartGate":              {in: &StartGate{}, want: &StartGate{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			scheme.Default(tc.in)
			if diff := cmp.Diff(tc.want, tc.in); diff != "" {
				t.Errorf("defaults (-want +got):\n%s", diff)
			}
			scheme.Default(tc.in)
			if diff := cmp.Diff(tc.want, tc.in); diff != "" {
				t.Errorf("defaults are not idempotent (-first +second):\n%s", diff)
			}
		})
	}
}

// everythingGiven is a set with a value, other than the default, in each defaulted field.
func everythingGiven() *PodCliqueSet {
	return &PodCliqueSet{Spec: PodCliqueSetSpec{
		WorkloadType:   WorkloadTypeTraining,
		UpdateStrategy: &PodCliqueSetUpdateStrategy{Type: UpdateStrategyOnDelete},
		StartupPolicy: &StartupPolicy{
			StartupPolicyOrder: StartupPolicyInOrder,
			Rules:              []StartupPolicyRule{{WaitForCliquesStatus: CliqueStatusSucceeded}},
		},
		Template: PodCliqueSetTemplateSpec{
			StartupType:           ptr.To(CliqueStartupTypeExplicit),
			HeadlessServiceConfig: &HeadlessServiceConfig{PublishNotReadyAddresses: ptr.To(false)},
			Cliques: []PodCliqueTemplateSpec{{Spec: PodCliqueSpec{
				Replicas: 2,
				PodSpec:  corev1.PodSpec{TerminationGracePeriodSeconds: ptr.To[int64](0)},
			}}},
			PodCliqueScalingGroups: []PodCliqueScalingGroupConfig{{Replicas: ptr.To[int32](0)}},
		},
	}}
}
