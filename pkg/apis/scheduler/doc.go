// +k8s:deepcopy-gen=package
// +groupName=scheduler.grove.io

// Package scheduler holds the hub types of the scheduler.grove.io API: the form in which the API
// server works with an object between decoding and encoding. The fields are
// those of pkg/apis/scheduler/v1alpha1, in the same memory layout, and are documented
// there. It holds no defaults and no rules.
package scheduler
