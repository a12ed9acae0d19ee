package podcliqueset

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

func delay(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

// defaulted sets what every set of mkPodCliqueSet gets: minAvailable and restartPolicy.
func defaulted(restartPolicy corev1.RestartPolicy) func(*grove.PodCliqueSet) {
	return func(pcs *grove.PodCliqueSet) {
		for i := range pcs.Spec.Template.Cliques {
			clique := &pcs.Spec.Template.Cliques[i].Spec
			clique.MinAvailable = ptr.To(clique.Replicas)
			clique.PodSpec.RestartPolicy = restartPolicy
		}
	}
}

func TestDefaultsOfNewSets(t *testing.T) {
	inference, finite := defaulted(corev1.RestartPolicyAlways), defaulted(corev1.RestartPolicyNever)
	flag := Defaults{TerminationDelay: delay(4 * time.Hour)}
	noDelay := func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.TerminationDelay = delay(0) }
	given := func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.TerminationDelay = delay(time.Minute) }
	readyBeforeWorker := grove.StartupPolicyRule{TargetCliques: []string{"router"}, WaitForCliquesStatus: grove.CliqueStatusReady}
	tests := map[string]struct {
		defaults Defaults
		in, want func(*grove.PodCliqueSet)
	}{
		"inference: restartPolicy Always, minAvailable = replicas, no terminationDelay": {
			in: all(), want: inference,
		},
		"training: restartPolicy Never, terminationDelay 0s": {
			in: training, want: all(training, finite, noDelay),
		},
		"given restartPolicy and minAvailable stay": {
			in: all(training, defaulted(corev1.RestartPolicyOnFailure), func(pcs *grove.PodCliqueSet) {
				pcs.Spec.Template.Cliques[1].Spec.MinAvailable = ptr.To[int32](2)
			}),
			want: all(training, defaulted(corev1.RestartPolicyOnFailure), noDelay, func(pcs *grove.PodCliqueSet) {
				pcs.Spec.Template.Cliques[1].Spec.MinAvailable = ptr.To[int32](2)
			}),
		},

		// Termination delay (D1).
		"the flag gives new inference sets a delay": {
			defaults: flag, in: all(),
			want: all(inference, func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.TerminationDelay = delay(4 * time.Hour) }),
		},
		"the flag does not replace a given delay":     {defaults: flag, in: given, want: all(given, inference)},
		"the flag is not for training":                {defaults: flag, in: training, want: all(training, finite, noDelay)},
		"training keeps a given delay":                {in: all(training, given), want: all(training, given, finite)},
		"a group gets no delay of its own":            {in: withGroup(ptr.To[int32](1), ptr.To[int32](1)), want: all(withGroup(ptr.To[int32](1), ptr.To[int32](1)), inference)},
		"inference: minAvailable of a group is 1":     {in: withGroup(ptr.To[int32](3), nil), want: all(withGroup(ptr.To[int32](3), ptr.To[int32](1)), inference)},
		"training: minAvailable of a group is all":    {in: all(training, withGroup(ptr.To[int32](3), nil)), want: all(training, withGroup(ptr.To[int32](3), ptr.To[int32](3)), finite, noDelay)},
		"training: a group's minAvailable may be set": {in: all(training, withGroup(ptr.To[int32](3), ptr.To[int32](2))), want: all(training, withGroup(ptr.To[int32](3), ptr.To[int32](2)), finite, noDelay)},

		// Scaling.
		"minReplicas of a clique is its replicas": {
			in: func(pcs *grove.PodCliqueSet) {
				pcs.Spec.Template.Cliques[1].Spec.AutoScalingConfig = &grove.AutoScalingConfig{MaxReplicas: 9}
			},
			want: all(inference, func(pcs *grove.PodCliqueSet) {
				pcs.Spec.Template.Cliques[1].Spec.AutoScalingConfig = &grove.AutoScalingConfig{MinReplicas: ptr.To[int32](3), MaxReplicas: 9}
			}),
		},
		"minReplicas of a group is its replicas": {
			in: all(withGroup(ptr.To[int32](2), nil), func(pcs *grove.PodCliqueSet) {
				pcs.Spec.Template.PodCliqueScalingGroups[0].ScaleConfig = &grove.AutoScalingConfig{MaxReplicas: 9}
			}),
			want: all(inference, withGroup(ptr.To[int32](2), ptr.To[int32](1)), func(pcs *grove.PodCliqueSet) {
				pcs.Spec.Template.PodCliqueScalingGroups[0].ScaleConfig = &grove.AutoScalingConfig{MinReplicas: ptr.To[int32](2), MaxReplicas: 9}
			}),
		},
		"a given minReplicas stays": {
			in: func(pcs *grove.PodCliqueSet) {
				pcs.Spec.Template.Cliques[1].Spec.AutoScalingConfig = &grove.AutoScalingConfig{MinReplicas: ptr.To[int32](1), MaxReplicas: 9}
			},
			want: all(inference, func(pcs *grove.PodCliqueSet) {
				pcs.Spec.Template.Cliques[1].Spec.AutoScalingConfig = &grove.AutoScalingConfig{MinReplicas: ptr.To[int32](1), MaxReplicas: 9}
			}),
		},

		// Startup policy (D20).
		"InOrder: all cliques but the last have to be Ready": {
			in:   startup(grove.StartupPolicyInOrder),
			want: all(inference, startup(grove.StartupPolicyInOrder, readyBeforeWorker)),
		},
		"InOrder: given rules stay": {
			in:   startup(grove.StartupPolicyInOrder, grove.StartupPolicyRule{TargetCliques: []string{"router"}, WaitForCliquesStatus: grove.CliqueStatusSucceeded}),
			want: all(inference, startup(grove.StartupPolicyInOrder, grove.StartupPolicyRule{TargetCliques: []string{"router"}, WaitForCliquesStatus: grove.CliqueStatusSucceeded})),
		},
		"InOrder: one clique needs no rule": {
			in:   all(startup(grove.StartupPolicyInOrder), func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.Cliques = pcs.Spec.Template.Cliques[:1] }),
			want: all(startup(grove.StartupPolicyInOrder), func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.Cliques = pcs.Spec.Template.Cliques[:1] }, inference),
		},
		"InOrder: no cliques at all": {
			in:   all(startup(grove.StartupPolicyInOrder), func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.Cliques = nil }),
			want: all(startup(grove.StartupPolicyInOrder), func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.Cliques = nil }),
		},
		"AnyOrder: no rules": {in: startup(grove.StartupPolicyAnyOrder), want: all(inference, startup(grove.StartupPolicyAnyOrder))},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pcs, want := mkPodCliqueSet(tc.in), mkPodCliqueSet(tc.want)
			tc.defaults.forCreate(pcs)
			if diff := cmp.Diff(want, pcs); diff != "" {
				t.Errorf("defaults (-want +got):\n%s", diff)
			}
			tc.defaults.forCreate(pcs)
			if diff := cmp.Diff(want, pcs); diff != "" {
				t.Errorf("defaults are not idempotent (-first +second):\n%s", diff)
			}
		})
	}
}

// A set that takes the flag's delay has its own copy of it.
func TestDefaultDelayIsNotShared(t *testing.T) {
	defaults := Defaults{TerminationDelay: delay(time.Hour)}
	pcs := mkPodCliqueSet()
	defaults.forCreate(pcs)
	pcs.Spec.Template.TerminationDelay.Duration = 0
	if defaults.TerminationDelay.Duration != time.Hour {
		t.Errorf("a set changed the flag to %s", defaults.TerminationDelay.Duration)
	}
}

func TestDefaultsOfChangedSets(t *testing.T) {
	flag := Defaults{TerminationDelay: delay(4 * time.Hour)}
	// The old set is a new one with its defaults; in is what a user applies over it.
	tests := map[string]struct {
		old, in func(*grove.PodCliqueSet)
		check   func(*grove.PodCliqueSet) (got, want any)
	}{
		"minAvailable stays when replicas change": {
			in: func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.Cliques[1].Spec.Replicas = 5 },
			check: func(pcs *grove.PodCliqueSet) (any, any) {
				return *pcs.Spec.Template.Cliques[1].Spec.MinAvailable, int32(3)
			},
		},
		"minAvailable is found by name": {
			in: all(swap, func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.Cliques[0].Spec.Replicas = 5 }),
			check: func(pcs *grove.PodCliqueSet) (any, any) {
				return *pcs.Spec.Template.Cliques[0].Spec.MinAvailable, int32(3)
			},
		},
		"a given minAvailable is left to validation": {
			in: func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.Cliques[1].Spec.MinAvailable = ptr.To[int32](2) },
			check: func(pcs *grove.PodCliqueSet) (any, any) {
				return *pcs.Spec.Template.Cliques[1].Spec.MinAvailable, int32(2)
			},
		},
		"minAvailable of a clique that is new": {
			in: func(pcs *grove.PodCliqueSet) {
				pcs.Spec.Template.Cliques = append(pcs.Spec.Template.Cliques, mkClique("helper", 4))
			},
			check: func(pcs *grove.PodCliqueSet) (any, any) {
				return *pcs.Spec.Template.Cliques[2].Spec.MinAvailable, int32(4)
			},
		},
		"minAvailable of a group stays": {
			old: withGroup(ptr.To[int32](3), ptr.To[int32](2)),
			in:  withGroup(ptr.To[int32](5), nil),
			check: func(pcs *grove.PodCliqueSet) (any, any) {
				return *pcs.Spec.Template.PodCliqueScalingGroups[0].MinAvailable, int32(2)
			},
		},
		"minAvailable of a group stays in Training": {
			old: all(training, withGroup(ptr.To[int32](3), nil)),
			in:  all(training, withGroup(ptr.To[int32](5), nil)),
			check: func(pcs *grove.PodCliqueSet) (any, any) {
				return *pcs.Spec.Template.PodCliqueScalingGroups[0].MinAvailable, int32(3)
			},
		},
		"a given minAvailable of a group is left to validation": {
			old: withGroup(ptr.To[int32](3), ptr.To[int32](2)),
			in:  withGroup(ptr.To[int32](3), ptr.To[int32](1)),
			check: func(pcs *grove.PodCliqueSet) (any, any) {
				return *pcs.Spec.Template.PodCliqueScalingGroups[0].MinAvailable, int32(1)
			},
		},
		"minAvailable of a group that is new": {
			in: withGroup(ptr.To[int32](5), nil),
			check: func(pcs *grove.PodCliqueSet) (any, any) {
				return *pcs.Spec.Template.PodCliqueScalingGroups[0].MinAvailable, int32(1)
			},
		},
		"rules of the startup policy stay": {
			old: startup(grove.StartupPolicyInOrder, grove.StartupPolicyRule{TargetCliques: []string{"router"}, WaitForCliquesStatus: grove.CliqueStatusSucceeded}),
			in:  startup(grove.StartupPolicyInOrder),
			check: func(pcs *grove.PodCliqueSet) (any, any) {
				return pcs.Spec.StartupPolicy.Rules, []grove.StartupPolicyRule{{TargetCliques: []string{"router"}, WaitForCliquesStatus: grove.CliqueStatusSucceeded}}
			},
		},
		"given rules of the startup policy are left to validation": {
			old: startup(grove.StartupPolicyInOrder),
			in:  startup(grove.StartupPolicyInOrder, grove.StartupPolicyRule{TargetCliques: []string{"worker"}, WaitForCliquesStatus: grove.CliqueStatusReady}),
			check: func(pcs *grove.PodCliqueSet) (any, any) {
				return pcs.Spec.StartupPolicy.Rules, []grove.StartupPolicyRule{{TargetCliques: []string{"worker"}, WaitForCliquesStatus: grove.CliqueStatusReady}}
			},
		},
		"rules of a startup policy that is new": {
			in: startup(grove.StartupPolicyInOrder),
			check: func(pcs *grove.PodCliqueSet) (any, any) {
				return pcs.Spec.StartupPolicy.Rules, []grove.StartupPolicyRule{{TargetCliques: []string{"router"}, WaitForCliquesStatus: grove.CliqueStatusReady}}
			},
		},
		"a startup policy that goes is left to validation": {
			old:   startup(grove.StartupPolicyInOrder),
			in:    all(),
			check: func(pcs *grove.PodCliqueSet) (any, any) { return pcs.Spec.StartupPolicy == nil, true },
		},
		"restartPolicy of an inference set": {
			in: all(),
			check: func(pcs *grove.PodCliqueSet) (any, any) {
				return pcs.Spec.Template.Cliques[0].Spec.PodSpec.RestartPolicy, corev1.RestartPolicyAlways
			},
		},
		"restartPolicy of a training set": {
			old: training,
			in:  training,
			check: func(pcs *grove.PodCliqueSet) (any, any) {
				return pcs.Spec.Template.Cliques[0].Spec.PodSpec.RestartPolicy, corev1.RestartPolicyNever
			},
		},
		"restartPolicy of a training set stays": {
			old: all(training, func(pcs *grove.PodCliqueSet) {
				pcs.Spec.Template.Cliques[0].Spec.PodSpec.RestartPolicy = corev1.RestartPolicyOnFailure
			}),
			in: training,
			check: func(pcs *grove.PodCliqueSet) (any, any) {
				return pcs.Spec.Template.Cliques[0].Spec.PodSpec.RestartPolicy, corev1.RestartPolicyOnFailure
			},
		},
		"restartPolicy of an inference set follows the manifest": {
			old: func(pcs *grove.PodCliqueSet) {
				pcs.Spec.Template.Cliques[0].Spec.PodSpec.RestartPolicy = corev1.RestartPolicyOnFailure
			},
			in: all(),
			check: func(pcs *grove.PodCliqueSet) (any, any) {
				return pcs.Spec.Template.Cliques[0].Spec.PodSpec.RestartPolicy, corev1.RestartPolicyAlways
			},
		},
		"a null terminationDelay switches the flag's delay off": {
			in:    all(),
			check: func(pcs *grove.PodCliqueSet) (any, any) { return pcs.Spec.Template.TerminationDelay == nil, true },
		},
		"a null terminationDelay switches a given delay off": {
			old:   func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.TerminationDelay = delay(time.Hour) },
			in:    all(),
			check: func(pcs *grove.PodCliqueSet) (any, any) { return pcs.Spec.Template.TerminationDelay == nil, true },
		},
		"a null terminationDelay is 0s in Training": {
			old: all(training, func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.TerminationDelay = delay(time.Hour) }),
			in:  training,
			check: func(pcs *grove.PodCliqueSet) (any, any) {
				return pcs.Spec.Template.TerminationDelay, delay(0)
			},
		},
		"minReplicas follows replicas": {
			in: func(pcs *grove.PodCliqueSet) {
				pcs.Spec.Template.Cliques[1].Spec.Replicas = 5
				pcs.Spec.Template.Cliques[1].Spec.AutoScalingConfig = &grove.AutoScalingConfig{MaxReplicas: 9}
			},
			check: func(pcs *grove.PodCliqueSet) (any, any) {
				return *pcs.Spec.Template.Cliques[1].Spec.AutoScalingConfig.MinReplicas, int32(5)
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			old, pcs := mkPodCliqueSet(), mkPodCliqueSet(tc.in)
			if tc.old != nil {
				tc.old(old)
			}
			flag.forCreate(old)
			before := old.DeepCopy()
			flag.forUpdate(pcs, old)
			got, want := tc.check(pcs)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, old); diff != "" {
				t.Errorf("the old set changed (-before +after):\n%s", diff)
			}
		})
	}
}

// A manifest that is applied again unchanged changes nothing, whatever was defaulted.
func TestApplyingAManifestAgainChangesNothing(t *testing.T) {
	for name, manifest := range map[string]func(*grove.PodCliqueSet){
		"inference": all(withGroup(ptr.To[int32](3), nil), startup(grove.StartupPolicyInOrder)),
		"training":  all(training, withGroup(ptr.To[int32](3), nil), startup(grove.StartupPolicyInOrder)),
	} {
		t.Run(name, func(t *testing.T) {
			old, pcs := mkPodCliqueSet(manifest), mkPodCliqueSet(manifest)
			Defaults{}.forCreate(old)
			Defaults{}.forUpdate(pcs, old)
			if diff := cmp.Diff(old, pcs); diff != "" {
				t.Errorf("(-before +after):\n%s", diff)
			}
		})
	}
}
