package replica

import (
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/copse-dev/copse/pkg/scheduling/kai"
)

// carried is what people say on a set for its gangs, by which schedulers with queues tell them
// apart. It is the set's alone to say: what it drops goes from its gangs.
func carried(from client.Object) (labels, annotations map[string]string) {
	return only(from.GetLabels(), kai.CarriedLabels()), only(from.GetAnnotations(), kai.CarriedAnnotations())
}

// carriesSame says that two objects say the same to schedulers.
func carriesSame(a, b client.Object) bool {
	aLabels, aAnnotations := carried(a)
	bLabels, bAnnotations := carried(b)
	return maps.Equal(aLabels, bLabels) && maps.Equal(aAnnotations, bAnnotations)
}

// carry makes a gang say what another object says, and leaves all else of it.
func carry(to, from client.Object) {
	labels, annotations := carried(from)
	to.SetLabels(replace(to.GetLabels(), labels, kai.CarriedLabels()))
	to.SetAnnotations(replace(to.GetAnnotations(), annotations, kai.CarriedAnnotations()))
}

func only(all map[string]string, keys []string) map[string]string {
	out := map[string]string{}
	for _, key := range keys {
		if value, ok := all[key]; ok {
			out[key] = value
		}
	}
	return out
}

// replace returns all with some keys as they are in values, or not at all.
func replace(all, values map[string]string, keys []string) map[string]string {
	out := maps.Clone(all)
	for _, key := range keys {
		delete(out, key)
	}
	if out == nil && len(values) > 0 {
		out = map[string]string{}
	}
	maps.Copy(out, values)
	return out
}
