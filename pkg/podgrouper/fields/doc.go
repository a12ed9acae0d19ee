// Package fields reads objects of kinds that Copse has no types for. A field that is not
// there is no error; one of another type is, with its path, so that a user learns what is
// wrong with the object and where.
package fields
