package chaos

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

var (
	errCrashed     = errors.New("this instance of the controllers has crashed")
	errUnsupported = errors.New("the servers of this test do not do this")
)

// apiClient is the client of one instance: it reads from the caches, after the
// instance's own writes, and its writes wait until the driver lets them happen.
type apiClient struct {
	*instance
}

var _ client.Client = apiClient{}

// Get reads from the cache.
func (c apiClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	k, err := kindOf(obj)
	if err != nil {
		return err
	}
	if err := c.consistency.read(c.began(ctx), k, func(other types.NamespacedName) bool { return other == key }); err != nil {
		return err
	}
	return c.cached().Get(ctx, key, obj)
}

// List reads from the cache.
func (c apiClient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	k, err := kindOf(list)
	if err != nil {
		return err
	}
	if err := c.consistency.read(c.began(ctx), k, func(types.NamespacedName) bool { return true }); err != nil {
		return err
	}
	return c.cached().List(ctx, list, options...)
}

// cachedReader reads from the caches as they are.
type cachedReader struct {
	reader
}

func (c cachedReader) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	k, err := kindOf(obj)
	if err != nil {
		return err
	}
	have, err := c.get(k, key)
	if err != nil {
		return err
	}
	fill(obj, copyOf(have))
	return nil
}

func (c cachedReader) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	k, err := kindOf(list)
	if err != nil {
		return err
	}
	o := (&client.ListOptions{}).ApplyOptions(options)
	objects, err := c.list(k, o)
	if err != nil {
		return err
	}
	return fillList(list, objects, ptr.Deref(o.UnsafeDisableDeepCopy, false))
}

// liveReader reads from the servers.
type liveReader struct {
	*instance
}

func (l liveReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	k, err := kindOf(obj)
	if err != nil {
		return err
	}
	l.began(ctx)
	if err := l.reachable(k); err != nil {
		return err
	}
	have, err := l.run.serverOf(k).get(k, key)
	if err != nil {
		return err
	}
	fill(obj, copyOf(have))
	return nil
}

func (l liveReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	k, err := kindOf(list)
	if err != nil {
		return err
	}
	l.began(ctx)
	if err := l.reachable(k); err != nil {
		return err
	}
	o := (&client.ListOptions{}).ApplyOptions(options)
	var out []client.Object
	for _, obj := range l.run.serverOf(k).all(k) {
		ok, err := selects(o, obj, nil)
		if err != nil {
			return err
		}
		if ok {
			out = append(out, obj)
		}
	}
	return fillList(list, out, false)
}

// fill makes obj what from is.
func fill(obj, from client.Object) {
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(from).Elem())
}

func fillList(list client.ObjectList, objects []client.Object, shared bool) error {
	items := make([]runtime.Object, 0, len(objects))
	for _, obj := range objects {
		if !shared {
			obj = copyOf(obj)
		}
		items = append(items, obj)
	}
	return meta.SetList(list, items)
}

// Create makes an object.
func (c apiClient) Create(ctx context.Context, obj client.Object, _ ...client.CreateOption) error {
	return c.write(ctx, "create", obj, "", func(s *server, k Kind) (client.Object, error) { return s.create(k, obj) })
}

// Update writes an object through its main endpoint.
func (c apiClient) Update(ctx context.Context, obj client.Object, _ ...client.UpdateOption) error {
	return c.write(ctx, "update", obj, "", func(s *server, k Kind) (client.Object, error) { return s.update(k, obj, false) })
}

// Patch writes what a patch says through the main endpoint.
func (c apiClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	if patch.Type() != types.MergePatchType && patch.Type() != types.StrategicMergePatchType {
		return fmt.Errorf("%s: %w", patch.Type(), errUnsupported)
	}
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	return c.write(ctx, "patch", obj, "", func(s *server, k Kind) (client.Object, error) {
		return s.patch(k, client.ObjectKeyFromObject(obj), patch.Type(), data)
	})
}

// Delete asks for the deletion of an object.
func (c apiClient) Delete(ctx context.Context, obj client.Object, options ...client.DeleteOption) error {
	o := (&client.DeleteOptions{}).ApplyOptions(options)
	uid := obj.GetUID()
	if o.Preconditions != nil && o.Preconditions.UID != nil {
		uid = *o.Preconditions.UID
	}
	return c.write(ctx, "delete", obj, uid, func(s *server, k Kind) (client.Object, error) {
		return s.delete(k, client.ObjectKeyFromObject(obj), o.Preconditions, o.GracePeriodSeconds)
	})
}

// write waits for the driver to do a write, and then remembers what reads have to wait
// for. deleted is the UID of the object that is being deleted, if any.
func (c apiClient) write(ctx context.Context, verb string, obj client.Object, deleted types.UID, do func(*server, Kind) (client.Object, error)) error {
	k, err := kindOf(obj)
	if err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(obj)
	begun := c.began(ctx)
	s := c.run.serverOf(k)
	w := &write{
		instance: c.instance, pass: begun, verb: verb, kind: k, key: key, object: obj,
		do: func() (client.Object, error) { return do(s, k) }, replied: make(chan struct{}),
	}
	var id int
	c.consistency.change(func() {
		id = c.consistency.next
		c.consistency.next++
		c.consistency.inFlight[k][id] = key
		if deleted != "" {
			c.consistency.deletes[k][deleted] = key
		}
	})
	c.run.submit(w)
	<-w.replied
	c.consistency.change(func() {
		delete(c.consistency.inFlight[k], id)
		exists := w.err == nil && w.result != nil && c.run.stillExists(k, w.result)
		if deleted != "" && (w.err != nil || exists) {
			delete(c.consistency.deletes[k], deleted)
		}
		if w.err == nil && (deleted == "" || exists) {
			if revision := revisionOf(w.result); revision > c.consistency.observed[k] {
				c.consistency.minimum[k][key] = max(revision, c.consistency.minimum[k][key])
			}
		}
	})
	if w.err == nil && deleted == "" {
		fill(obj, copyOf(w.result))
	}
	return w.err
}

// Status writes through the status endpoint.
func (c apiClient) Status() client.SubResourceWriter { return statusClient{c} }

type statusClient struct {
	apiClient
}

// Update writes the status of an object.
func (c statusClient) Update(ctx context.Context, obj client.Object, _ ...client.SubResourceUpdateOption) error {
	return c.write(ctx, "status", obj, "", func(s *server, k Kind) (client.Object, error) { return s.update(k, obj, true) })
}

func (statusClient) Create(context.Context, client.Object, client.Object, ...client.SubResourceCreateOption) error {
	return errUnsupported
}

func (statusClient) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return errUnsupported
}

func (statusClient) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return errUnsupported
}

// DeleteAllOf is not offered by the real client either.
func (apiClient) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	return errUnsupported
}

// Apply is not used by the controllers.
func (apiClient) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return errUnsupported
}

// SubResource knows status alone, which is reached by Status.
func (apiClient) SubResource(string) client.SubResourceClient { return nil }

// Scheme is the scheme of the kinds.
func (c apiClient) Scheme() *runtime.Scheme { return c.run.scheme }

// RESTMapper knows the kinds.
func (c apiClient) RESTMapper() meta.RESTMapper { return c.run.mapper }

// GroupVersionKindFor names the kind of an object.
func (c apiClient) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(obj, c.run.scheme)
}

// IsObjectNamespaced says that every kind is.
func (apiClient) IsObjectNamespaced(runtime.Object) (bool, error) { return true, nil }
