// Package validation holds the rules that make an object of the grove.io API valid:
// by itself (ValidateX), as a change of another (ValidateXUpdate) and as a move of its
// status (ValidateXStatusUpdate). The rules are pure functions of the objects; which
// of them apply to a request is decided in the strategies of pkg/registry/grove, and
// rules that need the user or another object are admission plugins.
package validation
