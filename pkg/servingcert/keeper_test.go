package servingcert

import (
	"context"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func secretKey() types.NamespacedName {
	return types.NamespacedName{Namespace: "system", Name: "certificate"}
}

// cluster is a cluster with the Secret and the configuration of the manifests; writes are
// counted.
type cluster struct {
	client.Client
	writes   int
	conflict bool
}

func newCluster(objects ...client.Object) *cluster {
	c := &cluster{}
	c.Client = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Update: func(ctx context.Context, inner client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			c.writes++
			if c.conflict {
				return apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, obj.GetName(), nil)
			}
			return inner.Update(ctx, obj, opts...)
		},
	}).Build()
	return c
}

func emptySecret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "certificate"}}
}

func (c *cluster) keeper(clock *testingclock.FakePassiveClock) *Keeper {
	return &Keeper{Client: c, Secret: secretKey(), Names: names(), Clock: clock, Holder: &Holder{}}
}

func keepOnce(t *testing.T, k *Keeper) time.Duration {
	t.Helper()
	result, err := k.Reconcile(t.Context(), reconcile.Request{NamespacedName: secretKey()})
	if err != nil {
		t.Fatal(err)
	}
	return result.RequeueAfter
}

func (c *cluster) state(t *testing.T) State {
	t.Helper()
	secret := &corev1.Secret{}
	if err := c.Get(t.Context(), secretKey(), secret); err != nil {
		t.Fatal(err)
	}
	return Decode(secret.Data)
}

func shown(t *testing.T, k *Keeper) []byte {
	t.Helper()
	cert, err := k.Holder.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return cert.Leaf.Raw
}

func TestReplicasShowTheSameCertificate(t *testing.T) {
	c := newCluster(emptySecret())
	clock := testingclock.NewFakePassiveClock(start())
	one, two := c.keeper(clock), c.keeper(clock)
	if one.Holder.Ready() == nil {
		t.Error("it is ready without a certificate")
	}
	wait := keepOnce(t, one)
	expect(t, "wait", 60*24*time.Hour, wait)
	expect(t, "wait of the second", wait, keepOnce(t, two))
	expect(t, "writes", 1, c.writes)
	expect(t, "certificate of the second", shown(t, one), shown(t, two))
	if err := one.Holder.Ready(); err != nil {
		t.Error(err)
	}

	first := shown(t, one)
	clock.SetTime(start().Add(wait - time.Second))
	keepOnce(t, one)
	expect(t, "writes before it is due", 1, c.writes)
	clock.SetTime(start().Add(wait))
	keepOnce(t, two)
	keepOnce(t, one)
	expect(t, "writes when it is due", 2, c.writes)
	if string(first) == string(shown(t, one)) || string(shown(t, one)) != string(shown(t, two)) {
		t.Error("the replicas do not show the next certificate")
	}
}

func TestAReplicaThatWasSlowerShowsNothingOfItsOwn(t *testing.T) {
	c := newCluster(emptySecret())
	k := c.keeper(testingclock.NewFakePassiveClock(start()))
	c.conflict = true
	expect(t, "wait", time.Duration(0), keepOnce(t, k))
	if k.Holder.Ready() == nil {
		t.Error("it shows what is not in the Secret")
	}
}

func TestWithoutTheSecretTheCertificateStays(t *testing.T) {
	c := newCluster(emptySecret())
	k := c.keeper(testingclock.NewFakePassiveClock(start()))
	keepOnce(t, k)
	if err := c.Delete(t.Context(), emptySecret()); err != nil {
		t.Fatal(err)
	}
	before := shown(t, k)
	expect(t, "wait", time.Duration(0), keepOnce(t, k))
	expect(t, "certificate", before, shown(t, k))
}

func TestOtherObjectsAreNoneOfItsBusiness(t *testing.T) {
	c := newCluster(emptySecret())
	k := c.keeper(testingclock.NewFakePassiveClock(start()))
	other := types.NamespacedName{Namespace: "system", Name: "other"}
	for _, r := range []reconcile.Reconciler{k, &Publisher{Client: c, Secret: secretKey(), Configuration: "webhook"}} {
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: other}); err != nil {
			t.Error(err)
		}
	}
	expect(t, "writes", 0, c.writes)
}

func TestTheClusterTrustsWhatIsInTheSecret(t *testing.T) {
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "webhook"}, Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: "a.example.com"}, {Name: "b.example.com"}},
	}
	c := newCluster(emptySecret(), configuration)
	p := &Publisher{Client: c, Secret: secretKey(), Configuration: "webhook"}
	key := types.NamespacedName{Name: "webhook"}
	publish := func() *admissionregistrationv1.MutatingWebhookConfiguration {
		t.Helper()
		if _, err := p.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
		live := &admissionregistrationv1.MutatingWebhookConfiguration{}
		if err := c.Get(t.Context(), key, live); err != nil {
			t.Fatal(err)
		}
		return live
	}
	expect(t, "bundle of nothing", []byte(nil), publish().Webhooks[0].ClientConfig.CABundle)

	keepOnce(t, c.keeper(testingclock.NewFakePassiveClock(start())))
	published := publish()
	expect(t, "webhooks", 2, len(published.Webhooks))
	for _, webhook := range published.Webhooks {
		expect(t, "bundle", c.state(t).Bundle(), webhook.ClientConfig.CABundle)
	}
	expect(t, "version when nothing has changed", published.ResourceVersion, publish().ResourceVersion)

	// Somebody takes it away.
	published.Webhooks[1].ClientConfig.CABundle = nil
	if err := c.Update(t.Context(), published); err != nil {
		t.Fatal(err)
	}
	expect(t, "bundle once more", c.state(t).Bundle(), publish().Webhooks[1].ClientConfig.CABundle)

	if err := c.Delete(t.Context(), published); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
		t.Errorf("without a configuration: %v", err)
	}
}
