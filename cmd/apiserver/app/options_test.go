package app

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

func TestValidate(t *testing.T) {
	const (
		noEtcd        = "give --etcd-servers, or --data-dir to run an embedded etcd"
		twoEtcds      = "--data-dir is for the embedded etcd and excludes --etcd-servers"
		negativeDelay = "--default-termination-delay must not be negative"
	)
	tests := map[string]struct {
		args []string
		want []string
	}{
		"external etcd":                     {args: []string{"--etcd-servers=https://etcd:2379"}},
		"embedded etcd":                     {args: []string{"--data-dir=/data"}},
		"default termination delay":         {args: []string{"--data-dir=/data", "--default-termination-delay=4h"}},
		"no etcd and no data directory":     {want: []string{noEtcd}},
		"etcd and data directory":           {args: []string{"--etcd-servers=https://etcd:2379", "--data-dir=/data"}, want: []string{twoEtcds}},
		"negative default delay":            {args: []string{"--data-dir=/data", "--default-termination-delay=-1s"}, want: []string{negativeDelay}},
		"everything that is wrong is named": {args: []string{"--default-termination-delay=-1s"}, want: []string{noEtcd, negativeDelay}},
		"options of the library are checked": {
			args: []string{
				"--data-dir=/data", "--secure-port=-1", "--max-requests-inflight=-1", "--enable-admission-plugins=Nobody",
				"--audit-log-path=-", "--audit-log-maxage=-1",
			},
			want: []string{"--max-requests-inflight", "--secure-port", "--audit-log-maxage", "Nobody"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			options := NewOptions()
			parse(t, options, tc.args)
			var got []string
			var aggregate utilerrors.Aggregate
			if err := options.Validate(); errors.As(err, &aggregate) {
				for _, err := range aggregate.Errors() {
					got = append(got, err.Error())
				}
			} else if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.Comparer(contains)); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

// contains compares errors with parts of them: the library words its own as it likes.
func contains(a, b string) bool { return strings.Contains(a, b) || strings.Contains(b, a) }

func parse(t *testing.T, options *Options, args []string) {
	t.Helper()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	for _, set := range options.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
}

func TestFlagsReachOptions(t *testing.T) {
	options := NewOptions()
	parse(t, options, []string{"--data-dir=/data", "--default-termination-delay=4h"})
	if options.DataDir != "/data" || options.DefaultTerminationDelay != 4*time.Hour || !options.EmbedsEtcd() {
		t.Errorf("data directory %q, delay %s, embedded etcd %t", options.DataDir, options.DefaultTerminationDelay, options.EmbedsEtcd())
	}
	options = NewOptions()
	parse(t, options, []string{"--etcd-servers=https://a:2379,https://b:2379"})
	if options.EmbedsEtcd() {
		t.Error("an etcd is embedded beside the given ones")
	}
}

// Flags of the generic options that this server ignores are not offered to anybody.
func TestFlagsThatDoNothingAreHidden(t *testing.T) {
	groups := NewOptions().Flags()
	for _, name := range []string{"storage-media-type", "etcd-servers-overrides"} {
		var found bool
		for _, flags := range groups.FlagSets {
			if flag := flags.Lookup(name); flag != nil {
				found = true
				if !flag.Hidden {
					t.Errorf("--%s is shown", name)
				}
			}
		}
		if !found {
			t.Errorf("--%s is gone: it needs not be hidden any more", name)
		}
	}
}

// run executes the command and returns what it prints.
func run(args ...string) (string, error) {
	var out bytes.Buffer
	cmd := NewCommand(context.Background())
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.Execute()
	return out.String(), err
}

func TestHelpShowsFlagsThatDoSomething(t *testing.T) {
	help, err := run("--help")
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{
		"Copse flags:", "--data-dir", "--default-termination-delay", "--etcd-servers ", "--secure-port int", "(default 8443)",
		"--audit-log-path", "--shutdown-delay-duration", "--logging-format",
	} {
		if !strings.Contains(help, flag) {
			t.Errorf("%s is not shown", flag)
		}
	}
	for _, flag := range []string{"--storage-media-type", "--etcd-servers-overrides"} {
		if strings.Contains(help, flag) {
			t.Errorf("%s is shown", flag)
		}
	}
}

func TestCommandRefusesWrongFlagsBeforeItStarts(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no etcd":      {nil, "--etcd-servers"},
		"arguments":    {[]string{"--data-dir=/dev/null/data", "more"}, "unknown command"},
		"unknown flag": {[]string{"--data-directory=/data"}, "unknown flag"},
	} {
		if _, err := run(tc.args...); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, tc.want)
		}
	}
}

// Of a flag in two groups the command would take one and leave the other without effect.
func TestFlagsAreInOneGroup(t *testing.T) {
	groups := NewOptions().Flags()
	group := map[string]string{}
	for name, flags := range groups.FlagSets {
		flags.VisitAll(func(flag *pflag.Flag) {
			if other, ok := group[flag.Name]; ok {
				t.Errorf("--%s is in groups %s and %s", flag.Name, name, other)
			}
			group[flag.Name] = name
		})
	}
	if !slices.Contains(groups.Order, "copse") || group["data-dir"] != "copse" {
		t.Errorf("our own flags are in groups %v", groups.Order)
	}
}
