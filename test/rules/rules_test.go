package rules

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var run = flag.Bool("rules", false, "switch the rules off and run the tests without each")

const variable = "RULE_SWITCHED_OFF"

// packages hold the rules.
func packages() []string {
	return []string{"pkg/apis/grove/validation", "pkg/apis/scheduler/validation", "pkg/apis/internal/fields", "pkg/apis/internal/conditions"}
}

func TestEveryRuleIsHeldByATest(t *testing.T) {
	if !*run {
		t.Skip("run by make rules: each rule costs a run of the tests")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	held, total := 0, 0
	for _, pkg := range packages() {
		t.Run(pkg, func(t *testing.T) {
			binary, rules := build(t, root, pkg)
			if out, err := test(t, root, pkg, binary, 0); err != nil {
				t.Fatalf("the tests fail with every rule on:\n%s", out)
			}
			total += len(rules)
			for _, rule := range rules {
				if _, err := test(t, root, pkg, binary, rule.number); err == nil {
					t.Errorf("no test fails without the rule of %s:\n%s", rule.place, rule.text)
					continue
				}
				held++
			}
		})
	}
	t.Logf("%d of %d rules are held by a test", held, total)
}

// build compiles the tests of a package with a switch for each rule.
func build(t *testing.T, root, pkg string) (string, []rule) {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	var rules []rule
	sources, err := filepath.Glob(filepath.Join(root, pkg, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range sources {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text, found, err := withSwitches(filepath.Base(path), source, len(rules)+1)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, found...)
		replace[path] = write(t, dir, filepath.Base(path), text)
	}
	replace[filepath.Join(root, pkg, "switches.go")] = write(t, dir, "switches.go", []byte(switchFile(filepath.Base(pkg), variable)))
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "tests")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-o", binary, "-overlay", write(t, dir, "overlay.json", overlay), "./"+pkg)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the switches do not compile:\n%s", out)
	}
	return binary, rules
}

// test runs the tests without one rule; without none for 0.
func test(t *testing.T, root, pkg, binary string, number int) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, "-test.failfast")
	cmd.Dir = filepath.Join(root, pkg)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", variable, number))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func write(t *testing.T, dir, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
