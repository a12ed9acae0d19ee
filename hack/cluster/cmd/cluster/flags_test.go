package main

import (
	"reflect"
	"slices"
	"testing"

	"github.com/spf13/cobra"
)

func TestOptions(t *testing.T) {
	cmd := &cobra.Command{}
	var f clusterFlags
	f.addTo(cmd)
	args := []string{
		"--dir=d", "--bin-dir=/opt/bin", "--nodes=2", "--node-resources=cpu=1",
		"--copse-apiserver-args=--a=1,2", "--copse-apiserver-args=--b",
		"--component-args=kube-scheduler=--v=4", "--component-args=kube-scheduler=--profiling=false",
	}
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	o, err := f.options()
	if err != nil {
		t.Fatal(err)
	}
	if o.Overlay != "/opt/artifacts/overlays/local" || o.Nodes != 2 || !o.KWOK || o.Copse {
		t.Errorf("options are %+v", o)
	}
	want := map[string][]string{
		"copse-apiserver": {"--a=1,2", "--b"},
		"kube-scheduler":  {"--v=4", "--profiling=false"},
	}
	if !reflect.DeepEqual(o.ExtraArgs, want) {
		t.Errorf("extra arguments are %q, want %q", o.ExtraArgs, want)
	}

	// The same flags reach another command.
	again := changed(cmd.Flags(), "nodes")
	slices.Sort(again)
	expected := slices.DeleteFunc(slices.Sorted(slices.Values(args)), func(a string) bool { return a == "--nodes=2" })
	if !slices.Equal(again, expected) {
		t.Errorf("passed on: %q, want %q", again, expected)
	}
}
