// Package live keeps a pod grouper in line with its cluster: with the ConfigMap that
// configures it, the PriorityClasses that there are, and the schedulers that take groups.
// Every replica of the controller-manager has one, for it groups pods at their creation as
// well as later.
package live
