package app

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/copse-dev/copse/pkg/version"
)

// terminationLog is where the kubelet takes from what `kubectl describe pod` says of a
// container that has failed.
const terminationLog = "/dev/termination-log"

// Main runs the waiter until its gate opens or expires, or until ctx ends, and returns the
// exit code: 0 for open, 1 for failed, 2 for wrong flags, 143 when ctx ends.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	options, err := ParseOptions(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitOpen
	}
	if err != nil {
		return exitUsage
	}
	if options.Version {
		fmt.Fprintln(stdout, "start-gate version", version.String())
		return exitOpen
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	w := newWaiter(options, log)
	code, reason := w.wait(ctx)
	if code != exitOpen {
		log.Error(reason)
		tellKubelet(terminationLog, reason)
	}
	return code
}

// newWaiter returns a waiter that asks the cluster it runs in.
func newWaiter(o *Options, log *slog.Logger) *waiter {
	account := &serviceAccount{folder: o.ServiceAccount, getenv: os.Getenv}
	gate := &follower{
		namespace: o.Namespace,
		gate:      o.Gate,
		podClique: o.PodClique,
		userAgent: "start-gate/" + version.String(),
		connect:   account.connect,
		backoff:   newBackoff,
	}
	return &waiter{
		options: o,
		pass:    pass{podClique: o.PodClique, attempt: o.Attempt, timeout: o.Timeout},
		follow:  gate.follow,
		log:     log,
	}
}

// tellKubelet leaves the reason of a failure where there is a file for it. Outside of a
// container there is none, and nobody to tell.
func tellKubelet(path, reason string) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return
	}
	_, _ = file.WriteString(reason)
	_ = file.Close()
}
