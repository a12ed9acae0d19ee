// Package requestlimits refuses bodies of requests that cost the server far more than
// their size, before anything looks at what is in them.
//
// The generic server reads up to 3 MiB. It then decodes the object and tracks who owns
// each of its fields, which takes hundreds of bytes for each value, and time that grows
// with the square of the entries of one map: a body of 200,000 labels kept a processor busy
// for over half a minute, one of 260,000 empty cliques took 1.8 GiB. Admission and
// validation come later and cannot help. So values are counted in the text.
//
// It is not where the length of a field is limited: that is validation, which also says so
// for objects that are not hostile.
package requestlimits
