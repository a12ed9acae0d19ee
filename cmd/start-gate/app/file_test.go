package app

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestListed(t *testing.T) {
	for name, test := range map[string]struct {
		content string
		want    bool
	}{
		"alone":                       {"job-0-worker 2\n", true},
		"without a newline":           {"job-0-worker 2", true},
		"among others":                {"job-0-ps 2\njob-0-worker 2\njob-0-zz 1\n", true},
		"last of many":                {strings.Repeat("job-0-other 2\n", 5000) + "job-0-worker 2\n", true},
		"with carriage return":        {"job-0-worker 2\r\n", true},
		"empty":                       {"", false},
		"blank lines":                 {"\n\n\n", false},
		"earlier attempt":             {"job-0-worker 1\n", false},
		"later attempt":               {"job-0-worker 3\n", false},
		"attempt that begins so":      {"job-0-worker 20\n", false},
		"clique that ends so":         {"a-job-0-worker 2\n", false},
		"clique that begins so":       {"job-0-worker-a 2\n", false},
		"clique alone":                {"job-0-worker\n", false},
		"attempt alone":               {"2\n", false},
		"another number's spelling":   {"job-0-worker 02\n", false},
		"more on the line":            {"job-0-worker 2 no\n", false},
		"two spaces":                  {"job-0-worker  2\n", false},
		"other case":                  {"JOB-0-WORKER 2\n", false},
		"name and number on two":      {"job-0-worker\n2\n", false},
		"garbage":                     {"\x00\xff\xfe{}\n", false},
		"long line before":            {strings.Repeat("x", 200_000) + "\njob-0-worker 2\n", true},
		"end of a long line":          {strings.Repeat("x", 200_000) + "job-0-worker 2\n", false},
		"both attempts, own among it": {"job-0-worker 1\njob-0-worker 2\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := listed([]byte(test.content), pass{podClique: "job-0-worker", attempt: 2}); got != test.want {
				t.Errorf("listed %t", got)
			}
		})
	}
}

// A pass is found exactly when one of the lines is it.
func FuzzListed(f *testing.F) {
	f.Add([]byte("w 1\n"), int32(1))
	f.Add([]byte("w 1\r\nv 2\n\n"), int32(2))
	f.Add([]byte("w  1"), int32(1))
	f.Fuzz(func(t *testing.T, content []byte, attempt int32) {
		p := pass{podClique: "w", attempt: attempt}
		found := listed(content, p)
		if found && !bytes.Contains(content, []byte("w ")) {
			t.Fatal("found what is not there")
		}
		if len(content) > 0 && !bytes.HasSuffix(content, []byte("\n")) {
			content = append(content, '\n')
		}
		if listed(content, p) != found {
			t.Fatal("the last newline makes a difference")
		}
		if !found && listed(append(content, "x"...), p) {
			t.Fatal("found by a line of somebody else")
		}
	})
}

// mount is a volume as the kubelet writes it: the files are links through ..data, which is
// swapped as a whole.
func mount(t *testing.T, dir, version, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, version), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, version, "started"), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(version, filepath.Join(dir, "..data_tmp")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join("..data", "started"), filepath.Join(dir, "started")); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
}

func TestReadFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "group-scheduling")
	path := filepath.Join(dir, "started")
	p := pass{podClique: "w", attempt: 1}
	check := func(want bool) {
		t.Helper()
		if got, err := readFile(path, p); err != nil || got != want {
			t.Fatalf("listed %t, error %v, want %t", got, err, want)
		}
	}
	check(false) // no folder
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	check(false) // no file
	mount(t, dir, "..v1", "w 0\n")
	check(false)
	mount(t, dir, "..v2", "w 1\n")
	check(true)

	for name, make := range map[string]func(path string) error{
		"folder in place of the file": func(path string) error { return os.Mkdir(path, 0o755) },
		"larger than any ConfigMap":   func(path string) error { return os.WriteFile(path, make([]byte, maxFile+1), 0o644) },
	} {
		path := filepath.Join(t.TempDir(), "started")
		if err := make(path); err != nil {
			t.Fatal(err)
		}
		if got, err := readFile(path, p); err == nil || got {
			t.Errorf("%s: listed %t, error %v", name, got, err)
		}
	}
}
