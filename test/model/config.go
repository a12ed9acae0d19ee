package model

// Config is one world and the faults that may happen in it.
type Config struct {
	// Name for traces.
	Name string
	// Sizes are the pods of each clique, three in all at most; MinAvailable is the
	// minimum of each, 0 for all.
	Sizes, MinAvailable []int32
	// MaxRestarts is the budget of the set.
	MaxRestarts int32
	// TerminationDelay and MaxRuntime are in ticks; MaxRuntime 0 is none.
	TerminationDelay, MaxRuntime uint8

	// Failures is how many pods may exit with something else than 0, Deletions how many
	// a user may delete, Flaps how often one may become unready, and Exits how many pods
	// that are told to stop exit with 0 or 1 of their own before they are gone.
	Failures, Deletions, Flaps, Exits uint8
	// NoSuccess keeps pods from ending with 0.
	NoSuccess bool
	// Deleted lets the user delete the set, once.
	Deleted bool
	// Crashes is how many controllers may crash in the middle of something.
	Crashes uint8
	// Freezes is how often a cache may stop to follow.
	Freezes uint8
	// SecondPasses is how many passes a second controller makes; 0 for none.
	SecondPasses uint8
	// Barrier lets the containers of all pods start together.
	Barrier bool
	// Ticks is how often the clock moves.
	Ticks uint8

	// SkipValidation lets the server accept every status.
	SkipValidation bool
	// ForgetOwnWrites lets a cache lag behind the writes of its own controller.
	ForgetOwnWrites bool
	// TrustCache calls a pod lost that the cache does not show, without a live read.
	TrustCache bool
}

// Limits end a search early; 0 is no limit.
type Limits struct {
	States, Depth int
	// SampleEvery runs every n-th state to its end; 0 for none.
	SampleEvery int
}

// strict says that there is but one process, so that nothing excuses a pod that was
// made on an outdated live read.
func (c *Config) strict() bool { return c.SecondPasses == 0 }

func (c *Config) pods() int {
	n := 0
	for _, size := range c.Sizes {
		n += int(size)
	}
	return n
}
