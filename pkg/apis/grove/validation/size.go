package validation

import (
	"encoding/json"
	"fmt"
	"math"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/grove"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

const (
	// MaxPodsPerSet bounds the pods of a set, so that no field value asks for more than
	// a cluster can hold.
	MaxPodsPerSet = 20000
	// MaxCliques bounds the cliques of a set, and its scaling groups. With pod templates of
	// a few KiB, no more than that fit into an object.
	MaxCliques = 256
	// MaxListItems bounds what the lists of a set hold in all.
	MaxListItems = 10000
	// MaxSharings bounds the entries of resourceSharing of a set in all: the names of the claims
	// of each are compared with those of all others.
	MaxSharings = 1000
	// MaxObjectBytes bounds the encoded object. etcd takes 1.5 MiB by default, and the
	// status of a set that has been accepted has to fit as well.
	MaxObjectBytes = 5 << 18
	// maxCliqueBytes leaves a PodClique, which is mostly a part of its set, room for what
	// the set does not have: a set that fits has cliques that fit.
	maxCliqueBytes = MaxObjectBytes + 64<<10
)

// validateLists bounds the lists of a set. It is looked at before anything looks at what
// is in them, so that a hostile object costs little more than its size.
func validateLists(spec *grove.PodCliqueSetSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	template, templatePath := &spec.Template, path.Child("template")
	if n := len(template.Cliques); n > MaxCliques {
		errs = append(errs, field.TooMany(templatePath.Child("cliques"), n, MaxCliques))
	}
	if n := len(template.PodCliqueScalingGroups); n > MaxCliques {
		errs = append(errs, field.TooMany(templatePath.Child("podCliqueScalingGroups"), n, MaxCliques))
	}
	if len(errs) > 0 {
		return errs
	}
	items, sharings := len(template.ResourceClaimTemplates)+len(template.ResourceSharing), len(template.ResourceSharing)
	for i := range template.ResourceSharing {
		if filter := template.ResourceSharing[i].Filter; filter != nil {
			items += len(filter.ChildCliqueNames) + len(filter.ChildScalingGroupNames)
		}
	}
	if policy := spec.StartupPolicy; policy != nil {
		items += len(policy.Rules)
		for i := range policy.Rules {
			items += len(policy.Rules[i].TargetCliques)
		}
	}
	if spec.GroupSchedulingConfig != nil {
		items += len(spec.GroupSchedulingConfig.TargetCliques)
	}
	for i := range template.PodCliqueScalingGroups {
		group := &template.PodCliqueScalingGroups[i]
		items += len(group.CliqueNames) + len(group.Annotations) + len(group.ResourceSharing) + scalerItems(group.ScaleConfig)
		sharings += len(group.ResourceSharing)
		for j := range group.ResourceSharing {
			if filter := group.ResourceSharing[j].Filter; filter != nil {
				items += len(filter.ChildCliqueNames)
			}
		}
	}
	for i := range template.Cliques {
		clique := &template.Cliques[i]
		items += len(clique.Labels) + len(clique.Annotations) + len(clique.ResourceSharing) + itemsOf(&clique.Spec)
		sharings += len(clique.ResourceSharing)
	}
	if items > MaxListItems {
		return field.ErrorList{tooManyItems(items, path)}
	}
	if sharings > MaxSharings {
		return field.ErrorList{field.Invalid(path, sharings, fmt.Sprintf("has more than %d entries of resourceSharing in all: ask for more devices by one claim, or split the set", MaxSharings)).WithOrigin("maximum")}
	}
	return nil
}

// tooManyItems says so in the words of what a person would have too many of.
func tooManyItems(items int, path *field.Path) *field.Error {
	return field.Invalid(path, items, fmt.Sprintf("has more than %d containers, volumes, environment variables and other list items in all: load them from a ConfigMap with envFrom, or split the set", MaxListItems)).WithOrigin("maximum")
}

// itemsOf counts the items of the lists of a clique that a rule looks at. Beyond the
// limit it stops counting.
func itemsOf(spec *grove.PodCliqueSpec) int {
	pod := &spec.PodSpec
	items := len(spec.StartsAfter) + scalerItems(spec.AutoScalingConfig) +
		len(pod.InitContainers) + len(pod.Containers) + len(pod.Volumes) + len(pod.SchedulingGates) + len(pod.ResourceClaims)
	if items > MaxListItems {
		return items
	}
	for i := range pod.InitContainers {
		items += len(pod.InitContainers[i].Env)
	}
	for i := range pod.Containers {
		items += len(pod.Containers[i].Env)
	}
	return items
}

// scalerItems counts the items of the lists of an autoscaler.
func scalerItems(config *grove.AutoScalingConfig) int {
	if config == nil {
		return 0
	}
	items := len(config.Metrics)
	if config.Behavior == nil {
		return items
	}
	for _, rules := range []*autoscalingv2.HPAScalingRules{config.Behavior.ScaleUp, config.Behavior.ScaleDown} {
		if rules != nil {
			items += len(rules.Policies)
		}
	}
	return items
}

// textPerByte bounds how much longer the text of a pod template is than its binary form,
// which is counted without making it.
const textPerByte = 8

// binaryBytes is about the least that the text of a set has.
func binaryBytes(pcs *grove.PodCliqueSet) int {
	bytes := 0
	for i := range pcs.Spec.Template.Cliques {
		bytes += pcs.Spec.Template.Cliques[i].Spec.PodSpec.Size()
	}
	for _, value := range pcs.Annotations {
		bytes += len(value)
	}
	return bytes
}

// IsTooBig says of a set that it is refused for the length of its lists whatever else it
// says, so that nobody need look closer at it.
func IsTooBig(pcs *grove.PodCliqueSet) bool {
	return len(validateLists(&pcs.Spec, field.NewPath("spec"))) > 0
}

// validateSetBytes bounds the encoded set, so that a person is told what to do rather
// than that etcd refuses it.
func validateSetBytes(pcs *grove.PodCliqueSet, path *field.Path) field.ErrorList {
	return validateBytes(binaryBytes(pcs), MaxObjectBytes, path, func() (any, error) {
		out := &grovev1alpha1.PodCliqueSet{}
		return out, grovev1alpha1.Convert_grove_PodCliqueSet_To_v1alpha1_PodCliqueSet(pcs, out, nil)
	})
}

// validateCliqueBytes bounds the encoded PodClique.
func validateCliqueBytes(clique *grove.PodClique, path *field.Path) field.ErrorList {
	return validateBytes(clique.Spec.PodSpec.Size(), maxCliqueBytes, path, func() (any, error) {
		out := &grovev1alpha1.PodClique{}
		return out, grovev1alpha1.Convert_grove_PodClique_To_v1alpha1_PodClique(clique, out, nil)
	})
}

// validateBytes bounds an object of so many bytes in binary form. It encodes only what may
// be too long, and is not known to be.
func validateBytes(binary, most int, path *field.Path, convert func() (any, error)) field.ErrorList {
	bytes := binary
	if binary <= most && binary > most/textPerByte {
		// What cannot be converted and encoded is not stored, whatever its size.
		if text, err := encode(convert); err == nil {
			bytes = len(text)
		}
	}
	if bytes <= most {
		return nil
	}
	return field.ErrorList{field.Invalid(path, bytes, fmt.Sprintf(
		"the object has more than %d bytes: keep files and scripts in ConfigMaps, and apply it with --server-side, which stores no second copy in an annotation", most)).WithOrigin("maximum")}
}

func encode(convert func() (any, error)) ([]byte, error) {
	obj, err := convert()
	if err != nil {
		return nil, err
	}
	return json.Marshal(obj)
}

// validateSize bounds the pods of the whole set, or of the one replica that a set without
// any could be scaled to. It computes in 64 bits: the largest product of three int32 does
// not fit, so each factor is bounded first.
func validateSize(spec *grove.PodCliqueSetSpec, path *field.Path) field.ErrorList {
	counted, subject := *spec, "the set"
	if spec.Replicas == 0 {
		counted.Replicas, subject = 1, "one replica of the set"
	}
	if total := Pods(&counted, false); total > MaxPodsPerSet {
		return field.ErrorList{field.Invalid(path, total, fmt.Sprintf("%s has more than %d pods: lower the replicas of the set, its scaling groups or its cliques", subject, MaxPodsPerSet)).WithOrigin("maximum")}
	}
	return nil
}

// Pods counts the pods of a set: as many as its template says or, with scaled, as its
// autoscalers may make of them. A count that does not fit is the largest there is.
func Pods(spec *grove.PodCliqueSetSpec, scaled bool) int64 {
	size := func(replicas int32, config *grove.AutoScalingConfig) int64 {
		if scaled {
			return int64(largest(replicas, config))
		}
		return int64(replicas)
	}
	copies := map[string]int64{}
	for i := range spec.Template.PodCliqueScalingGroups {
		group := &spec.Template.PodCliqueScalingGroups[i]
		for _, name := range group.CliqueNames {
			if group.Replicas != nil {
				copies[name] = size(*group.Replicas, group.ScaleConfig)
			}
		}
	}
	var perReplica int64
	for i := range spec.Template.Cliques {
		clique := &spec.Template.Cliques[i]
		n := size(clique.Spec.Replicas, clique.Spec.AutoScalingConfig)
		if c, ok := copies[clique.Name]; ok {
			n = saturatingProduct(n, c)
		}
		perReplica = saturatingSum(perReplica, n)
	}
	return saturatingProduct(perReplica, int64(spec.Replicas))
}

func saturatingProduct(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}

func saturatingSum(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}
