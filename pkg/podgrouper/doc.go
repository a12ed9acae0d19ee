// Package podgrouper says which pods belong together, for pods of any workload (seed 004):
// which group a pod is in (Identify, from metadata alone, so that it can be asked while the
// pod is being created), and what the group wants (Describe, from the owner as it is now).
// What is special about a kind of workload is a Rule; what people ask for by label or
// annotation, and in which order it counts, is the same for all rules. It knows no
// scheduler and writes nothing.
package podgrouper
