package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestLock(t *testing.T) {
	d := Dir(t.TempDir())
	if pid, err := d.Supervisor(); pid != 0 || err != nil {
		t.Fatalf("Supervisor() = %d, %v before there is one", pid, err)
	}
	if err := d.Lock(); err != nil {
		t.Fatal(err)
	}
	if pid, err := d.Supervisor(); pid != os.Getpid() || err != nil {
		t.Errorf("Supervisor() = %d, %v, want this process, %d", pid, err, os.Getpid())
	}
	if err := d.Lock(); !errors.Is(err, ErrRunning) {
		t.Errorf("a second lock gives %v, want %v", err, ErrRunning)
	}
}

func TestMakeRefusesAFolderOfSomebodyElse(t *testing.T) {
	d := Dir(t.TempDir())
	mine := filepath.Join(string(d), "thesis.tex")
	if err := os.WriteFile(mine, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.Make(); err == nil {
		t.Error("took the folder over")
	}
	if err := d.Remove(); err == nil {
		t.Error("removed the folder")
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error(err)
	}
}

func TestMakeAndRemove(t *testing.T) {
	d := Dir(filepath.Join(t.TempDir(), "a", "b"))
	if err := errors.Join(d.Make(), d.Make()); err != nil {
		t.Fatal(err)
	}
	if err := d.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(string(d)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
}

func TestReady(t *testing.T) {
	d := Dir(t.TempDir())
	me := os.Getpid()
	if d.Ready(me) {
		t.Error("ready before anybody said so")
	}
	if err := d.SetReady(true); err != nil {
		t.Fatal(err)
	}
	if !d.Ready(me) {
		t.Error("not ready")
	}
	if d.Ready(me + 1) {
		t.Error("what an earlier supervisor left behind counts for another one")
	}
	if err := errors.Join(d.SetReady(false), d.SetReady(false)); err != nil {
		t.Fatal(err)
	}
	if d.Ready(me) {
		t.Error("still ready")
	}
}

func TestSaveAndLoad(t *testing.T) {
	d := Dir(t.TempDir())
	if c, err := d.Load(); err != nil || c.PID != 0 {
		t.Fatalf("Load() = %v, %v without a file", c, err)
	}
	want := Cluster{PID: 7, Started: time.Now(), Components: map[string]Component{"etcd": {Port: 1}}}
	if err := d.Save(want); err != nil {
		t.Fatal(err)
	}
	got, err := d.Load()
	if err != nil {
		t.Fatal(err)
	}
	if got.PID != want.PID || !got.Started.Equal(want.Started) || got.Components["etcd"].Port != 1 {
		t.Errorf("Load() = %+v, want %+v", got, want)
	}
}
