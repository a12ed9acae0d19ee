// Package forward passes TCP connections on to another address.
package forward
