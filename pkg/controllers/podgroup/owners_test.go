package podgroup

import (
	"context"
	"slices"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

// reviews allow what they are told to, and count how often they are asked.
type reviews struct {
	authorizationclient.SelfSubjectAccessReviewInterface
	allowed map[string]bool
	asked   int
}

func (r *reviews) Create(_ context.Context, review *authorizationv1.SelfSubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SelfSubjectAccessReview, error) {
	r.asked++
	review.Status.Allowed = r.allowed[review.Spec.ResourceAttributes.Verb]
	return review, nil
}

func TestAKindIsWatchedOnceAndOnlyIfItMayBe(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gang"}
	owner := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Gang"}}
	for name, tc := range map[string]struct {
		allowed map[string]bool
		asked   int
		watched bool
	}{
		"allowed":      {map[string]bool{"list": true, "watch": true}, 2, true},
		"may not list": {map[string]bool{"watch": true}, 1, false},
		"nor watch":    {map[string]bool{"list": true}, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			watching, asking, clock := &informers{}, &reviews{allowed: tc.allowed}, clocktesting.NewFakeClock(start)
			w := newOwnerWatches(watching, newMapper(), asking, clock)
			for range 3 {
				w.follow(t.Context(), []*metav1.PartialObjectMetadata{owner})
			}
			if watched := len(watching.kinds) == 1; watched != tc.watched || asking.asked != tc.asked {
				t.Errorf("watched %v, asked %d times", watching.kinds, asking.asked)
			}
			// Who was refused asks again, for a role may have come.
			clock.Step(askAgain)
			asking.allowed = map[string]bool{"list": true, "watch": true}
			w.follow(t.Context(), []*metav1.PartialObjectMetadata{owner})
			if !slices.Equal(watching.kinds, []schema.GroupVersionKind{kind}) {
				t.Errorf("watched: %v", watching.kinds)
			}
			if tc.watched && asking.asked != tc.asked {
				t.Error("it asked again about what is watched")
			}
		})
	}
}

func TestGroupsAreFoundByTheirOwners(t *testing.T) {
	w := newOwnerWatches(nil, nil, nil, clocktesting.NewFakeClock(start))
	owner := func(uid types.UID) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: uid}}
	}
	w.remember(group(), []*metav1.PartialObjectMetadata{owner("a"), owner("b")})
	if len(w.of("a")) != 1 || len(w.of("b")) != 1 || len(w.all()) != 1 {
		t.Errorf("a has %v, b has %v, all are %v", w.of("a"), w.of("b"), w.all())
	}
	w.remember(group(), []*metav1.PartialObjectMetadata{owner("b")})
	if len(w.of("a")) != 0 || len(w.of("b")) != 1 {
		t.Errorf("a has %v, b has %v", w.of("a"), w.of("b"))
	}
	w.remember(group(), nil)
	if got := w.all(); len(got) != 1 {
		t.Errorf("a group without owners is not remembered: %v", got)
	}
	w.forget(group())
	if len(w.all()) != 0 || len(w.groups) != 0 {
		t.Errorf("kept: %v, %v", w.all(), w.groups)
	}
}

func TestWhatIsAChangeOfAnOwner(t *testing.T) {
	before := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "a", Generation: 1, ResourceVersion: "1", Labels: map[string]string{"a": "b"}}}
	for name, tc := range map[string]struct {
		change func(*metav1.PartialObjectMetadata)
		want   bool
	}{
		"its status alone":       {func(o *metav1.PartialObjectMetadata) { o.ResourceVersion = "2" }, false},
		"its spec":               {func(o *metav1.PartialObjectMetadata) { o.Generation = 2 }, true},
		"a label":                {func(o *metav1.PartialObjectMetadata) { o.Labels = nil }, true},
		"an annotation":          {func(o *metav1.PartialObjectMetadata) { o.Annotations = map[string]string{"a": "b"} }, true},
		"another by its name":    {func(o *metav1.PartialObjectMetadata) { o.UID = "b" }, true},
		"a kind without numbers": {func(o *metav1.PartialObjectMetadata) { o.Generation, o.ResourceVersion = 0, "2" }, true},
	} {
		after := before.DeepCopy()
		tc.change(after)
		if got := hasChanged(before, after); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if !hasChanged("a tombstone", before) {
		t.Error("what is unknown counts as a change")
	}
}

// An owner is read once for many passes, and anew when it has changed or some time is over.
func TestOwnerReader(t *testing.T) {
	w := newWorld(t, gang(int64(2)))
	read := func() int64 {
		t.Helper()
		owner := gang(nil)
		if err := w.reader.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "bert"}, owner); err != nil {
			t.Fatal(err)
		}
		count, _ := owner.Object["spec"].(map[string]any)["minAvailable"].(int64)
		return count
	}
	if got := read(); got != 2 {
		t.Fatalf("got %d", got)
	}
	w.setMinimum(int64(3))
	if got := read(); got != 2 {
		t.Errorf("got %d: it was read anew", got)
	}
	w.owners.remember(group(), []*metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{UID: "bert-uid"}}})
	changed := gang(int64(3))
	w.ownerChanged(schema.GroupKind{Group: "example.com", Kind: "Gang"}, changed)
	if got := read(); got != 3 || !w.queue.early.Has(group()) {
		t.Errorf("got %d, queue %v", got, w.queue.early)
	}
	w.setMinimum(int64(4))
	w.clock.Step(keptFor + time.Second)
	if got := read(); got != 4 {
		t.Errorf("got %d after some time", got)
	}
}
