package apiserver

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
)

// labelled is a group with labels of about so many bytes.
func labelled(name string, bytes int) *schedulerv1alpha1.PodGroup {
	group := &schedulerv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	group.Spec.MinMember = ptr.To[int32](1)
	for i := 0; i*250 < bytes; i++ {
		group.Labels[fmt.Sprintf("%s.example.com/%06d", strings.Repeat("a", 60)+"."+strings.Repeat("b", 60)+"."+strings.Repeat("c", 40), i)] = strings.Repeat("v", 60)
	}
	return group
}

func TestObjectsThatEtcdDoesNotTakeAreToldToBeTooLarge(t *testing.T) {
	const mib = 1 << 20
	groups := serve(t, nil).copse.SchedulerV1alpha1().PodGroups("ns")
	small, err := groups.Create(t.Context(), labelled("small", 1000), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// etcd refuses the first, and its client already the second.
	for _, bytes := range []int{16 * mib / 10, 22 * mib / 10} {
		large := labelled("small", bytes)
		large.ResourceVersion = small.ResourceVersion
		for name, do := range map[string]func(context.Context) error{
			"create": func(ctx context.Context) error {
				_, err := groups.Create(ctx, labelled("large", bytes), metav1.CreateOptions{})
				return err
			},
			"update": func(ctx context.Context) error {
				_, err := groups.Update(ctx, large, metav1.UpdateOptions{})
				return err
			},
			"patch": func(ctx context.Context) error {
				_, err := groups.Patch(ctx, "small", types.MergePatchType, encode(t, map[string]any{"metadata": map[string]any{"labels": large.Labels}}), metav1.PatchOptions{})
				return err
			},
		} {
			t.Run(fmt.Sprintf("%s of %d bytes", name, bytes), func(t *testing.T) {
				if err := do(t.Context()); !apierrors.IsRequestEntityTooLargeError(err) || !strings.Contains(err.Error(), "keep less in its metadata") {
					t.Errorf("answered with %v", err)
				}
			})
		}
	}
	// The server's own notes of who wrote what are not what makes it so.
	noted, err := groups.Create(t.Context(), labelled("noted", 9*mib/10), metav1.CreateOptions{})
	if err != nil || len(noted.ManagedFields) > 0 {
		t.Errorf("an object that fits without managedFields is answered with %v, and has %d of them", err, len(noted.ManagedFields))
	}
}
