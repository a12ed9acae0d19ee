// Package chaos runs Copse's controllers, as controllers.Setup puts them together, in
// one process against API servers in memory, and breaks what can break between them: the
// controllers crash before and after each write, replies are lost, caches lag behind,
// two leaders work at once, the servers answer with errors.
//
// Everything happens inside a testing/synctest bubble, and one goroutine, the driver,
// decides what happens next: which watch event is delivered, which key is worked on,
// which write reaches its server, what the scheduler, the kubelet and the user do, and,
// when nothing else can happen, that time passes. So a run is the same each time, and
// one that fails is replayed by the name of its test.
//
// Two servers are behind the controllers, each with its own revisions: Copse's, which
// runs the strategies of the real one, and the cluster's (D11). Each instance of the
// controllers reads from caches of its own, with the waiting for own writes that the
// real client does.
//
// A run without faults is the reference of its scenario: it tells how many writes there
// are, and what the end looks like. A run with a fault has to come to the same end. On
// every revision of either server the checker asserts what must hold always.
package chaos
