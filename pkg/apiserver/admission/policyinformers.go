package admission

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
)

// policyInformers are the server's informers without those that are asked for by the name
// of a resource, which is how the policy plugins ask for the params of policies. Without
// one they make an informer that is theirs alone and ends with the last policy that uses
// it. One of the server's could not be taken back: the server is not ready before all of
// its informers are, so a policy with params that it may not read would shut it for good;
// and one that a policy has stopped would never start again. The policies themselves stay
// among the server's informers, as no request may be answered without them.
type policyInformers struct {
	informers.SharedInformerFactory
}

// ForResource has none.
func (policyInformers) ForResource(resource schema.GroupVersionResource) (informers.GenericInformer, error) {
	return nil, fmt.Errorf("the params %s of policies have informers of their own", resource.GroupResource())
}
