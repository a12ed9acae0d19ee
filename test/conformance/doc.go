// Package conformance tests, from outside, that the kinds of Copse behave as those of
// Kubernetes do: every verb, patch, selector and option of the API conventions, for every
// kind, through the aggregation layer of a real cluster. What a kind is for is not tested
// here.
//
// TestConformance runs each check for each kind; its subtests are the list of what is
// covered. TestDiscovery looks at what the server says of itself.
package conformance
