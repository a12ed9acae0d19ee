package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ownWritesWithin bounds how long a read waits for the client's own writes to come into
// the cache. They come within milliseconds, or seconds where much is written.
const ownWritesWithin = 5 * time.Second

// clientOptions let reads wait for the client's own writes, which saves writing twice
// (docs/decisions/0005).
func clientOptions() client.Options {
	return client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}}
}

// newClient makes the client of the controllers.
func newClient(config *rest.Config, options client.Options) (client.Client, error) {
	consistent, err := client.New(config, options)
	if err != nil {
		return nil, err
	}
	return &boundedClient{Client: consistent}, nil
}

// boundedClient reads what the cache has when the wait for the client's own writes takes
// too long. The client of controller-runtime v0.25 learns how far a cache is from the
// objects of its events alone. After a list it does not know it when the object that it
// wrote has gone meanwhile: it would wait until something else happens to an object of
// that kind, which may be never. The cache itself is up to date then. Where it is not, a
// pass does in vain what has been done: nothing that is wrong (D11). See
// docs/decisions/0014.
type boundedClient struct {
	client.Client
}

// Get reads an object.
func (c *boundedClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	bounded, cancel := context.WithTimeout(ctx, ownWritesWithin)
	defer cancel()
	err := c.Client.Get(bounded, key, obj, options...)
	if !isOutOfPatience(ctx, err) {
		return err
	}
	klog.InfoS("The cache does not show an own write", "kind", fmt.Sprintf("%T", obj), "object", key, "waited", ownWritesWithin)
	return c.Client.Get(ctx, key, obj, append(options, client.DisableReadYourWritesConsistency)...)
}

// List reads objects.
func (c *boundedClient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	bounded, cancel := context.WithTimeout(ctx, ownWritesWithin)
	defer cancel()
	err := c.Client.List(bounded, list, options...)
	if !isOutOfPatience(ctx, err) {
		return err
	}
	klog.InfoS("The cache does not show an own write", "kind", fmt.Sprintf("%T", list), "waited", ownWritesWithin)
	return c.Client.List(ctx, list, append(options, client.DisableReadYourWritesConsistency)...)
}

// isOutOfPatience says that a read ended because of our bound, and not with its caller.
func isOutOfPatience(ctx context.Context, err error) bool {
	return errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
}
