package podgroup

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	schedulerac "github.com/copse-dev/copse/pkg/generated/applyconfiguration/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/naming"
	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/desired"
)

// kaiPodGroup is KAI's PodGroup, the fields of which ours has as well.
func kaiPodGroup() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "scheduling.run.ai", Version: "v2alpha2", Kind: "PodGroup"}
}

// lookAgain is how long it counts that KAI's API is not served.
const lookAgain = 30 * time.Second

// kai knows whether the cluster has KAI.
type kai struct {
	client client.Client
	live   client.Reader
	mapper meta.RESTMapper
	clock  clock.PassiveClock
	// found is called once, when KAI's API is found.
	found func()

	mu     sync.Mutex
	served bool
	asked  time.Time
}

// isServed says whether KAI's API is served. Once it is, that stays so.
func (k *kai) isServed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.clock.Now()
	if k.served || (!k.asked.IsZero() && now.Sub(k.asked) < lookAgain) {
		return k.served
	}
	k.asked = now
	kind := kaiPodGroup()
	if _, err := k.mapper.RESTMapping(kind.GroupKind(), kind.Version); err != nil {
		return false
	}
	k.served = true
	k.found()
	return true
}

// again is when an answer that KAI is not there counts no more.
func (k *kai) again() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.asked.Add(lookAgain)
}

// kaiStore has the PodGroups of KAI's API.
type kaiStore struct {
	client client.Client
	live   client.Reader
}

func (s *kaiStore) get(ctx context.Context, key types.NamespacedName) (*schedulerv1alpha1.PodGroup, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kaiPodGroup())
	err := s.live.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read KAI's PodGroup %s: %w", key.Name, err)
	}
	return fromKAI(object)
}

func (s *kaiStore) apply(ctx context.Context, wanted *schedulerac.PodGroupApplyConfiguration) (*schedulerv1alpha1.PodGroup, error) {
	kind := kaiPodGroup()
	wanted.WithAPIVersion(kind.GroupVersion().String())
	text, err := json.Marshal(wanted)
	if err != nil {
		return nil, fmt.Errorf("write KAI's PodGroup as JSON: %w", err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(text); err != nil {
		return nil, fmt.Errorf("read KAI's PodGroup as JSON: %w", err)
	}
	if err := s.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(desired.FieldManager), client.ForceOwnership); err != nil {
		return nil, err
	}
	return s.get(ctx, client.ObjectKeyFromObject(object))
}

func fromKAI(object *unstructured.Unstructured) (*schedulerv1alpha1.PodGroup, error) {
	group := &schedulerv1alpha1.PodGroup{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, group); err != nil {
		return nil, fmt.Errorf("read KAI's PodGroup %s: %w", object.GetName(), err)
	}
	return group, nil
}

// copyGroup gives KAI a PodGroup that somebody made in our API, and returns what KAI says
// about it. One of that name that is not ours is left alone.
func (k *kai) copyGroup(ctx context.Context, s *state) ([]schedulerv1alpha1.SchedulingCondition, error) {
	theirs := &kaiStore{client: k.client, live: k.live}
	live, err := theirs.get(ctx, s.key)
	if err != nil {
		return nil, err
	}
	if live != nil && (live.DeletionTimestamp != nil || !metav1.IsControlledBy(live, s.group)) {
		return nil, nil
	}
	asked := s.group.Spec.DeepCopy()
	asked.Queue = cmp.Or(asked.Queue, s.group.Labels[podgrouper.QueueLabel])
	if asked.Queue == "" && live != nil {
		// Its administrator may have given it one.
		asked.Queue = live.Spec.Queue
	}
	asked.Queue = cmp.Or(asked.Queue, podgrouper.DefaultQueue)
	text, err := json.Marshal(asked)
	if err != nil {
		return nil, fmt.Errorf("copy PodGroup %s: %w", s.key.Name, err)
	}
	hash := naming.Hash(string(text))
	if live == nil || live.Annotations[appliedAnnotation] != hash {
		spec := schedulerac.PodGroupSpec()
		if err := json.Unmarshal(text, spec); err != nil {
			return nil, fmt.Errorf("copy PodGroup %s: %w", s.key.Name, err)
		}
		owner := metav1.NewControllerRef(s.group, schedulerv1alpha1.SchemeGroupVersion.WithKind("PodGroup"))
		wanted := schedulerac.PodGroup(s.key.Name, s.key.Namespace).WithLabels(s.group.Labels).WithSpec(spec).
			WithAnnotations(map[string]string{podgrouper.GroupedByAnnotation: podgrouper.GroupedByValue, appliedAnnotation: hash}).
			WithOwnerReferences(metav1ac.OwnerReference().WithAPIVersion(owner.APIVersion).WithKind(owner.Kind).WithName(owner.Name).WithUID(owner.UID).WithController(true))
		if live, err = theirs.apply(ctx, wanted); err != nil {
			return nil, fmt.Errorf("copy PodGroup %s: %w", s.key.Name, err)
		}
	}
	if live == nil {
		return nil, nil
	}
	return live.Status.SchedulingConditions, nil
}
