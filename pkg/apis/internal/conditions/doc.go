// Package conditions holds the rules about conditions that the status of every kind
// shares, whatever its API group.
package conditions
