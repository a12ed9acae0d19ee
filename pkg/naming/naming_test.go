package naming

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestNamesAreGroves(t *testing.T) {
	tests := map[string]struct{ got, want string }{
		"replica":           {Replica("llm", 1), "llm-1"},
		"scaling group":     {ScalingGroup("llm", 1, "decode"), "llm-1-decode"},
		"standalone clique": {StandaloneClique("llm", 1, "router"), "llm-1-router"},
		"member clique":     {MemberClique("llm", 1, "decode", 2, "worker"), "llm-1-decode-2-worker"},
		"scaled gang":       {ScaledGang("llm", 1, "decode", 0), "llm-1-decode-0"},
		"hostname":          {Hostname("llm-1-router", 3), "llm-1-router-3"},
	}
	for name, tc := range tests {
		if tc.got != tc.want {
			t.Errorf("%s: got %q, want %q", name, tc.got, tc.want)
		}
	}
}

func TestPodNameDependsOnUIDAndAttempt(t *testing.T) {
	base := Pod("c", "uid", 0, 0)
	if again := Pod("c", "uid", 0, 0); again != base {
		t.Errorf("the same pod has two names, %q and %q", base, again)
	}
	for name, other := range map[string]string{
		"clique":  Pod("d", "uid", 0, 0),
		"UID":     Pod("c", "uid2", 0, 0),
		"index":   Pod("c", "uid", 1, 0),
		"attempt": Pod("c", "uid", 0, 1),
	} {
		if other == base {
			t.Errorf("pods that differ in %s share the name %q", name, base)
		}
	}
}

func TestHashKeepsPartsApart(t *testing.T) {
	if Hash("a", "bc") == Hash("ab", "c") {
		t.Error("parts run into each other")
	}
	if errs := validation.IsDNS1123Label(Hash("x")); len(errs) > 0 {
		t.Error(errs)
	}
}
