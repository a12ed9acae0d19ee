package app

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

var valid = []string{"--namespace=team", "--gate=job-0", "--podclique=job-0-worker", "--attempt=2"}

func TestFlags(t *testing.T) {
	got, err := ParseOptions(append(valid, "--timeout=5m", "--file=/f", "--service-account=/s"), nil)
	want := &Options{Namespace: "team", Gate: "job-0", PodClique: "job-0-worker", Attempt: 2, Timeout: 5 * time.Minute, File: "/f", ServiceAccount: "/s"}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("options %+v, error %v", got, err)
	}
	got, err = ParseOptions(append(valid, "--attempt=0"), nil)
	want = &Options{Namespace: "team", Gate: "job-0", PodClique: "job-0-worker", File: "/mnt/group-scheduling/started", ServiceAccount: "/var/run/secrets/kubernetes.io/serviceaccount"}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("options %+v, error %v", got, err)
	}
}

func TestWrongFlagsAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"nothing":              {nil, "--attempt must be given"},
		"no namespace":         {append(valid, "--namespace="), `--namespace "": `},
		"no gate":              {append(valid, "--gate="), `--gate "": `},
		"no podclique":         {append(valid, "--podclique="), `--podclique "": `},
		"path in a name":       {append(valid, "--gate=../job"), `--gate "../job": a lowercase RFC 1123 label must`},
		"selector in a name":   {append(valid, "--gate=job,x"), `--gate "job,x": `},
		"two words":            {append(valid, "--podclique=a 1"), `--podclique "a 1": `},
		"no attempt":           {valid[:3], "--attempt must be given"},
		"negative attempt":     {append(valid, "--attempt=-1"), "must be a whole number from 0 to 2147483647"},
		"attempt too large":    {append(valid, "--attempt=2147483648"), "must be a whole number from 0 to 2147483647"},
		"attempt in words":     {append(valid, "--attempt=two"), "must be a whole number from 0 to 2147483647"},
		"negative timeout":     {append(valid, "--timeout=-1s"), "--timeout must be from 0s to 596523h14m7s"},
		"timeout too large":    {append(valid, "--timeout=2147483648s"), "--timeout must be from 0s to 596523h14m7s"},
		"timeout without unit": {append(valid, "--timeout=300"), `invalid value "300" for flag -timeout`},
		"no file":              {append(valid, "--file="), "--file must not be empty"},
		"no service account":   {append(valid, "--service-account="), "--service-account must not be empty"},
		"unknown flag":         {append(valid, "--gates=x"), "flag provided but not defined: -gates"},
		"argument":             {append(valid, "job-1"), "unexpected arguments: job-1"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if code := Main(t.Context(), test.args, &stdout, &stderr); code != exitUsage {
				t.Errorf("exit code %d", code)
			}
			if !strings.Contains(stderr.String(), test.want) || stdout.Len() > 0 {
				t.Errorf("it says %q %q, want %q", stdout.String(), stderr.String(), test.want)
			}
		})
	}
}

func TestVersionAndHelp(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := Main(t.Context(), []string{"--version"}, &stdout, &stderr); code != 0 || !strings.HasPrefix(stdout.String(), "start-gate version v") || stderr.Len() > 0 {
		t.Errorf("exit code %d: %q %q", code, stdout.String(), stderr.String())
	}
	if code := Main(t.Context(), []string{"--help"}, &stdout, &stderr); code != 0 || !strings.Contains(stderr.String(), "-podclique") {
		t.Errorf("exit code %d: %q", code, stderr.String())
	}
}

// The image is pulled to every node of a gang before anything starts there.
func TestTheProgramIsSmall(t *testing.T) {
	const most = 8_000_000
	binary := filepath.Join(t.TempDir(), "start-gate")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary, "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	info, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", info.Size())
	if info.Size() > most {
		t.Errorf("it has %d bytes, more than %d: see what it imports", info.Size(), most)
	}
}

func TestTellKubelet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "termination-log")
	tellKubelet(path, "reason")
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it made the file: %v", err)
	}
	if err := os.WriteFile(path, []byte("something longer"), 0o644); err != nil {
		t.Fatal(err)
	}
	tellKubelet(path, "reason")
	if got, err := os.ReadFile(path); err != nil || string(got) != "reason" {
		t.Errorf("%q, error %v", got, err)
	}
	tellKubelet(filepath.Join(path, "below"), "reason") // nobody to tell
}
