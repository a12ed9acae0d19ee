// Package health asks a component whether it can do its work.
package health
