// Package rest holds the REST endpoints that all kinds share: the status and scale
// subresources, and the frame of a table. What differs between kinds, the strategies
// and the columns, is in the kinds' own packages.
package rest
