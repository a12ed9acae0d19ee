package chaos

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// change is one revision of a server. Objects in it are shared and never written to.
type change struct {
	revision int64
	kind     Kind
	// before is nil for a creation, after for a removal. The before of a removal carries
	// the revision of the removal, as the event of a watch does.
	before, after client.Object
}

// object is what the change is about.
func (c change) object() client.Object {
	if c.after != nil {
		return c.after
	}
	return c.before
}

// server is an API server in memory.
type server struct {
	name     string
	revision int64
	rules    map[Kind]rules
	objects  map[Kind]map[types.NamespacedName]client.Object
	log      map[Kind][]change
	uids     int
	// changed is told of each revision.
	changed func(change)
}

func newServer(name string, revision int64, rulesOf map[Kind]rules) *server {
	s := &server{name: name, revision: revision, rules: rulesOf, objects: map[Kind]map[types.NamespacedName]client.Object{}, log: map[Kind][]change{}, changed: func(change) {}}
	for k := range rulesOf {
		s.objects[k] = map[types.NamespacedName]client.Object{}
	}
	return s
}

func sortedKeys[V any](objects map[types.NamespacedName]V) []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(objects), func(a, b types.NamespacedName) int { return cmp.Compare(a.Name, b.Name) })
}

// all are the objects of a kind, by name.
func (s *server) all(k Kind) []client.Object {
	out := make([]client.Object, 0, len(s.objects[k]))
	for _, key := range sortedKeys(s.objects[k]) {
		out = append(out, s.objects[k][key])
	}
	return out
}

func (s *server) get(k Kind, key types.NamespacedName) (client.Object, error) {
	obj, ok := s.objects[k][key]
	if !ok {
		return nil, apierrors.NewNotFound(groupResource(k), key.Name)
	}
	return obj, nil
}

// commit makes a change the next revision.
func (s *server) commit(k Kind, before, after client.Object) client.Object {
	s.revision++
	c := change{revision: s.revision, kind: k, before: before, after: after}
	if after == nil {
		c.before = copyOf(before)
		c.before.SetResourceVersion(strconv.FormatInt(s.revision, 10))
		delete(s.objects[k], client.ObjectKeyFromObject(before))
	} else {
		after.SetResourceVersion(strconv.FormatInt(s.revision, 10))
		s.objects[k][client.ObjectKeyFromObject(after)] = after
	}
	s.log[k] = append(s.log[k], c)
	s.changed(c)
	return c.object()
}

func copyOf(obj client.Object) client.Object {
	return obj.DeepCopyObject().(client.Object)
}

func (s *server) create(k Kind, obj client.Object) (client.Object, error) {
	obj = copyOf(obj)
	if _, exists := s.objects[k][client.ObjectKeyFromObject(obj)]; exists {
		return nil, apierrors.NewAlreadyExists(groupResource(k), obj.GetName())
	}
	s.uids++
	obj.SetUID(types.UID(fmt.Sprintf("%s-%04d", s.name, s.uids)))
	obj.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
	obj.SetGeneration(1)
	obj, err := s.rules[k].create(obj)
	if err != nil {
		return nil, err
	}
	return s.commit(k, nil, obj), nil
}

// update writes an object, or only its status, under the rules of the kind.
func (s *server) update(k Kind, obj client.Object, status bool) (client.Object, error) {
	key := client.ObjectKeyFromObject(obj)
	before, err := s.get(k, key)
	if err != nil {
		return nil, err
	}
	if obj.GetUID() != "" && obj.GetUID() != before.GetUID() {
		return nil, apierrors.NewConflict(groupResource(k), key.Name, fmt.Errorf("the UID in the precondition (%s) is not that of the object (%s)", obj.GetUID(), before.GetUID()))
	}
	if obj.GetResourceVersion() != before.GetResourceVersion() {
		return nil, apierrors.NewConflict(groupResource(k), key.Name, fmt.Errorf("the object has been modified: it is at %s, not at %s", before.GetResourceVersion(), obj.GetResourceVersion()))
	}
	obj = copyOf(obj)
	obj.SetUID(before.GetUID())
	obj.SetCreationTimestamp(before.GetCreationTimestamp())
	obj.SetDeletionTimestamp(before.GetDeletionTimestamp())
	obj.SetDeletionGracePeriodSeconds(before.GetDeletionGracePeriodSeconds())
	obj.SetGeneration(before.GetGeneration())
	change := s.rules[k].update
	if status {
		change = s.rules[k].updateStatus
	}
	obj, err = change(obj, before)
	if err != nil {
		return nil, err
	}
	return s.store(k, before, obj), nil
}

// store commits what differs, and removes what has no finalizer left.
func (s *server) store(k Kind, before, after client.Object) client.Object {
	if after.GetDeletionTimestamp() != nil && len(after.GetFinalizers()) == 0 && ptr.Deref(after.GetDeletionGracePeriodSeconds(), 0) == 0 {
		return s.commit(k, after, nil)
	}
	if apiequality.Semantic.DeepEqual(before, after) {
		return before
	}
	return s.commit(k, before, after)
}

// patch applies a JSON merge patch through the main endpoint.
func (s *server) patch(k Kind, key types.NamespacedName, how types.PatchType, data []byte) (client.Object, error) {
	before, err := s.get(k, key)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(before)
	if err != nil {
		return nil, err
	}
	obj := newObject(k)
	if raw, err = patched(raw, data, how, obj); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, obj); err != nil {
		return nil, err
	}
	if obj.GetUID() != before.GetUID() {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: string(k)}, key.Name, errors.New("the UID in the patch is another"))
	}
	return s.update(k, obj, false)
}

func patched(document, changes []byte, how types.PatchType, obj client.Object) ([]byte, error) {
	if how == types.StrategicMergePatchType {
		return strategicpatch.StrategicMergePatch(document, changes, obj)
	}
	var before, change map[string]any
	if err := json.Unmarshal(document, &before); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(changes, &change); err != nil {
		return nil, err
	}
	return json.Marshal(merge(before, change))
}

// merge is RFC 7386.
func merge(document, changes map[string]any) map[string]any {
	if document == nil {
		document = map[string]any{}
	}
	for name, value := range changes {
		switch value := value.(type) {
		case nil:
			delete(document, name)
		case map[string]any:
			below, _ := document[name].(map[string]any)
			document[name] = merge(below, value)
		default:
			document[name] = value
		}
	}
	return document
}

// delete removes an object, or marks it as being deleted while finalizers or the
// kubelet hold on to it.
func (s *server) delete(k Kind, key types.NamespacedName, preconditions *metav1.Preconditions, grace *int64) (client.Object, error) {
	before, err := s.get(k, key)
	if err != nil {
		return nil, err
	}
	if p := preconditions; p != nil {
		if p.UID != nil && *p.UID != before.GetUID() {
			return nil, apierrors.NewConflict(groupResource(k), key.Name, fmt.Errorf("the UID in the precondition (%s) is not that of the object (%s)", *p.UID, before.GetUID()))
		}
		if p.ResourceVersion != nil && *p.ResourceVersion != before.GetResourceVersion() {
			return nil, apierrors.NewConflict(groupResource(k), key.Name, fmt.Errorf("the object is at %s, not at %s", before.GetResourceVersion(), *p.ResourceVersion))
		}
	}
	seconds := s.rules[k].gracePeriod(before)
	if grace != nil {
		seconds = min(seconds, *grace)
	}
	if seconds == 0 && len(before.GetFinalizers()) == 0 {
		return s.remove(k, before), nil
	}
	if before.GetDeletionTimestamp() != nil && seconds >= ptr.Deref(before.GetDeletionGracePeriodSeconds(), 0) {
		return before, nil
	}
	after := copyOf(before)
	after.SetDeletionTimestamp(ptr.To(metav1.NewTime(time.Now().Add(time.Duration(seconds) * time.Second).Truncate(time.Second))))
	after.SetDeletionGracePeriodSeconds(&seconds)
	return s.commit(k, before, after), nil
}

// remove takes an object away. Of one that had a grace period it says first that the period
// is over, and moves the deletionTimestamp to now: who looks at that learns no more when
// the first request was.
func (s *server) remove(k Kind, before client.Object) client.Object {
	if before.GetDeletionTimestamp() != nil && ptr.Deref(before.GetDeletionGracePeriodSeconds(), 0) > 0 {
		after := copyOf(before)
		after.SetDeletionTimestamp(ptr.To(metav1.NewTime(time.Now().Truncate(time.Second))))
		after.SetDeletionGracePeriodSeconds(ptr.To[int64](0))
		s.commit(k, before, after)
		before = after
	}
	return s.commit(k, before, nil)
}

// mutate changes an object past the rules, as the cluster's own components do.
func (s *server) mutate(k Kind, key types.NamespacedName, change func(client.Object)) {
	before, ok := s.objects[k][key]
	if !ok {
		return
	}
	after := copyOf(before)
	change(after)
	s.store(k, before, after)
}

// at is how an object looked when the server was at a revision; nil when there was none.
func (s *server) at(k Kind, key types.NamespacedName, revision int64) client.Object {
	var out client.Object
	for _, c := range s.log[k] {
		if c.revision > revision {
			break
		}
		if client.ObjectKeyFromObject(c.object()) == key {
			out = c.after
		}
	}
	return out
}
