package model

// exploration is a world to explore, and how far.
type exploration struct {
	config Config
	limits Limits
	deep   bool
}

// worlds differ in what may go wrong. Those of the fast tier are explored completely;
// those of the deep tier completely or up to a number of states.
func worlds() []exploration {
	fast := func(c Config) exploration {
		return exploration{config: c, limits: Limits{SampleEvery: 100}}
	}
	deep := func(c Config, states int) exploration {
		return exploration{config: c, limits: Limits{SampleEvery: 500, States: states}, deep: true}
	}
	const most = 4_000_000
	return []exploration{
		fast(Config{Name: "restarts", Sizes: []int32{1, 1}, MaxRestarts: 2, Failures: 3}),
		fast(Config{Name: "crash", Sizes: []int32{1, 1}, MaxRestarts: 1, Failures: 1, Deletions: 1, Crashes: 1}),
		fast(Config{Name: "stale", Sizes: []int32{1, 1}, MaxRestarts: 1, Failures: 1, Freezes: 2}),
		fast(Config{Name: "stale-pair", Sizes: []int32{2}, MaxRestarts: 1, Failures: 2, Freezes: 2}),
		fast(Config{Name: "second", Sizes: []int32{1}, MaxRestarts: 1, Failures: 2, Freezes: 1, SecondPasses: 3}),
		fast(Config{Name: "delay", Sizes: []int32{2}, MinAvailable: []int32{1}, MaxRestarts: 1, Failures: 2, TerminationDelay: 1, Ticks: 2}),
		fast(Config{Name: "runtime", Sizes: []int32{1, 1}, MaxRestarts: 1, Failures: 1, MaxRuntime: 1, Ticks: 1}),
		fast(Config{Name: "runtime-second", Sizes: []int32{1}, MaxRestarts: 1, Failures: 1, Freezes: 1, SecondPasses: 3, MaxRuntime: 1, Ticks: 1}),
		// A clique that is still being made when another fails.
		fast(Config{Name: "strays", Sizes: []int32{1, 1}, MaxRestarts: 1, Failures: 2}),
		fast(Config{Name: "exits", Sizes: []int32{1, 1}, MaxRestarts: 1, Failures: 1, Flaps: 1, Exits: 1}),
		// Containers that start together, anew in each attempt.
		fast(Config{Name: "barrier", Sizes: []int32{1, 1}, MaxRestarts: 1, Failures: 1, Crashes: 1, Barrier: true}),
		fast(Config{Name: "barrier-stale", Sizes: []int32{1, 1}, MaxRestarts: 1, Failures: 1, Freezes: 1, Barrier: true}),
		fast(Config{Name: "deletion", Sizes: []int32{1, 1}, MaxRestarts: 1, Failures: 1, Deleted: true}),

		deep(Config{Name: "deep-restarts", Sizes: []int32{2, 1}, MaxRestarts: 2, Failures: 3}, most),
		deep(Config{Name: "deep-crash", Sizes: []int32{1, 1}, MaxRestarts: 2, Failures: 2, Deletions: 1, Crashes: 1}, most),
		deep(Config{Name: "deep-stale", Sizes: []int32{1, 1}, MaxRestarts: 2, Failures: 2, Freezes: 2}, most),
		deep(Config{Name: "deep-second", Sizes: []int32{1}, MaxRestarts: 2, Failures: 3, Freezes: 1, SecondPasses: 4}, most),
		deep(Config{Name: "deep-two-cliques", Sizes: []int32{1, 1}, MaxRestarts: 1, Failures: 1, Freezes: 1, SecondPasses: 2}, most),
		deep(Config{Name: "deep-deletion", Sizes: []int32{1, 1}, MaxRestarts: 1, Failures: 1, Crashes: 1, Freezes: 1, Deleted: true}, most),
		deep(Config{Name: "deep-forgetful", Sizes: []int32{1, 1}, MaxRestarts: 2, Failures: 2, Freezes: 1, ForgetOwnWrites: true}, most),
		deep(Config{Name: "deep-delay", Sizes: []int32{3}, MinAvailable: []int32{2}, MaxRestarts: 1, Failures: 2, TerminationDelay: 1, Ticks: 2}, most),
		deep(Config{Name: "deep-runtime", Sizes: []int32{1, 1}, MaxRestarts: 1, Failures: 1, MaxRuntime: 1, Ticks: 2}, most),
		deep(Config{Name: "deep-barrier", Sizes: []int32{2, 1}, MaxRestarts: 1, Failures: 1, Deletions: 1, Freezes: 1, Barrier: true}, most),
		deep(Config{Name: "deep-exits", Sizes: []int32{1, 1}, MaxRestarts: 1, Failures: 1, Deletions: 1, Flaps: 1, Exits: 1}, most),
	}
}
