package app

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Options are the flags of the waiter.
type Options struct {
	// Namespace and Gate name the StartGate.
	Namespace string
	Gate      string
	// PodClique and Attempt are those of the pod: its entry in the gate, and its line in the file.
	PodClique string
	Attempt   int32
	// Timeout is the barrier's timeoutAfterSeconds; 0 for none.
	Timeout time.Duration
	// File is where the kubelet mounts the second signal.
	File string
	// ServiceAccount is the folder with the token and the authority of the API server.
	ServiceAccount string
	// Version asks for nothing but the version.
	Version bool
}

const (
	defaultFile           = "/mnt/group-scheduling/started"
	defaultServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

	// notGiven is no attempt: 0 is the first one, which must not be taken for a flag that
	// was forgotten.
	notGiven = -1

	// maxTimeout is what timeoutAfterSeconds can hold. Twice of it is still a Duration.
	maxTimeout = math.MaxInt32 * time.Second
)

// ParseOptions reads the flags, and writes what is wrong with them, or the help that was
// asked for, to w. Its error is flag.ErrHelp for help.
func ParseOptions(args []string, w io.Writer) (*Options, error) {
	o := &Options{Attempt: notGiven}
	fs := flag.NewFlagSet("start-gate", flag.ContinueOnError)
	fs.SetOutput(w)
	fs.StringVar(&o.Namespace, "namespace", "", "`name` of the namespace of the StartGate")
	fs.StringVar(&o.Gate, "gate", "", "`name` of the StartGate")
	fs.StringVar(&o.PodClique, "podclique", "", "`name` of the PodClique that the pod belongs to")
	fs.Func("attempt", "attempt of the pod, a `number` from 0", func(value string) error {
		attempt, err := strconv.ParseInt(value, 10, 32)
		if err != nil || attempt < 0 {
			return errors.New("must be a whole number from 0 to 2147483647")
		}
		o.Attempt = int32(attempt)
		return nil
	})
	fs.DurationVar(&o.Timeout, "timeout", 0, "`duration` after which the gate expires; a waiter that cannot read its gate gives up after twice of it, or two minutes after it if that is later. 0 for never")
	fs.StringVar(&o.File, "file", defaultFile, "`path` of the file that tells open gates as well")
	fs.StringVar(&o.ServiceAccount, "service-account", defaultServiceAccount, "`folder` with token and ca.crt")
	fs.BoolVar(&o.Version, "version", false, "print the version and exit")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if o.Version {
		return o, nil
	}
	err := o.validate()
	if fs.NArg() > 0 {
		err = errors.Join(err, fmt.Errorf("unexpected arguments: %s", strings.Join(fs.Args(), " ")))
	}
	if err != nil {
		fmt.Fprintln(w, err)
		return nil, err
	}
	return o, nil
}

// validate returns everything that is wrong with the flags.
func (o *Options) validate() error {
	var errs []error
	for _, name := range []struct{ flag, value string }{
		{"--namespace", o.Namespace}, {"--gate", o.Gate}, {"--podclique", o.PodClique},
	} {
		// Anything else would also mean something in a path, a selector or a line of the file.
		for _, problem := range validation.IsDNS1123Label(name.value) {
			errs = append(errs, fmt.Errorf("%s %q: %s", name.flag, name.value, problem))
		}
	}
	if o.Attempt == notGiven {
		errs = append(errs, errors.New("--attempt must be given"))
	}
	if o.Timeout < 0 || o.Timeout > maxTimeout {
		errs = append(errs, fmt.Errorf("--timeout must be from 0s to %s", maxTimeout))
	}
	if o.File == "" {
		errs = append(errs, errors.New("--file must not be empty"))
	}
	if o.ServiceAccount == "" {
		errs = append(errs, errors.New("--service-account must not be empty"))
	}
	return errors.Join(errs...)
}
