package rules

import (
	"context"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/fields"
)

// notebook groups the one pod of a Kubeflow notebook, which someone waits for.
func notebook(context.Context, podgrouper.Input, fields.Fields, client.Reader) (podgrouper.Shape, error) {
	return podgrouper.Shape{AtOnce: ptr.To[int64](1)}, nil
}
