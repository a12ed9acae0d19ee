package scheduling

import "testing"

type named struct {
	Backend
	name string
}

func TestForIsChosenByTheNameOfTheScheduler(t *testing.T) {
	native, kai, others := &named{name: "native"}, &named{name: "kai"}, &named{name: "others"}
	withNative := &Backends{Others: others, ByScheduler: map[string]Backend{"default-scheduler": native, "kai-scheduler": kai}}
	without := &Backends{Others: others}
	for _, tc := range []struct {
		what      string
		backends  *Backends
		scheduler string
		want      Backend
	}{
		{"no name", withNative, "", native},
		{"Kubernetes' own", withNative, "default-scheduler", native},
		{"KAI", withNative, "kai-scheduler", kai},
		{"somebody's", withNative, "mine", others},
		{"no name, and the cluster knows no gangs", without, "", others},
		{"KAI, which is not there", without, "kai-scheduler", others},
	} {
		if got := tc.backends.For(tc.scheduler); got != tc.want {
			t.Errorf("%s: got %v, want %v", tc.what, got, tc.want)
		}
	}
}
