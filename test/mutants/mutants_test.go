// Package mutants shows that the fast tests mean something: it makes one deliberate
// mistake at a time in the code that decides, records and acts, and expects the tests to
// notice. The tree is not touched: the compiler reads the changed file from an overlay. It
// runs by `make mutants`; `go test ./...` skips it, because each mistake costs a build.
package mutants

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var run = flag.Bool("mutants", false, "make the mistakes and run the tests against them")

// mutant is one mistake.
type mutant struct {
	// file is relative to the repository, and holds old exactly once.
	file, old, new string
	// tests are the packages whose tests are to notice, if not those beside the code.
	tests string
}

const (
	gang  = "pkg/gang/"
	ctrl  = "pkg/controllers/"
	valid = "pkg/apis/grove/validation/"
)

func TestEveryMistakeIsNoticed(t *testing.T) {
	if !*run {
		t.Skip("run by make mutants: each mistake costs a build")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	all := mutants()
	maps.Copy(all, waiterMutants())
	maps.Copy(all, huntedMutants())
	maps.Copy(all, schedulingMutants())
	maps.Copy(all, groupingMutants())
	maps.Copy(all, updateMutants())
	maps.Copy(all, autoscalingMutants())
	maps.Copy(all, topologyMutants())
	maps.Copy(all, sharingMutants())
	noticed := 0
	for name, m := range all {
		t.Run(name, func(t *testing.T) {
			if survives(t, root, m) {
				t.Errorf("no test notices: %s", name)
				return
			}
			noticed++
		})
	}
	t.Logf("%d of %d mistakes were noticed", noticed, len(all))
}

// survives says that all tests pass in spite of a mistake. One that does not compile is a
// fault of the table.
func survives(t *testing.T, root string, m mutant) bool {
	t.Helper()
	path := filepath.Join(root, m.file)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), m.old); n != 1 {
		t.Fatalf("%s holds %d times:\n%s", m.file, n, m.old)
	}
	dir := t.TempDir()
	changed := filepath.Join(dir, filepath.Base(path))
	if err := os.WriteFile(changed, []byte(strings.Replace(string(text), m.old, m.new, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		t.Fatal(err)
	}
	overlayFile := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlayFile, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	// The tests beside the code are to notice, not some that run all of it, unless it is
	// those that are looked at.
	tests := "./" + filepath.Dir(m.file)
	if m.tests != "" {
		tests = m.tests
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-failfast", "-vet=off", "-overlay", overlayFile, tests)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "[build failed]") {
		t.Fatalf("the mistake does not compile:\n%s", out)
	}
	return err == nil
}
