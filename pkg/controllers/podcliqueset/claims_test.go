package podcliqueset

import (
	"context"
	"errors"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/internal/pace"
)

func sharing(pcs *grovev1alpha1.PodCliqueSet) {
	pcs.Spec.Template.ResourceSharing = []grovev1alpha1.PCSResourceSharingSpec{{
		ResourceSharingSpec: grovev1alpha1.ResourceSharingSpec{Name: "gpu", Namespace: "shared", Scope: grovev1alpha1.ResourceSharingScopeAllReplicas},
	}}
}

func TestASetTellsOfClaimsThatAreMissing(t *testing.T) {
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "shared", Name: "gpu"}}
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: request.Namespace, Name: request.Name + "-all-gpu", OwnerReferences: []metav1.OwnerReference{{UID: newSet(sharing).UID}}}}
	for name, tc := range map[string]struct {
		unserved bool
		objects  []client.Object
		err      error
		want     string
		wantErr  string
	}{
		"the template is there":        {objects: []client.Object{template}},
		"it is not":                    {want: grovev1alpha1.ReasonResourceClaimTemplateNotFound},
		"it has gone since":            {objects: []client.Object{claim}},
		"it cannot be read":            {err: errors.New("boom"), wantErr: "read ResourceClaimTemplate shared/gpu: boom"},
		"the cluster serves no claims": {unserved: true, err: errors.New("unknown"), want: grovev1alpha1.ReasonResourceClaimsNotServed},
	} {
		t.Run(name, func(t *testing.T) {
			cache := build(t, append([]client.Object{newSet(sharing)}, tc.objects...))
			c := interceptor.NewClient(cache, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if key.Name == "gpu" && tc.err != nil {
					return tc.err
				}
				return c.Get(ctx, key, obj, opts...)
			}})
			reconciler := &Reconciler{Client: c, Live: cache, Recorder: events.NewFakeRecorder(10), Clock: clocktesting.NewFakeClock(now), Pace: pace.New(), Metrics: newMetrics(t), ResourceClaims: !tc.unserved}
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
			if c := meta.FindStatusCondition(pcs.Status.Conditions, grovev1alpha1.ConditionTypeResourceClaimsMissing); c != nil {
				got = c.Reason
			}
			expect(t, "reason", tc.want, got)
		})
	}
}

func TestTheSetsOfATemplate(t *testing.T) {
	cache := build(t, []client.Object{newSet(sharing), newSet(func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Name = "free" })})
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "shared", Name: "gpu"}}
	expect(t, "sets", []reconcile.Request{request}, (&Reconciler{Cache: cache}).setsOfTemplate(t.Context(), template))
}
