// Package rules holds what the pod grouper knows about kinds of workload: one file for each
// family of kinds, one type for each way to group. A new kind is an entry in All, or one in
// the configuration (see Declare).
package rules
