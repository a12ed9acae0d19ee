// Package rules shows that each validation rule is held by a unit test: it switches one
// rule off at a time and expects the tests beside it to fail. A rule is a statement that
// adds to, or returns, a list of errors. All rules of a package are made switchable in one
// overlay of its files, which is compiled once; the tree is not touched. It runs by `make
// rules`; `go test ./...` skips it, because each rule costs a run of the tests.
package rules
