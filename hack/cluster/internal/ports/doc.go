// Package ports hands out TCP ports of the loopback address to the components
// of a cluster.
//
// A component keeps its port for the life of its cluster, also while its
// process is down: whoever talks to it finds it again. So a port must not be
// taken by somebody else in between, neither by another cluster nor as the
// source port of some connection.
package ports
