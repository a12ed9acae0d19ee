package config

import (
	_ "embed" // for shipped.yaml
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/rules"
)

//go:embed shipped.yaml
var shipped []byte

// Config is what can be configured.
type Config struct {
	// Kinds have defaults.
	Kinds map[schema.GroupKind]podgrouper.KindDefaults
	// PassedOver are kinds that only order the work of those below them.
	PassedOver []schema.GroupKind
	// Rules of further kinds.
	Rules []podgrouper.Rule
}

// Keys of the data of the ConfigMap; each is a list in YAML or JSON.
const (
	// TypesKey holds defaults per kind. It has KAI's name, and takes what KAI takes.
	TypesKey = "types"
	// PassOverKey holds kinds to pass over.
	PassOverKey = "passOver"
	// RulesKey holds rules.
	RulesKey = "rules"
)

// kindDefaults is an entry of types.
type kindDefaults struct {
	TypeName          string `json:"typeName"`
	Group             string `json:"group,omitempty"`
	PriorityName      string `json:"priorityName,omitempty"`
	Preemptibility    string `json:"preemptibility,omitempty"`
	Queue             string `json:"queue,omitempty"`
	NodePool          string `json:"nodePool,omitempty"`
	MinMember         *int32 `json:"minMember,omitempty"`
	MarkUnschedulable *bool  `json:"markUnschedulable,omitempty"`
	SchedulingBackoff *int32 `json:"schedulingBackoff,omitempty"`
}

// kind is an entry of passOver.
type kind struct {
	Group string `json:"group,omitempty"`
	Kind  string `json:"kind"`
}

// Shipped returns what comes with the program.
func Shipped() (Config, field.ErrorList) {
	data := map[string]string{}
	if err := yaml.UnmarshalStrict(shipped, &data); err != nil {
		return Config{}, field.ErrorList{field.InternalError(nil, err)}
	}
	config, errs := Parse(data)
	config.PassedOver = append(config.PassedOver, rules.PassedOver()...)
	return config, errs
}

// Grouper returns a Grouper that is configured so.
func (c Config) Grouper(options podgrouper.Options) *podgrouper.Grouper {
	options.Kinds, options.PassedOver = c.Kinds, c.PassedOver
	return podgrouper.New(rules.NewRegistry(c.Rules...), options)
}

// Parse reads the data of a ConfigMap. An entry that is wrong is left out, and so is a list
// that cannot be read; the others count. What was left out is told.
func Parse(data map[string]string) (Config, field.ErrorList) {
	config := Config{Kinds: map[schema.GroupKind]podgrouper.KindDefaults{}}
	path := field.NewPath("data")
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(data)) {
		switch key {
		case TypesKey:
			errs = append(errs, config.parseTypes(data[key], path.Child(key))...)
		case PassOverKey:
			errs = append(errs, config.parsePassOver(data[key], path.Child(key))...)
		case RulesKey:
			errs = append(errs, config.parseRules(data[key], path.Child(key))...)
		default:
			errs = append(errs, field.NotSupported(path, key, []string{PassOverKey, RulesKey, TypesKey}))
		}
	}
	return config, errs
}

// Merge returns a configuration and another that counts where both say something.
func Merge(base, over Config) Config {
	out := Config{
		Kinds:      maps.Clone(base.Kinds),
		PassedOver: slices.Concat(base.PassedOver, over.PassedOver),
		Rules:      slices.Concat(base.Rules, over.Rules),
	}
	if out.Kinds == nil {
		out.Kinds = map[schema.GroupKind]podgrouper.KindDefaults{}
	}
	maps.Copy(out.Kinds, over.Kinds)
	// A rule for a kind takes it from those that are passed over.
	own := sets.New[schema.GroupKind]()
	for _, rule := range over.Rules {
		own.Insert(rule.Kinds()...)
	}
	for _, kind := range over.PassedOver {
		own.Delete(kind)
	}
	out.PassedOver = slices.DeleteFunc(out.PassedOver, own.Has)
	return out
}

// read reads a list. A field that is unknown is a mistake: most likely it is misspelt, and
// would be without effect.
func read[T any](text string, path *field.Path) ([]T, field.ErrorList) {
	var entries []T
	if err := yaml.UnmarshalStrict([]byte(text), &entries); err != nil {
		return nil, field.ErrorList{field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("must be a list in YAML or JSON: %v", err))}
	}
	return entries, nil
}

func (c *Config) parseTypes(text string, path *field.Path) field.ErrorList {
	entries, errs := read[kindDefaults](text, path)
	for i, entry := range entries {
		of := schema.GroupKind{Group: entry.Group, Kind: entry.TypeName}
		if of.Group == "" {
			// KAI writes "Job.batch", or the kind alone for one of any group.
			of = schema.ParseGroupKind(entry.TypeName)
		}
		wrong := entry.validate(path.Index(i))
		if _, twice := c.Kinds[of]; twice {
			wrong = append(wrong, field.Duplicate(path.Index(i).Child("typeName"), of.String()))
		}
		if errs = append(errs, wrong...); len(wrong) > 0 {
			continue
		}
		c.Kinds[of] = podgrouper.KindDefaults{
			PriorityClassName: entry.PriorityName, Preemptibility: entry.Preemptibility, Queue: entry.Queue, NodePool: entry.NodePool,
			MinMember: ptr.Deref(entry.MinMember, 0), MarkUnschedulable: entry.MarkUnschedulable, SchedulingBackoff: entry.SchedulingBackoff,
		}
	}
	return errs
}

func (d kindDefaults) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if d.TypeName == "" {
		errs = append(errs, field.Required(path.Child("typeName"), "the kind that the defaults are for"))
	}
	errs = append(errs, subdomain(d.PriorityName, path.Child("priorityName"))...)
	errs = append(errs, subdomain(d.Queue, path.Child("queue"))...)
	if d.NodePool != "" {
		for _, msg := range validation.IsValidLabelValue(d.NodePool) {
			errs = append(errs, field.Invalid(path.Child("nodePool"), d.NodePool, msg))
		}
	}
	allowed := []string{string(schedulerv1alpha1.NonPreemptible), string(schedulerv1alpha1.Preemptible)}
	if d.Preemptibility != "" && !slices.Contains(allowed, d.Preemptibility) {
		errs = append(errs, field.NotSupported(path.Child("preemptibility"), d.Preemptibility, allowed))
	}
	if d.MinMember != nil && *d.MinMember < 1 {
		errs = append(errs, field.Invalid(path.Child("minMember"), *d.MinMember, "must be at least 1"))
	}
	if backoff := d.SchedulingBackoff; backoff != nil && *backoff != 1 && *backoff != -1 {
		errs = append(errs, field.NotSupported(path.Child("schedulingBackoff"), *backoff, []string{"1", "-1"}))
	}
	return errs
}

func subdomain(value string, path *field.Path) field.ErrorList {
	if value == "" {
		return nil
	}
	var errs field.ErrorList
	for _, msg := range validation.IsDNS1123Subdomain(value) {
		errs = append(errs, field.Invalid(path, value, msg))
	}
	return errs
}

func (c *Config) parsePassOver(text string, path *field.Path) field.ErrorList {
	entries, errs := read[kind](text, path)
	for i, entry := range entries {
		if entry.Kind == "" {
			errs = append(errs, field.Required(path.Index(i).Child("kind"), "the kind to pass over"))
			continue
		}
		c.PassedOver = append(c.PassedOver, schema.GroupKind{Group: entry.Group, Kind: entry.Kind})
	}
	return errs
}

func (c *Config) parseRules(text string, path *field.Path) field.ErrorList {
	entries, errs := read[rules.Declaration](text, path)
	seen := sets.New[schema.GroupKind]()
	for i, entry := range entries {
		rule, wrong := rules.Declare(entry, path.Index(i))
		of := schema.GroupKind{Group: entry.Group, Kind: entry.Kind}
		if seen.Has(of) {
			wrong = append(wrong, field.Duplicate(path.Index(i), of.String()))
		}
		seen.Insert(of)
		if errs = append(errs, wrong...); len(wrong) == 0 {
			c.Rules = append(c.Rules, rule)
		}
	}
	return errs
}
