package gang

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

// Times in objects are whole seconds, rounded down: nothing may come too early by that.
func TestDeadline(t *testing.T) {
	tests := map[string]struct {
		recorded metav1.Time
		while    time.Duration
		want     time.Time
	}{
		"nothing to wait for":              {at(0), 0, now},
		"less than that":                   {at(0), -time.Minute, now},
		"a while":                          {at(0), time.Minute, now.Add(61 * time.Second)},
		"of less than a second":            {at(0), time.Millisecond, now.Add(1001 * time.Millisecond)},
		"what was not rounded yet will be": {at(900 * time.Millisecond), time.Minute, now.Add(61 * time.Second)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { expect(t, "deadline", tc.want, deadline(tc.recorded, tc.while)) })
	}
}

func TestRuntimeDeadline(t *testing.T) {
	expect(t, "after the start", now.Add(61*time.Second), RuntimeDeadline(pair(maxRuntime(time.Minute), started(0))))
	expect(t, "not before it has started", time.Time{}, RuntimeDeadline(pair(maxRuntime(time.Minute))))
	expect(t, "not without a limit", time.Time{}, RuntimeDeadline(pair(budget(1, 0), started(0))))
	expect(t, "not in Inference", time.Time{}, RuntimeDeadline(service(started(0))))
}

func TestTerminationDelay(t *testing.T) {
	off := (*time.Duration)(nil)
	grouped := func(options ...setOption) []setOption {
		return append([]setOption{template("router", 1, 1), template("worker", 2, 2), group("g", 2, 1, "worker")}, options...)
	}
	type delays struct{ Router, Worker, Group *time.Duration }
	all := func(d *time.Duration) delays { return delays{d, d, d} }
	tests := map[string]struct {
		set  *grovev1alpha1.PodCliqueSet
		want delays
	}{
		"in Inference none is off":               {inferenceSet(grouped()...), all(off)},
		"in Training there is always one":        {trainingSet(grouped()...), all(new(time.Duration))},
		"that of the template":                   {inferenceSet(grouped(delayed(time.Minute))...), all(ptr.To(time.Minute))},
		"also in Training":                       {trainingSet(grouped(delayed(time.Minute))...), all(ptr.To(time.Minute))},
		"a group's own is for its members":       {inferenceSet(grouped(delayed(time.Minute), groupDelay("g", time.Hour))...), delays{ptr.To(time.Minute), ptr.To(time.Hour), ptr.To(time.Hour)}},
		"also in Training, be it none":           {trainingSet(grouped(delayed(time.Minute), groupDelay("g", 0))...), delays{ptr.To(time.Minute), new(time.Duration), new(time.Duration)}},
		"where it is off, a group does not care": {inferenceSet(grouped(groupDelay("g", time.Hour))...), all(off)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			router := &grovev1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Name: "set-1-router", Labels: map[string]string{labels.ReplicaIndex: "1"}}}
			worker := &grovev1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Name: "set-1-g-0-worker", Labels: map[string]string{
				labels.ReplicaIndex: "1", labels.ScalingGroup: "set-1-g", labels.ScalingGroupReplicaIndex: "0",
			}}}
			scalingGroup := &grovev1alpha1.PodCliqueScalingGroup{Spec: grovev1alpha1.PodCliqueScalingGroupSpec{CliqueNames: []string{"worker"}}}
			expect(t, "delays", tc.want, delays{TerminationDelay(tc.set, router), TerminationDelay(tc.set, worker), GroupTerminationDelay(tc.set, scalingGroup)})
			expect(t, "of a group without cliques", off, GroupTerminationDelay(tc.set, &grovev1alpha1.PodCliqueScalingGroup{}))
		})
	}
}
