package chaos

import (
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// informer is the cache of one kind in one instance of the controllers: a copy of the
// server's objects that follows the server's log as the driver lets it.
type informer struct {
	kind    Kind
	server  *server
	objects map[types.NamespacedName]client.Object
	// cursor is how many changes of the log have been seen.
	cursor int
	// frozenUntil is the step of the driver at which changes are delivered again, and
	// relist says that they come as a new list then: what happened in between is not seen.
	frozenUntil int
	relist      bool
	// hideRemoval says that the next removal is not seen. Its object stays in the cache
	// as a ghost until the list at step ghostUntil.
	hideRemoval bool
	ghostUntil  int
	handlers    []eventHandler
	indexes     map[string]client.IndexerFunc
}

// eventHandler is what of cache.ResourceEventHandler the informers call.
type eventHandler interface {
	OnAdd(obj any, isInInitialList bool)
	OnUpdate(before, after any)
	OnDelete(obj any)
}

// list fills the cache as the server was lag changes ago.
func (i *informer) list(lag int) {
	log := i.server.log[i.kind]
	i.cursor = max(len(log)-lag, 0)
	if lag == 0 {
		i.objects = maps.Clone(i.server.objects[i.kind])
		return
	}
	i.objects = map[types.NamespacedName]client.Object{}
	for _, c := range log[:i.cursor] {
		if c.after == nil {
			delete(i.objects, client.ObjectKeyFromObject(c.before))
			continue
		}
		i.objects[client.ObjectKeyFromObject(c.after)] = c.after
	}
}

func (i *informer) behind() int {
	return len(i.server.log[i.kind]) - i.cursor
}

// deliver hands the next change to the handlers, or the whole difference after a relist.
func (i *informer) deliver(seen func(change)) {
	if i.relist {
		i.relist = false
		i.deliverList(seen)
		return
	}
	c := i.server.log[i.kind][i.cursor]
	i.cursor++
	if i.hideRemoval && c.after == nil {
		i.hideRemoval = false
		return
	}
	key := client.ObjectKeyFromObject(c.object())
	i.tell(c, key, false)
	seen(c)
}

func (i *informer) tell(c change, key types.NamespacedName, listed bool) {
	before, known := i.objects[key]
	if c.after == nil {
		delete(i.objects, key)
	} else {
		i.objects[key] = c.after
	}
	for _, handler := range i.handlers {
		switch {
		case c.after == nil && known && listed:
			handler.OnDelete(toolscache.DeletedFinalStateUnknown{Key: key.String(), Obj: c.before})
		case c.after == nil && known:
			handler.OnDelete(c.before)
		case c.after == nil:
		case known:
			handler.OnUpdate(before, c.after)
		default:
			handler.OnAdd(c.after, false)
		}
	}
}

// deliverList brings the cache up to date as a new list does: an object that was replaced
// by another of its name comes as an update, and of one that is gone the last state that
// was seen is told.
func (i *informer) deliverList(seen func(change)) {
	i.cursor = len(i.server.log[i.kind])
	current := i.server.objects[i.kind]
	names := maps.Clone(i.objects)
	maps.Copy(names, current)
	for _, key := range sortedKeys(names) {
		c := change{revision: i.server.revision, kind: i.kind, before: i.objects[key], after: current[key]}
		if c.before == c.after {
			continue
		}
		i.tell(c, key, true)
		seen(c)
	}
}

// reader reads from the caches of one instance.
type reader struct {
	informers map[Kind]*informer
}

func (r reader) get(k Kind, key types.NamespacedName) (client.Object, error) {
	obj, ok := r.informers[k].objects[key]
	if !ok {
		return nil, apierrors.NewNotFound(groupResource(k), key.Name)
	}
	return obj, nil
}

// list returns the objects that options select, by name.
func (r reader) list(k Kind, options *client.ListOptions) ([]client.Object, error) {
	i := r.informers[k]
	var out []client.Object
	for _, key := range sortedKeys(i.objects) {
		obj := i.objects[key]
		ok, err := selects(options, obj, i.indexes)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, obj)
		}
	}
	return out, nil
}

func selects(options *client.ListOptions, obj client.Object, indexes map[string]client.IndexerFunc) (bool, error) {
	if options.Namespace != "" && options.Namespace != obj.GetNamespace() {
		return false, nil
	}
	if options.LabelSelector != nil && !options.LabelSelector.Matches(labelSet(obj.GetLabels())) {
		return false, nil
	}
	if options.FieldSelector == nil {
		return true, nil
	}
	for _, requirement := range options.FieldSelector.Requirements() {
		index, ok := indexes[requirement.Field]
		if !ok {
			return false, fmt.Errorf("there is no index %s of %T", requirement.Field, obj)
		}
		if !slices.Contains(index(obj), requirement.Value) {
			return false, nil
		}
	}
	return true, nil
}

type labelSet map[string]string

func (l labelSet) Has(name string) bool              { _, ok := l[name]; return ok }
func (l labelSet) Get(name string) string            { return l[name] }
func (l labelSet) Lookup(name string) (string, bool) { value, ok := l[name]; return value, ok }
