package model

import (
	"hash/maphash"
	"slices"
)

const (
	chunkBits = 14
	chunkSize = 1 << chunkBits
)

// node is a state that was seen, and how it was first reached.
type node struct {
	state state
	from  uint32
	by    action
}

// graph holds the states seen, in the order in which they were reached. They lie in
// chunks, so that nothing is copied as it grows.
type graph struct {
	seed   maphash.Seed
	chunks [][]node
	n      int
	// buckets is an open hash table of numbers of nodes, plus one.
	buckets []uint32
}

func newGraph() *graph {
	return &graph{seed: maphash.MakeSeed(), buckets: make([]uint32, 1<<16)}
}

func (g *graph) at(i int) *node { return &g.chunks[i>>chunkBits][i&(chunkSize-1)] }

// add takes a state in, unless it is known.
func (g *graph) add(s *state, from uint32, by action) {
	if 2*g.n >= len(g.buckets) {
		g.grow()
	}
	mask := uint64(len(g.buckets) - 1)
	place := maphash.Comparable(g.seed, *s) & mask
	for ; g.buckets[place] != 0; place = (place + 1) & mask {
		if g.at(int(g.buckets[place]-1)).state == *s {
			return
		}
	}
	if g.n == len(g.chunks)*chunkSize {
		g.chunks = append(g.chunks, make([]node, chunkSize))
	}
	*g.at(g.n) = node{*s, from, by}
	g.n++
	g.buckets[place] = uint32(g.n)
}

func (g *graph) grow() {
	g.buckets = make([]uint32, 2*len(g.buckets))
	mask := uint64(len(g.buckets) - 1)
	for i := range g.n {
		place := maphash.Comparable(g.seed, g.at(i).state) & mask
		for g.buckets[place] != 0 {
			place = (place + 1) & mask
		}
		g.buckets[place] = uint32(i + 1)
	}
}

// path is the way from the start to a state.
func (g *graph) path(to uint32) []action {
	var out []action
	for ; to != 0; to = g.at(int(to)).from {
		out = append(out, g.at(int(to)).by)
	}
	slices.Reverse(out)
	return out
}
