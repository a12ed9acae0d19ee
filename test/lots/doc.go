// Package lots draws PodCliqueSets by lot: any order of start, any barrier, any scaling
// groups and minimums. Some hold one mistake, of which it is known where it is. Those who
// hunt for sets that wait for ever draw from here, in memory and on a cluster.
package lots
