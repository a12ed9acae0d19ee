// Package rules holds what the pod grouper knows about kinds of workload: one file for each
// family of kinds. Where all pods of an owner are one group a kind is a function and an entry
// in All, else a type; and a kind whose fields say all is an entry in the configuration (see
// Declare).
package rules
