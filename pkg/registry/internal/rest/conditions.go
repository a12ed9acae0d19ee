package rest

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Blocker is a condition that holds an object up.
type Blocker struct {
	// Type and Status are those of the condition.
	Type   string
	Status metav1.ConditionStatus
	// Reason is the only one that counts; empty if all do.
	Reason string
	// Named is set for a type that says more than its reasons.
	Named bool
}

// WaitingFor renders what holds an object up, and the message about it: the first blocker
// that is there, so that blockers are given by what a person should know first. Both are
// empty when there is none.
func WaitingFor(conditions []metav1.Condition, blockers ...Blocker) (cell, message string) {
	for _, blocker := range blockers {
		condition := meta.FindStatusCondition(conditions, blocker.Type)
		if condition == nil || condition.Status != blocker.Status || (blocker.Reason != "" && condition.Reason != blocker.Reason) {
			continue
		}
		if blocker.Named {
			return condition.Type + ": " + condition.Reason, condition.Message
		}
		return condition.Reason, condition.Message
	}
	return "", ""
}

// ConditionStatus renders the status of a condition as a cell; empty when it is not there.
func ConditionStatus(conditions []metav1.Condition, conditionType string) string {
	if condition := meta.FindStatusCondition(conditions, conditionType); condition != nil {
		return string(condition.Status)
	}
	return ""
}

// ConditionReason renders the reason of a condition as a cell; empty when it is not there.
func ConditionReason(conditions []metav1.Condition, conditionType string) string {
	if condition := meta.FindStatusCondition(conditions, conditionType); condition != nil {
		return condition.Reason
	}
	return ""
}

// ConditionMessage renders the message of a condition as a cell; empty when it is not there.
func ConditionMessage(conditions []metav1.Condition, conditionType string) string {
	if condition := meta.FindStatusCondition(conditions, conditionType); condition != nil {
		return condition.Message
	}
	return ""
}
