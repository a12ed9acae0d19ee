package rest

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
