package storageguard

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"
)

const (
	// recordTimeout bounds a read or write of the ConfigMap: requests to the server wait for it.
	recordTimeout = 2 * time.Second
	// listTimeout bounds the lists of a starting server, in a cluster with many pods.
	listTimeout = 2 * time.Minute
)

// cluster is the part of the guard that talks to kube-apiserver. It goes there directly,
// and for kinds that kube-apiserver serves itself: nothing of it comes back to this server.
type cluster struct {
	core      kubernetes.Interface
	metadata  metadata.Interface
	namespace string
}

func newCluster(config *rest.Config, namespace string) (*cluster, error) {
	config = rest.AddUserAgent(rest.CopyConfig(config), "storage-guard")
	// A handful of requests, some of which requests to this server wait for.
	config.QPS = -1
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &cluster{core: core, metadata: meta, namespace: namespace}, nil
}

// readRecord returns the ConfigMap, which is nil when there is none, and what it says.
func (c *cluster) readRecord(ctx context.Context) (*corev1.ConfigMap, Record, error) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	configMap, err := c.core.CoreV1().ConfigMaps(c.namespace).Get(ctx, ConfigMapName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, Record{}, nil
	}
	if err != nil {
		return nil, Record{}, fmt.Errorf("read ConfigMap %s/%s: %w", c.namespace, ConfigMapName, err)
	}
	return configMap, recordOf(configMap), nil
}

// writeRecord writes a record over the ConfigMap that was read. Whoever else wrote it
// since then makes it fail.
func (c *cluster) writeRecord(ctx context.Context, read *corev1.ConfigMap, record Record) (*corev1.ConfigMap, error) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	client := c.core.CoreV1().ConfigMaps(c.namespace)
	var written *corev1.ConfigMap
	var err error
	if read == nil {
		configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: ConfigMapName}}
		record.write(configMap)
		written, err = client.Create(ctx, configMap, metav1.CreateOptions{})
	} else {
		configMap := read.DeepCopy()
		record.write(configMap)
		written, err = client.Update(ctx, configMap, metav1.UpdateOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("write ConfigMap %s/%s: %w", c.namespace, ConfigMapName, err)
	}
	return written, nil
}

// dependents lists the pods that have owners of our groups, live.
func (c *cluster) dependents(ctx context.Context) ([]dependent, error) {
	var found []dependent
	err := c.each(ctx, corev1.SchemeGroupVersion.WithResource("pods"), func(object *metav1.PartialObjectMetadata) {
		if d, ok := dependentOf(&object.ObjectMeta); ok {
			found = append(found, d)
		}
	})
	return found, err
}

// definitions lists the CustomResourceDefinitions of our groups.
func (c *cluster) definitions(ctx context.Context) ([]string, error) {
	var names []string
	resource := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	err := c.each(ctx, resource, func(object *metav1.PartialObjectMetadata) {
		names = append(names, object.Name)
	})
	return definitionsOf(names), err
}

// each lists objects in pages, without anything but their metadata.
func (c *cluster) each(ctx context.Context, resource schema.GroupVersionResource, visit func(*metav1.PartialObjectMetadata)) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return c.metadata.Resource(resource).List(ctx, options)
	})
	err := pages.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		visit(object.(*metav1.PartialObjectMetadata))
		return nil
	})
	if err != nil {
		return fmt.Errorf("list %s: %w", resource.Resource, err)
	}
	return nil
}
