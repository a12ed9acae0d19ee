// +k8s:deepcopy-gen=package
// +k8s:conversion-gen=github.com/copse-dev/copse/pkg/apis/scheduler
// +k8s:defaulter-gen=TypeMeta
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.grove.scheduler.v1alpha1
// +groupName=scheduler.grove.io

// Package v1alpha1 is the v1alpha1 version of the scheduler.grove.io API: the types that
// clients send and read. It holds types, fixed defaults and conversions; what
// makes an object valid is in pkg/apis/scheduler/validation, and defaults that depend
// on other fields are in the strategies of pkg/registry/scheduler.
package v1alpha1
