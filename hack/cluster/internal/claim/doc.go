// Package claim makes something of this machine belong to one process.
package claim
