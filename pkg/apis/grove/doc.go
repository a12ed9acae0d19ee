// +k8s:deepcopy-gen=package
// +groupName=grove.io

// Package grove holds the hub types of the grove.io API: the form in which the API
// server works with an object between decoding and encoding. The fields are
// those of pkg/apis/grove/v1alpha1, in the same memory layout, and are documented
// there. It holds no defaults and no rules.
package grove
