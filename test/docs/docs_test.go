// Package docs holds what documents say of the repository against the repository: that a test
// they name exists, and that a file they link to does.
package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testName = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*)`")
	function = regexp.MustCompile(`(?m)^func (Test[A-Z][A-Za-z0-9]*)\(`)
	link     = regexp.MustCompile(`\]\(([^)#:\s]+)(#[^)]*)?\)`)
)

const root = "../.."

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// documents are the README and all below docs.
func documents(t *testing.T) []string {
	t.Helper()
	out := []string{filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(path, ".md") {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The table of parity would prove nothing with tests that are not there.
func TestEveryTestThatADocumentNamesExists(t *testing.T) {
	exists := map[string]bool{}
	for _, below := range []string{"test", "pkg", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, below), func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			for _, match := range function.FindAllStringSubmatch(read(t, path), -1) {
				exists[match[1]] = true
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	named := 0
	for _, document := range documents(t) {
		for _, match := range testName.FindAllStringSubmatch(read(t, document), -1) {
			if named++; !exists[match[1]] {
				t.Errorf("%s names %s, which does not exist", document, match[1])
			}
		}
	}
	if named == 0 {
		t.Error("no document names a test: they are not read")
	}
}

func TestEveryFileThatADocumentLinksToExists(t *testing.T) {
	links := 0
	for _, document := range documents(t) {
		for _, match := range link.FindAllStringSubmatch(read(t, document), -1) {
			links++
			if _, err := os.Stat(filepath.Join(filepath.Dir(document), match[1])); err != nil {
				t.Errorf("%s links to %s: %v", document, match[1], err)
			}
		}
	}
	if links == 0 {
		t.Error("no document links to a file: they are not read")
	}
}
