package conditions

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func at(conditionType string, seconds, nanoseconds int64) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, LastTransitionTime: metav1.Unix(seconds, nanoseconds)}
}

func TestValidateUpdate(t *testing.T) {
	type list = []metav1.Condition
	tests := map[string]struct {
		old, conditions list
		// want is the error, empty for none.
		want string
	}{
		"none":                                {},
		"a condition comes":                   {conditions: list{at("Ready", 5, 0)}},
		"a condition goes":                    {old: list{at("Ready", 5, 0)}},
		"a transition later":                  {old: list{at("Ready", 5, 0)}, conditions: list{at("Ready", 6, 0)}},
		"the same time":                       {old: list{at("Ready", 5, 0)}, conditions: list{at("Ready", 5, 0)}},
		"parts of a second are not stored":    {old: list{at("Ready", 5, 900)}, conditions: list{at("Ready", 5, 0)}},
		"conditions are compared by type":     {old: list{at("Ready", 5, 0), at("Failed", 2, 0)}, conditions: list{at("Failed", 3, 0), at("Ready", 5, 0)}},
		"a time goes back":                    {old: list{at("Ready", 5, 0)}, conditions: list{at("Failed", 1, 0), at("Ready", 4, 0)}, want: "status.conditions[1].lastTransitionTime: Invalid value: \"1970-01-01T00:00:04Z\": of condition Ready must not go back, it is 1970-01-01T00:00:05Z"},
		"a time is dropped":                   {old: list{at("Ready", 5, 0)}, conditions: list{{Type: "Ready"}}, want: "of condition Ready must not go back"},
		"two of one type":                     {old: list{at("Ready", 5, 0)}, conditions: list{at("Ready", 5, 0), at("Ready", 5, 0)}, want: "status.conditions[1].type: Duplicate value"},
		"two of one type that are there":      {old: list{at("Ready", 5, 0), at("Ready", 5, 0)}, conditions: list{at("Ready", 5, 0), at("Ready", 6, 0)}},
		"two of another type than were there": {old: list{at("Ready", 5, 0), at("Ready", 5, 0)}, conditions: list{at("Failed", 5, 0), at("Failed", 6, 0)}, want: "status.conditions[1].type: Duplicate value"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			errs := ValidateUpdate(tc.conditions, tc.old, field.NewPath("status", "conditions"))
			switch {
			case tc.want == "" && len(errs) > 0:
				t.Errorf("refused: %v", errs.ToAggregate())
			case tc.want != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), tc.want)):
				t.Errorf("got %v, want %q", errs.ToAggregate(), tc.want)
			}
		})
	}
}
