package podcliqueset

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/grove/validation"
	"github.com/copse-dev/copse/pkg/naming"
)

// hashTemplates identifies the pod template of each clique, and of the set, in the
// status. A clique whose template is semantically that of the old object keeps its
// hash, so that neither a new binary, nor a new library, nor another order of cliques
// ever rolls running pods (D16). old is nil for a new set.
func hashTemplates(pcs, old *grove.PodCliqueSet) {
	if validation.IsTooBig(pcs) && (old == nil || !validation.IsTooBig(old)) {
		// Validation, which comes later, refuses it for less than hashing it costs.
		return
	}
	kept := map[string]string{}
	if old != nil {
		for _, hash := range old.Status.CliqueHashes {
			if old.Spec.Template.Clique(hash.Name) != nil {
				kept[hash.Name] = hash.Hash
			}
		}
	}
	changed := old == nil || old.Status.CurrentGenerationHash == nil || len(old.Status.CliqueHashes) != len(pcs.Spec.Template.Cliques)
	hashes := make([]grove.CliqueHash, 0, len(pcs.Spec.Template.Cliques))
	for i := range pcs.Spec.Template.Cliques {
		clique := &pcs.Spec.Template.Cliques[i]
		hash := kept[clique.Name]
		if hash == "" || !grove.SamePodTemplate(clique, pcs.Spec.Template.PriorityClassName, old.Spec.Template.Clique(clique.Name), old.Spec.Template.PriorityClassName) {
			hash = hashTemplate(clique, pcs.Spec.Template.PriorityClassName)
			changed = true
		}
		hashes = append(hashes, grove.CliqueHash{Name: clique.Name, Hash: hash})
	}
	pcs.Status.CliqueHashes = hashes
	if changed {
		pcs.Status.CurrentGenerationHash = ptr.To(hashSet(hashes))
	}
}

func hashTemplate(clique *grove.PodCliqueTemplateSpec, priorityClass string) string {
	// The binary form takes a tenth of the time of JSON. It need not be the same for ever:
	// a hash is kept for as long as the template means the same.
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: clique.Labels, Annotations: clique.Annotations},
		Spec:       clique.Spec.PodSpec,
	}
	text, err := template.Marshal()
	if err != nil {
		// Nothing in a decoded pod spec can fail to be encoded.
		utilruntime.HandleError(fmt.Errorf("encode the template of clique %s: %w", clique.Name, err))
	}
	return naming.Hash(priorityClass, string(text))
}

// hashSet does not depend on the order of the cliques.
func hashSet(hashes []grove.CliqueHash) string {
	parts := make([]string, 0, len(hashes))
	for _, hash := range hashes {
		parts = append(parts, hash.Name+"="+hash.Hash)
	}
	slices.Sort(parts)
	return naming.Hash(parts...)
}
