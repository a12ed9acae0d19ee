package podcliqueset

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/internal/pace"
	"github.com/copse-dev/copse/pkg/controllers/internal/topology"
	"github.com/copse-dev/copse/pkg/scheduling"
	"github.com/copse-dev/copse/pkg/scheduling/kai"
)

func packed(pcs *grovev1alpha1.PodCliqueSet) {
	pcs.Spec.Template.TopologyConstraint = &grovev1alpha1.TopologyConstraint{TopologyName: "gpu", Pack: &grovev1alpha1.TopologyPackConstraint{Required: "rack"}}
}

func TestASetTellsWhetherItsTopologyIsThere(t *testing.T) {
	binding := &grovev1alpha1.ClusterTopologyBinding{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
	binding.Spec.Levels = []grovev1alpha1.TopologyLevel{{Domain: "rack", Key: "rack"}}
	source := topology.Source{Backends: &scheduling.Backends{Others: kai.New(nil, true)}}
	off := source
	off.Off = true
	for name, tc := range map[string]struct {
		source  topology.Source
		binding *grovev1alpha1.ClusterTopologyBinding
		err     error
		want    string
		wantErr string
	}{
		"it is":              {source: source, binding: binding, want: grovev1alpha1.ReasonAllTopologyLevelsAvailable},
		"it is not":          {source: source, want: grovev1alpha1.ReasonClusterTopologyNotFound},
		"it is switched off": {source: off, binding: binding, want: grovev1alpha1.ReasonTopologyDisabled},
		"it cannot be read":  {source: source, err: errors.New("boom"), wantErr: "read ClusterTopologyBinding gpu: boom"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{newSet(packed)}
			if tc.binding != nil {
				objects = append(objects, tc.binding)
			}
			cache := build(t, objects)
			c := interceptor.NewClient(cache, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if key.Name == "gpu" && tc.err != nil {
					return tc.err
				}
				return c.Get(ctx, key, obj, opts...)
			}})
			reconciler := &Reconciler{Client: c, Live: cache, Recorder: events.NewFakeRecorder(10), Clock: clocktesting.NewFakeClock(now), Pace: pace.New(), Metrics: newMetrics(t), Topology: tc.source}
			_, err := reconciler.Reconcile(t.Context(), request)
			gotErr := ""
			if err != nil {
				gotErr = err.Error()
			}
			expect(t, "error", tc.wantErr, gotErr)
			pcs := &grovev1alpha1.PodCliqueSet{}
			if err := cache.Get(t.Context(), request.NamespacedName, pcs); err != nil {
				t.Fatal(err)
			}
			got := ""
			if c := meta.FindStatusCondition(pcs.Status.Conditions, grovev1alpha1.ConditionTypeTopologyLevelsUnavailable); c != nil {
				got = c.Reason
			}
			expect(t, "reason", tc.want, got)
		})
	}
}

func TestTheSetsOfATopology(t *testing.T) {
	cache := build(t, []client.Object{newSet(packed), newSet(func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Name = "free" })})
	got := setsOfBinding(cache)(t.Context(), &grovev1alpha1.ClusterTopologyBinding{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}})
	expect(t, "sets", []reconcile.Request{request}, got)
}
