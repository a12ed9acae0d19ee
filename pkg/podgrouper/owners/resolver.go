package owners

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Options of a Resolver.
type Options struct {
	// CacheSize is how many look-ups are kept.
	CacheSize int
	// CacheTTL is for how long a look-up is kept, and so how late a changed label or a
	// new permission may be seen.
	CacheTTL time.Duration
	// Clock that the time is taken from.
	Clock clock.PassiveClock
}

// Resolver finds the owners of pods.
type Resolver struct {
	reader client.Reader
	mapper meta.RESTMapper
	cache  *lookups
}

// New returns a Resolver. The reader has to read live: a cache would start a watch for
// each kind that is asked for, which ends a process that may not have it. The mapper says
// which kinds there are.
func New(reader client.Reader, mapper meta.RESTMapper, options Options) *Resolver {
	return &Resolver{reader: reader, mapper: mapper, cache: newLookups(options)}
}

// Forget drops what is kept of an owner, for one who learned that it has changed.
func (r *Resolver) Forget(kind schema.GroupKind, namespace, name string, uid types.UID) {
	r.cache.remove(key{kind: kind, namespace: namespace, name: name, uid: uid})
}

// Find returns the owners of a pod. The pod's namespace has to be set, which it is not in
// a request to create one. With an error come the owners that were found before it.
func (r *Resolver) Find(ctx context.Context, pod *corev1.Pod) (Chain, error) {
	var chain Chain
	var seen []types.UID
	if pod.UID != "" {
		seen = append(seen, pod.UID)
	}
	refs := pod.OwnerReferences
	for {
		ref, several := controllerOf(refs)
		if ref == nil {
			return chain, nil
		}
		if several {
			chain.note(ReasonSeveralOwners, ref, "none of several owners is the controller; the first one counts")
		}
		if slices.Contains(seen, ref.UID) {
			chain.note(ReasonCycle, ref, "is an owner of itself")
			return chain, nil
		}
		if len(chain.Owners) == MaxDepth {
			chain.note(ReasonTooDeep, ref, fmt.Sprintf("is above %d owners; those above do not count", MaxDepth))
			return chain, nil
		}
		seen = append(seen, ref.UID)
		found, err := r.look(ctx, ref, pod.Namespace)
		if IsMissing(err) && pod.DeletionTimestamp != nil {
			chain.note(ReasonGone, ref, "is gone, and the pod is terminating")
			return chain, nil
		}
		if err != nil {
			return chain, err
		}
		if found.object == nil {
			if found.node && len(chain.Owners) == 0 {
				chain.MirrorPod = true
				return chain, nil
			}
			chain.note(found.reason, ref, found.message)
			return chain, nil
		}
		chain.Owners = append(chain.Owners, found.object)
		refs = found.object.OwnerReferences
	}
}

func (c *Chain) note(reason Reason, ref *metav1.OwnerReference, message string) {
	c.Notes = append(c.Notes, Note{Reason: reason, Ref: *ref, Message: fmt.Sprintf("owner %s %s %s", ref.Kind, ref.Name, message)})
}

// controllerOf is the reference to climb: the controller's, else the only one, else the
// first of several. Others than controllers put themselves in front of it, so the position
// alone says nothing.
func controllerOf(refs []metav1.OwnerReference) (ref *metav1.OwnerReference, several bool) {
	var candidates []*metav1.OwnerReference
	for i := range refs {
		if isSchedulingObject(&refs[i]) {
			continue
		}
		if refs[i].Controller != nil && *refs[i].Controller {
			return &refs[i], false
		}
		candidates = append(candidates, &refs[i])
	}
	if len(candidates) == 0 {
		return nil, false
	}
	return candidates[0], len(candidates) > 1
}

// isSchedulingObject says whether a reference leads to what a scheduler groups pods by. It
// holds pods together for deletion, but it is no workload: to group by it would be to group
// by what a grouper made.
func isSchedulingObject(ref *metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return false
	}
	switch gv.Group {
	case "scheduling.k8s.io", "scheduler.grove.io", "scheduling.run.ai", "scheduling.volcano.sh", "scheduling.x-k8s.io", "kueue.x-k8s.io":
		return slices.Contains([]string{"PodGroup", "CompositePodGroup", "Workload"}, ref.Kind)
	}
	return false
}

// look finds one owner: an object, or why there is none to be had. An error is worth a
// retry. All else is kept, a kind that is not served as well: to find that out costs a
// discovery each time.
func (r *Resolver) look(ctx context.Context, ref *metav1.OwnerReference, namespace string) (lookup, error) {
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
	k := key{kind: kind, namespace: namespace, name: ref.Name, uid: ref.UID}
	if found, ok := r.cache.get(k); ok {
		return found, nil
	}
	removed := r.cache.removed.Load()
	found, err := r.find(ctx, kind, ref, namespace)
	if err == nil {
		r.cache.add(k, found, removed)
	}
	return found, err
}

func (r *Resolver) find(ctx context.Context, kind schema.GroupKind, ref *metav1.OwnerReference, namespace string) (lookup, error) {
	// By kind alone, in the version that the cluster prefers: the one in the reference may
	// not be served any more, and metadata is the same in all.
	mapping, err := r.mapper.RESTMapping(kind)
	switch {
	case isUnknownKind(err):
		return lookup{reason: ReasonUnknownKind, message: "is of a kind that the cluster does not serve"}, nil
	case err != nil:
		return lookup{}, fmt.Errorf("find out about kind %s: %w", kind, err)
	case kind == schema.GroupKind{Kind: "Node"}:
		return lookup{node: true, reason: ReasonClusterScoped, message: "is a node"}, nil
	case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
		return lookup{reason: ReasonClusterScoped, message: "is in no namespace; a group of pods is in one"}, nil
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(mapping.GroupVersionKind)
	err = r.reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name}, object)
	switch {
	case apierrors.IsForbidden(err):
		return lookup{reason: ReasonForbidden, message: "may not be read by the pod grouper; what is below it counts"}, nil
	case isUnknownKind(err):
		return lookup{reason: ReasonUnknownKind, message: "is of a kind that the cluster does not serve"}, nil
	case apierrors.IsNotFound(err):
		return lookup{}, &MissingError{Ref: *ref, Namespace: namespace}
	case err != nil:
		return lookup{}, fmt.Errorf("read owner %s %s/%s: %w", ref.Kind, namespace, ref.Name, err)
	case object.UID != ref.UID:
		return lookup{}, &MissingError{Ref: *ref, Namespace: namespace, Found: string(object.UID)}
	}
	object.SetGroupVersionKind(mapping.GroupVersionKind)
	object.ManagedFields = nil
	return lookup{object: object}, nil
}

// isUnknownKind says whether the cluster has no such kind. While an aggregated API server is
// down its kinds are not known either, but that passes.
func isUnknownKind(err error) bool {
	var incomplete *apiutil.ErrResourceDiscoveryFailed
	return meta.IsNoMatchError(err) && !errors.As(err, &incomplete)
}
