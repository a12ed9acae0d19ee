package naming

import (
	"strings"
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
		"claim of all":      {SharedClaim("llm-1-decode", "gpu"), "llm-1-decode-all-gpu"},
		"claim of one":      {ReplicaClaim("llm-1-decode", 2, "gpu"), "llm-1-decode-2-gpu"},
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

// Pods refer to claims by names that are DNS labels, whatever the template's name is.
func TestClaimNamesAreLabels(t *testing.T) {
	long := strings.Repeat("a", 50)
	seen := map[string]string{}
	for what, name := range map[string]string{
		"as long as may be":     ReplicaClaim("llm-1-"+long, 2, "gpus"),
		"too long":              ReplicaClaim("llm-1-"+long, 2, "gpus2"),
		"too long, another":     ReplicaClaim("llm-1-"+long, 2, "gpus3"),
		"too long, of all":      SharedClaim("llm-1-"+long, "gpus2"),
		"cut at a dash":         SharedClaim("llm-1-"+long[:47]+"-", "gpus-2"),
		"dots":                  SharedClaim("llm", "a.b"),
		"a dash where a dot is": SharedClaim("llm", "a-b"),
		"long and dots":         SharedClaim("llm", strings.Repeat("a.", 120)+"a"),
	} {
		if errs := validation.IsDNS1123Label(name); len(errs) > 0 {
			t.Errorf("%s: %q: %v", what, name, errs)
		}
		if other, taken := seen[name]; taken {
			t.Errorf("%s and %s: both %q", what, other, name)
		}
		seen[name] = what
	}
	if got, want := ReplicaClaim("llm-1-"+long, 2, "gpus"), "llm-1-"+long+"-2-gpus"; got != want {
		t.Errorf("a name that fits is %q, want %q", got, want)
	}
	if a, b := SharedClaim("llm", "a.b"), SharedClaim("llm", "a.b"); a != b {
		t.Errorf("the same claim has two names, %q and %q", a, b)
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
