package app

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// waitingClient has one pod, and reads that wait for something that never happens, unless
// they are told not to wait.
func waitingClient() *boundedClient {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod"}}
	inner := fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(pod).Build()
	wait := func(ctx context.Context, disabled bool) error {
		if disabled {
			return nil
		}
		<-ctx.Done()
		return fmt.Errorf("failed waiting to observe resource version 7: %w", ctx.Err())
	}
	return &boundedClient{Client: interceptor.NewClient(inner, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
			if err := wait(ctx, (&client.GetOptions{}).ApplyOptions(options).DisableReadYourWritesConsistency); err != nil {
				return err
			}
			return c.Get(ctx, key, obj, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if err := wait(ctx, (&client.ListOptions{}).ApplyOptions(options).DisableReadYourWritesConsistency); err != nil {
				return err
			}
			return c.List(ctx, list, options...)
		},
	})}
}

func TestAReadDoesNotWaitForeverForAnOwnWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, began := waitingClient(), time.Now()
		pod := &corev1.Pod{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "pod"}, pod); err != nil || pod.Name != "pod" {
			t.Errorf("Get: pod %q, %v", pod.Name, err)
		}
		expect(t, "wait of Get", ownWritesWithin, time.Since(began))
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "other"}, pod); !apierrors.IsNotFound(err) {
			t.Errorf("Get of what is not there: %v", err)
		}
		began = time.Now()
		pods := &corev1.PodList{}
		if err := c.List(t.Context(), pods, client.InNamespace("ns")); err != nil || len(pods.Items) != 1 {
			t.Errorf("List: %d pods, %v", len(pods.Items), err)
		}
		expect(t, "wait of List", ownWritesWithin, time.Since(began))
		if err := c.List(t.Context(), pods, client.InNamespace("elsewhere")); err != nil || len(pods.Items) != 0 {
			t.Errorf("List forgot its options: %d pods, %v", len(pods.Items), err)
		}
	})
}

// A caller that is out of time gets no answer that nobody waits for.
func TestAReadEndsWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := waitingClient()
		ctx, cancel := context.WithTimeout(t.Context(), ownWritesWithin/2)
		defer cancel()
		if err := c.Get(ctx, client.ObjectKey{Namespace: "ns", Name: "pod"}, &corev1.Pod{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Get: %v", err)
		}
		if err := c.List(ctx, &corev1.PodList{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("List: %v", err)
		}
	})
}

// Both belong together: reads that wait, and a client that bounds the wait.
func TestTheManagersReadsWaitForOwnWrites(t *testing.T) {
	options := managerOptions(NewOptions(), true)
	if wait := options.Client.Cache.EnableReadYourWritesConsistency; wait == nil || !*wait {
		t.Error("reads do not wait for own writes")
	}
	if options.NewClient == nil {
		t.Error("reads wait without a bound")
	}
}
