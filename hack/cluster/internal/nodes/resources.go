package nodes

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// ParseResources reads a list such as "cpu=32,memory=256Gi,nvidia.com/gpu=8".
func ParseResources(list string) (corev1.ResourceList, error) {
	resources := corev1.ResourceList{}
	for item := range strings.SplitSeq(list, ",") {
		name, value, found := strings.Cut(item, "=")
		name = strings.TrimSpace(name)
		if !found || name == "" {
			return nil, fmt.Errorf("%q is not of the form name=quantity", item)
		}
		quantity, err := resource.ParseQuantity(strings.TrimSpace(value))
		if err != nil {
			return nil, fmt.Errorf("%s: %q: %w", name, value, err)
		}
		if quantity.Sign() < 0 {
			return nil, fmt.Errorf("%s: %q is negative", name, value)
		}
		if _, twice := resources[corev1.ResourceName(name)]; twice {
			return nil, fmt.Errorf("%s is given twice", name)
		}
		resources[corev1.ResourceName(name)] = quantity
	}
	return resources, nil
}
