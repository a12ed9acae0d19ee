// Package validation holds the rules that make an object of the scheduler.grove.io API
// valid: by itself (ValidateX), as a change of another (ValidateXUpdate) and as a move
// of its status (ValidateXStatusUpdate). The rules are pure functions of the objects.
package validation
