package model

// world to explore, and how far.
type exploration struct {
	config Config
	limits Limits
	deep   bool
}

func worlds() []exploration {
	limits := Limits{SampleEvery: 50}
	return []exploration{
		{config: Config{Name: "calm", Sizes: []int32{2, 1}, MaxRestarts: 0, ExcuseStrays: true, Failures: 1}, limits: limits},
		{config: Config{Name: "leader", Sizes: []int32{2, 1}, MaxRestarts: 0, ExcuseStrays: true, Failures: 2, Deletions: 1, Crashes: 1}, limits: limits},
		{config: Config{Name: "stale", Sizes: []int32{2, 1}, MaxRestarts: 0, ExcuseStrays: true, Failures: 2, Freezes: 1}, limits: limits},
		{config: Config{Name: "two", Sizes: []int32{1, 1}, MaxRestarts: 0, ExcuseStrays: true, Failures: 2, SecondPasses: 2, Freezes: 1}, limits: limits},
	}
}
