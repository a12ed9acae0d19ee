package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/copse-dev/copse/hack/cluster/internal/bootstrap"
	"github.com/copse-dev/copse/hack/cluster/internal/control"
	"github.com/copse-dev/copse/hack/cluster/internal/state"
)

const (
	downTimeout = 30 * time.Second
	// endTimeout is how long a supervisor that was asked may take.
	endTimeout = 15 * time.Second
)

func newDownCommand() *cobra.Command {
	var flags dirFlag
	var keep bool
	cmd := &cobra.Command{
		Use:   "down --dir DIR",
		Short: "Stop a cluster and remove its state folder",
		Long: `Stop a cluster, wait until all its processes are gone and remove the state
folder. A cluster that does not run is fine.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := flags.dir()
			if err != nil {
				return err
			}
			if !dir.Exists() {
				fmt.Fprintf(cmd.ErrOrStderr(), "no cluster in %s\n", dir)
				return nil
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), downTimeout)
			defer cancel()
			if err := end(ctx, dir); err != nil {
				return err
			}
			// A supervisor that was killed has left containers.
			if err := bootstrap.CleanRealNode(ctx, dir); err != nil {
				return err
			}
			if keep {
				fmt.Fprintln(cmd.ErrOrStderr(), "the cluster is stopped, its state is kept")
				return nil
			}
			if err := dir.Remove(); err != nil {
				return err
			}
			fmt.Fprintln(cmd.ErrOrStderr(), "the cluster is stopped and removed")
			return nil
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the state folder: up then goes on with the same objects")
	return cmd
}

// end ends the supervisor of a cluster, if there is one, and returns when it
// is gone. A supervisor goes last, and the kernel takes the components with it.
func end(ctx context.Context, dir state.Dir) error {
	pid, err := dir.Supervisor()
	if err != nil || pid == 0 {
		return err
	}
	patience, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	if err := control.NewClient(dir).Shutdown(patience); err != nil {
		// It may not listen yet.
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	if awaitGone(patience, dir) == nil {
		return nil
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return awaitGone(ctx, dir)
}

func awaitGone(ctx context.Context, dir state.Dir) error {
	for {
		pid, err := dir.Supervisor()
		if err != nil {
			return err
		}
		if pid == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("supervisor %d is still there", pid)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
