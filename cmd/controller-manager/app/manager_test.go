package app

import (
	"context"
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
)

// fakeDiscovery serves some group versions, each with its resources.
type fakeDiscovery struct {
	discovery.DiscoveryInterface
	served map[string][]string
	// asked are the group versions that were asked for.
	asked []string
	// onAsk is called before each answer.
	onAsk func()
	// groupsErr is what ServerGroups fails with.
	groupsErr error
}

func (f *fakeDiscovery) ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error) {
	f.asked = append(f.asked, groupVersion)
	if f.onAsk != nil {
		f.onAsk()
	}
	resources, ok := f.served[groupVersion]
	if !ok {
		return nil, errors.New("the server could not find the requested resource")
	}
	list := &metav1.APIResourceList{GroupVersion: groupVersion}
	for _, name := range resources {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
	}
	return list, nil
}

func (f *fakeDiscovery) ServerGroups() (*metav1.APIGroupList, error) {
	if f.onAsk != nil {
		f.onAsk()
	}
	if f.groupsErr != nil {
		return nil, f.groupsErr
	}
	groups := &metav1.APIGroupList{}
	for groupVersion := range f.served {
		groups.Groups = append(groups.Groups, metav1.APIGroup{Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: groupVersion}}})
	}
	return groups, nil
}

func TestBothAPIsAreAwaited(t *testing.T) {
	const grove, scheduler = "grove.io/v1alpha1", "scheduler.grove.io/v1alpha1"
	tests := map[string]struct {
		served  map[string][]string
		wantErr bool
		asked   []string
	}{
		"both are there":           {map[string][]string{grove: nil, scheduler: nil}, false, []string{grove, scheduler}},
		"the first is not served":  {map[string][]string{scheduler: nil}, true, []string{grove}},
		"the second is not served": {map[string][]string{grove: nil}, true, []string{grove, scheduler}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			client := &fakeDiscovery{served: tc.served}
			client.onAsk = func() {
				// What is not there now will not come: end the wait.
				if _, ok := tc.served[client.asked[len(client.asked)-1]]; !ok {
					cancel()
				}
			}
			err := waitForAPIs(ctx, client)
			expect(t, "failed", tc.wantErr, err != nil)
			expect(t, "asked for", tc.asked, client.asked)
		})
	}
}

func TestNativeGangsAreThoseOfTheScheduler(t *testing.T) {
	tests := map[string]struct {
		client *fakeDiscovery
		want   bool
	}{
		"they are served":         {&fakeDiscovery{served: map[string][]string{"scheduling.k8s.io/v1beta1": {"workloads", "podgroups"}}}, true},
		"another version alone":   {&fakeDiscovery{served: map[string][]string{"scheduling.k8s.io/v1alpha1": {"podgroups"}, "scheduling.k8s.io/v1": {"priorityclasses"}}}, false},
		"the version without":     {&fakeDiscovery{served: map[string][]string{"scheduling.k8s.io/v1beta1": {"workloads"}}}, false},
		"nothing of it is served": {&fakeDiscovery{served: map[string][]string{"apps/v1": {"deployments"}}}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			gangs := &nativeGangs{client: tc.client}
			expect(t, "native gangs", tc.want, gangs.served(ctx))
			// Another answer later would be another than the first who has asked knows.
			gangs.client = &fakeDiscovery{groupsErr: errors.New("it was asked twice"), onAsk: cancel}
			expect(t, "native gangs, when asked again", tc.want, gangs.served(ctx))
			expect(t, "the wait was cut short", false, ctx.Err() != nil)
		})
	}
	t.Run("a server that does not answer is asked again", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		client := &fakeDiscovery{groupsErr: errors.New("no answer")}
		client.onAsk = cancel
		gangs := &nativeGangs{client: client}
		expect(t, "native gangs", false, gangs.served(ctx))
		expect(t, "the end of the context ended the wait", true, ctx.Err() != nil)
		expect(t, "that is an answer", false, gangs.asked)
	})
}

func TestKAISchedulersAreThoseOfAClusterWithKAI(t *testing.T) {
	const kai = "scheduling.run.ai/v2alpha2"
	names := []string{"kai-scheduler", "kai"}
	tests := map[string]struct {
		client *fakeDiscovery
		names  []string
		want   []string
	}{
		"it is installed":         {&fakeDiscovery{served: map[string][]string{kai: {"podgroups", "bindrequests"}}}, names, names},
		"an older version alone":  {&fakeDiscovery{served: map[string][]string{"scheduling.run.ai/v2": {"queues", "podgroups"}}}, names, nil},
		"the version without":     {&fakeDiscovery{served: map[string][]string{kai: {"queues"}}}, names, nil},
		"only Kubernetes' groups": {&fakeDiscovery{served: map[string][]string{"scheduling.k8s.io/v1beta1": {"podgroups"}}}, names, nil},
		"no scheduler is KAI":     {&fakeDiscovery{groupsErr: errors.New("is not asked")}, nil, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			expect(t, "KAI schedulers", tc.want, servedKAISchedulers(ctx, tc.client, tc.names))
			expect(t, "the wait was cut short", false, ctx.Err() != nil)
		})
	}
}

func TestResourceClaimsAreLookedFor(t *testing.T) {
	tests := map[string]struct {
		served map[string][]string
		want   bool
	}{
		"served":                {map[string][]string{"resource.k8s.io/v1": {"deviceclasses", "resourceclaims"}}, true},
		"not served":            {map[string][]string{"apps/v1": {"deployments"}}, false},
		"an older version":      {map[string][]string{"resource.k8s.io/v1beta1": {"resourceclaims"}}, false},
		"the group without any": {map[string][]string{"resource.k8s.io/v1": {"deviceclasses"}}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			expect(t, "served", tc.want, servesResourceClaims(ctx, &fakeDiscovery{served: tc.served}))
			expect(t, "the wait was cut short", false, ctx.Err() != nil)
		})
	}
}

func TestTheSchemeKnowsWhatTheControllersReadAndWrite(t *testing.T) {
	scheme := newScheme()
	for _, gvk := range []schema.GroupVersionKind{
		grovev1alpha1.SchemeGroupVersion.WithKind("PodCliqueSet"),
		schedulerv1alpha1.SchemeGroupVersion.WithKind("PodGang"),
		corev1.SchemeGroupVersion.WithKind("Pod"),
		schedulingv1beta1.SchemeGroupVersion.WithKind("PodGroup"),
		{Group: "scheduling.run.ai", Version: "v2alpha2", Kind: "PodGroup"},
		resourcev1.SchemeGroupVersion.WithKind("ResourceClaim"),
		coordinationv1.SchemeGroupVersion.WithKind("Lease"),
	} {
		if !scheme.Recognizes(gvk) {
			t.Errorf("%v is not known", gvk)
		}
	}
}

func TestManagerOptions(t *testing.T) {
	options := NewOptions()
	options.LeaderElectionNamespace = "n"
	got := managerOptions(options, true)
	expect(t, "leader election", true, got.LeaderElection)
	expect(t, "namespace of the lease", "n", got.LeaderElectionNamespace)
	expect(t, "lease", []*time.Duration{ptr.To(15 * time.Second), ptr.To(10 * time.Second), ptr.To(2 * time.Second)},
		[]*time.Duration{got.LeaseDuration, got.RenewDeadline, got.RetryPeriod})
	// A pass reads what the pass before wrote (D4); without it a decision is taken twice.
	expect(t, "own writes are read back", ptr.To(true), got.Client.Cache.EnableReadYourWritesConsistency)
	expect(t, "metrics are read by those who may", true, got.Metrics.SecureServing && got.Metrics.FilterProvider != nil)
	if got.Controller.CacheSyncTimeout < 24*time.Hour {
		t.Errorf("a controller whose API is down gives up after %v", got.Controller.CacheSyncTimeout)
	}
}
