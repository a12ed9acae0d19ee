package validation

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

func TestValidateClusterTopologyBinding(t *testing.T) {
	testCreate(t, mkClusterTopologyBinding, ValidateClusterTopologyBinding, map[string]createCase[grove.ClusterTopologyBinding]{
		"valid":                  {},
		"without schedulers":     {tweak: func(b *grove.ClusterTopologyBinding) { b.Spec.SchedulerTopologyBindings = nil }},
		"name may have dots":     {tweak: func(b *grove.ClusterTopologyBinding) { b.Name = "gpu.v2" }},
		"plain key":              {tweak: func(b *grove.ClusterTopologyBinding) { b.Spec.Levels[0].Key = "zone" }},
		"nil everything":         {tweak: func(b *grove.ClusterTopologyBinding) { *b = grove.ClusterTopologyBinding{} }, want: field.ErrorList{required("metadata.name"), required("spec.levels")}},
		"name is valid":          {tweak: func(b *grove.ClusterTopologyBinding) { b.Name = "GPU" }, want: field.ErrorList{invalid("metadata.name")}},
		"is in no namespace":     {tweak: func(b *grove.ClusterTopologyBinding) { b.Namespace = "ns" }, want: field.ErrorList{forbidden("metadata.namespace")}},
		"has a level":            {tweak: func(b *grove.ClusterTopologyBinding) { b.Spec.Levels = nil }, want: field.ErrorList{required("spec.levels")}},
		"domain is required":     {tweak: func(b *grove.ClusterTopologyBinding) { b.Spec.Levels[0].Domain = "" }, want: field.ErrorList{required("spec.levels[0].domain")}},
		"domain is a DNS label":  {tweak: func(b *grove.ClusterTopologyBinding) { b.Spec.Levels[0].Domain = "Zone" }, want: field.ErrorList{invalid("spec.levels[0].domain")}},
		"domains are unique":     {tweak: func(b *grove.ClusterTopologyBinding) { b.Spec.Levels[1].Domain = "zone" }, want: field.ErrorList{duplicate("spec.levels[1].domain")}},
		"key is required":        {tweak: func(b *grove.ClusterTopologyBinding) { b.Spec.Levels[0].Key = "" }, want: field.ErrorList{required("spec.levels[0].key")}},
		"key is a label key":     {tweak: func(b *grove.ClusterTopologyBinding) { b.Spec.Levels[0].Key = "a/b/c" }, want: field.ErrorList{invalid("spec.levels[0].key")}},
		"key is not too long":    {tweak: func(b *grove.ClusterTopologyBinding) { b.Spec.Levels[0].Key = strings.Repeat("a", 400) }, want: field.ErrorList{tooLong("spec.levels[0].key")}},
		"scheduler is a name":    {tweak: func(b *grove.ClusterTopologyBinding) { b.Spec.SchedulerTopologyBindings[0].SchedulerName = "KAI" }, want: field.ErrorList{invalid("spec.schedulerTopologyBindings[0].schedulerName")}},
		"reference is a name":    {tweak: func(b *grove.ClusterTopologyBinding) { b.Spec.SchedulerTopologyBindings[0].TopologyReference = "GPU" }, want: field.ErrorList{invalid("spec.schedulerTopologyBindings[0].topologyReference")}},
		"65 levels are too many": {tweak: func(b *grove.ClusterTopologyBinding) { b.Spec.Levels = make([]grove.TopologyLevel, 65) }, want: field.ErrorList{tooMany("spec.levels")}},
		"65 schedulers are too many": {tweak: func(b *grove.ClusterTopologyBinding) {
			b.Spec.SchedulerTopologyBindings = make([]grove.SchedulerTopologyBinding, 65)
		}, want: field.ErrorList{tooMany("spec.schedulerTopologyBindings")}},
		"keys are unique":       {tweak: func(b *grove.ClusterTopologyBinding) { b.Spec.Levels[1].Key = b.Spec.Levels[0].Key }, want: field.ErrorList{duplicate("spec.levels[1].key")}},
		"scheduler is required": {tweak: func(b *grove.ClusterTopologyBinding) { b.Spec.SchedulerTopologyBindings[0].SchedulerName = "" }, want: field.ErrorList{required("spec.schedulerTopologyBindings[0].schedulerName")}},
		"schedulers are unique": {tweak: func(b *grove.ClusterTopologyBinding) {
			b.Spec.SchedulerTopologyBindings[1].SchedulerName = "kai-scheduler"
		}, want: field.ErrorList{duplicate("spec.schedulerTopologyBindings[1].schedulerName")}},
		"reference is required": {tweak: func(b *grove.ClusterTopologyBinding) { b.Spec.SchedulerTopologyBindings[1].TopologyReference = "" }, want: field.ErrorList{required("spec.schedulerTopologyBindings[1].topologyReference")}},
		"two keys are missing":  {tweak: func(b *grove.ClusterTopologyBinding) { b.Spec.Levels[0].Key, b.Spec.Levels[1].Key = "", "" }, want: field.ErrorList{required("spec.levels[0].key"), required("spec.levels[1].key")}},
		"null level and binding": {tweak: func(b *grove.ClusterTopologyBinding) {
			b.Spec.Levels[1], b.Spec.SchedulerTopologyBindings[1] = grove.TopologyLevel{}, grove.SchedulerTopologyBinding{}
		}, want: field.ErrorList{required("spec.levels[1].domain"), required("spec.levels[1].key"), required("spec.schedulerTopologyBindings[1].schedulerName"), required("spec.schedulerTopologyBindings[1].topologyReference")}},
	})
}

func TestValidateClusterTopologyBindingUpdate(t *testing.T) {
	noLevels := func(b *grove.ClusterTopologyBinding) { b.Spec.Levels = nil }
	testUpdate(t, mkClusterTopologyBinding, ValidateClusterTopologyBindingUpdate, map[string]updateCase[grove.ClusterTopologyBinding]{
		"nothing changes":   {},
		"levels may change": {tweak: func(b *grove.ClusterTopologyBinding) { b.Spec.Levels = b.Spec.Levels[:1] }},
		"metadata is checked": {
			tweak: func(b *grove.ClusterTopologyBinding) { b.ResourceVersion = "" },
			want:  field.ErrorList{invalid("metadata.resourceVersion")},
		},
		"a change has to be valid": {tweak: noLevels, want: field.ErrorList{required("spec.levels")}},
		"an invalid spec may be written unchanged": {
			before: noLevels,
			tweak:  func(b *grove.ClusterTopologyBinding) { b.Labels = map[string]string{"a": "b"} },
		},
		"an invalid field that is left untouched": {
			before: noLevels,
			tweak:  func(b *grove.ClusterTopologyBinding) { b.Spec.SchedulerTopologyBindings = nil },
		},
		"a binding that goes away needs no valid spec": {
			before: func(b *grove.ClusterTopologyBinding) { deleting(&b.ObjectMeta) },
			tweak:  func(b *grove.ClusterTopologyBinding) { b.Finalizers, b.Spec.Levels = nil, nil },
		},
	})
}

func TestValidateClusterTopologyBindingStatusUpdate(t *testing.T) {
	transition := func(seconds int64) func(*grove.ClusterTopologyBinding) {
		return func(b *grove.ClusterTopologyBinding) {
			b.Status.Conditions = []metav1.Condition{{Type: "Any", Status: metav1.ConditionTrue, LastTransitionTime: metav1.Unix(seconds, 0)}}
		}
	}
	testUpdate(t, mkClusterTopologyBinding, ValidateClusterTopologyBindingStatusUpdate, map[string]updateCase[grove.ClusterTopologyBinding]{
		"status may change": {tweak: func(b *grove.ClusterTopologyBinding) {
			b.Status.SchedulerTopologyStatuses = []grove.SchedulerTopologyStatus{{InSync: true}}
		}},
		"status of an invalid spec may change": {
			before: func(b *grove.ClusterTopologyBinding) { b.Spec.Levels = nil },
			tweak: func(b *grove.ClusterTopologyBinding) {
				b.Status.SchedulerTopologyStatuses = []grove.SchedulerTopologyStatus{{InSync: true}}
			},
		},
		"metadata is checked": {
			tweak: func(b *grove.ClusterTopologyBinding) { b.ResourceVersion = "" },
			want:  field.ErrorList{invalid("metadata.resourceVersion")},
		},
		"time of a transition goes on": {before: transition(100), tweak: transition(101)},
		"time of a transition does not go back": {
			before: transition(100),
			tweak:  transition(99),
			want:   field.ErrorList{invalid("status.conditions[0].lastTransitionTime")},
		},
	})
}
