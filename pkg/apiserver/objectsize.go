package apiserver

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
)

// sizedStorage is options of storages that answer an object that etcd does not take with
// 413 and what to do about it. The generic server makes a 500 of it, which clients try
// again. Validation bounds what people write into a spec; labels, owners, finalizers and
// statuses grow without a limit of their own.
type sizedStorage struct {
	generic.RESTOptionsGetter
}

// GetRESTOptions returns the options of a resource.
func (s sizedStorage) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := s.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil {
		return options, err
	}
	decorate := options.Decorator
	options.Decorator = func(
		config *storagebackend.ConfigForResource, prefix string, key func(runtime.Object) (string, error),
		newObject, newList func() runtime.Object, attrs storage.AttrFunc, trigger storage.IndexerFuncs, indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		store, destroy, err := decorate(config, prefix, key, newObject, newList, attrs, trigger, indexers)
		return sizedStore{store}, destroy, err
	}
	return options, nil
}

type sizedStore struct {
	storage.Interface
}

// Create stores a new object.
func (s sizedStore) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	return tellSize(s.Interface.Create(ctx, key, obj, out, ttl))
}

// GuaranteedUpdate changes an object.
func (s sizedStore) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool, preconditions *storage.Preconditions, update storage.UpdateFunc, cached runtime.Object) error {
	return tellSize(s.Interface.GuaranteedUpdate(ctx, key, out, ignoreNotFound, preconditions, update, cached))
}

func tellSize(err error) error {
	refusal := status.Convert(err)
	switch {
	case errors.Is(err, rpctypes.ErrRequestTooLarge):
		return &tooLargeError{cause: err, code: codes.InvalidArgument}
	case refusal.Code() == codes.ResourceExhausted && strings.Contains(refusal.Message(), "larger than max"):
		return &tooLargeError{cause: err, code: codes.ResourceExhausted}
	default:
		return err
	}
}

// tooLargeError is still recognized as etcd's, or its client's: the generic server then
// tries again without managedFields, which may be what was too much.
type tooLargeError struct {
	cause error
	code  codes.Code
}

var _ apierrors.APIStatus = &tooLargeError{}

func (e *tooLargeError) Error() string { return e.cause.Error() }

func (e *tooLargeError) Unwrap() error { return e.cause }

// Code is that of the answer of etcd.
func (e *tooLargeError) Code() codes.Code { return e.code }

// GRPCStatus is that of the refusal of etcd's client.
func (e *tooLargeError) GRPCStatus() *status.Status {
	return status.New(e.code, status.Convert(e.cause).Message())
}

// Status is what the caller is told.
func (e *tooLargeError) Status() metav1.Status {
	return metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusRequestEntityTooLarge, Reason: metav1.StatusReasonRequestEntityTooLarge,
		Message: "the object has more bytes than etcd takes, 1.5 MiB by default: keep less in its metadata, and files and scripts in ConfigMaps",
	}
}
