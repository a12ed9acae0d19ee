package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/copse-dev/copse/hack/cluster/internal/bootstrap"
	"github.com/copse-dev/copse/hack/cluster/internal/realnode"
)

func newRunCommand() *cobra.Command {
	var flags clusterFlags
	var untilStdinCloses, isolated bool
	cmd := &cobra.Command{
		Use:   "run --dir DIR",
		Short: "Run a cluster in the foreground until SIGTERM or SIGINT",
		Long: `Run a cluster in the foreground until SIGTERM or SIGINT.

The file DIR/ready is there while the cluster can be used; DIR/kubeconfig is the
administrator's and DIR/cluster.json tells where everything is. A component that
ends is started again.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options, err := flags.options()
			if err != nil {
				return err
			}
			if options.RealNode && !isolated {
				// Mistakes are found before anything is done.
				if err := options.Validate(); err != nil {
					return err
				}
				return realnode.Isolate(append([]string{"run", "--isolated"}, changed(cmd.Flags())...))
			}
			ctx := cmd.Context()
			if untilStdinCloses {
				ctx = untilClosed(ctx, cmd.InOrStdin())
			}
			return bootstrap.Run(ctx, options, reporter(cmd.ErrOrStderr()))
		},
	}
	flags.addTo(cmd)
	cmd.Flags().BoolVar(&untilStdinCloses, "until-stdin-closes", false, "stop also when standard input ends, as it does when the calling program dies")
	cmd.Flags().BoolVar(&isolated, "isolated", false, "this process has a mount namespace of its own")
	// It can only fail for a flag that does not exist.
	_ = cmd.Flags().MarkHidden("isolated")
	return cmd
}

// untilClosed returns a context that ends when nothing is left to read.
func untilClosed(ctx context.Context, in io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		// An input that cannot be read has ended as well.
		_, _ = io.Copy(io.Discard, in)
	}()
	return ctx
}

// reporter returns a function that writes a line of progress, with the time
// since the start.
func reporter(out io.Writer) func(format string, args ...any) {
	began := time.Now()
	return func(format string, args ...any) {
		fmt.Fprintf(out, "%6.1fs  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
}
