// Package fields holds the checks of single fields that the API groups have in common,
// and what an update owes to an old object.
package fields
