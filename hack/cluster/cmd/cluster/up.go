package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/copse-dev/copse/hack/cluster/internal/control"
	"github.com/copse-dev/copse/hack/cluster/internal/state"
)

// upTimeout is longer than the supervisor's own limit, so that its report of a
// failure is seen.
const upTimeout = 120 * time.Second

func newUpCommand() *cobra.Command {
	var flags clusterFlags
	cmd := &cobra.Command{
		Use:   "up --dir DIR",
		Short: "Start a cluster in the background and wait until it is ready",
		Long: `Start a cluster in the background and wait until it is ready, 120 s at most.

The last line of output sets KUBECONFIG:  eval "$(cluster up --dir DIR | tail -n 1)"
A cluster that runs already is left as it is.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// Mistakes are found here, not in a log.
			options, err := flags.options()
			if err != nil {
				return err
			}
			if err := options.Validate(); err != nil {
				return err
			}
			if err := up(cmd.Context(), options.Dir, changed(cmd.Flags()), cmd.ErrOrStderr()); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "export KUBECONFIG=%s\n", options.Dir.Kubeconfig())
			return nil
		},
	}
	flags.addTo(cmd)
	return cmd
}

// up starts a supervisor with the arguments unless there is one, and returns
// when its cluster is ready. It copies what the supervisor reports.
func up(ctx context.Context, dir state.Dir, args []string, progress io.Writer) error {
	pid, err := dir.Supervisor()
	if err != nil {
		return err
	}
	if pid != 0 && dir.Ready(pid) {
		fmt.Fprintf(progress, "the cluster runs already, with supervisor %d\n", pid)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, upTimeout)
	defer cancel()
	if pid != 0 {
		fmt.Fprintf(progress, "the cluster is being started, by supervisor %d\n", pid)
		return awaitReady(ctx, dir, pid, nil, func() {})
	}

	s, err := startSupervisor(dir, args)
	if err != nil {
		return err
	}
	defer s.log.Close()
	follow := func() { copyProgress(progress, s.log) }
	err = awaitReady(ctx, dir, s.pid, s.ended, follow)
	if err == nil {
		return nil
	}
	if other, _ := dir.Supervisor(); other != 0 && other != s.pid {
		// Somebody else was faster to start one.
		return awaitReady(ctx, dir, other, nil, func() {})
	}
	if ctx.Err() != nil {
		// Late or interrupted: half a cluster is of no use.
		follow()
		stop, cancel := context.WithTimeout(context.Background(), downTimeout)
		defer cancel()
		err = errors.Join(err, end(stop, dir))
	}
	return err
}

// startedSupervisor is a supervisor that this process has started.
type startedSupervisor struct {
	pid   int
	ended <-chan error
	log   io.ReadCloser // what it reports from now on
}

// copyProgress copies what has been reported meanwhile. To see nothing of it
// is no reason to give up.
func copyProgress(out io.Writer, log io.Reader) {
	_, _ = io.Copy(out, log)
}

// startSupervisor starts a supervisor that outlives this process.
func startSupervisor(dir state.Dir, args []string) (*startedSupervisor, error) {
	if err := dir.Make(); err != nil {
		return nil, err
	}
	path := dir.Log("supervisor")
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if _, err := in.Seek(0, io.SeekEnd); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, append([]string{"run"}, args...)...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return &startedSupervisor{pid: cmd.Process.Pid, ended: ended, log: in}, nil
}

// awaitReady waits until the supervisor says that the cluster is ready. ended
// receives when the supervisor ends; without it the supervisor is asked for.
// follow is called now and then.
func awaitReady(ctx context.Context, dir state.Dir, pid int, ended <-chan error, follow func()) error {
	for {
		follow()
		if dir.Ready(pid) {
			follow()
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready within %s, see %s%s", upTimeout, dir.Log("supervisor"), unhealthy(dir))
		case err := <-ended:
			follow()
			return errors.Join(fmt.Errorf("the supervisor ended, its log is %s", dir.Log("supervisor")), err)
		case <-time.After(50 * time.Millisecond):
		}
		if ended == nil {
			if now, err := dir.Supervisor(); err != nil || now != pid {
				return errors.Join(fmt.Errorf("supervisor %d ended", pid), err)
			}
		}
	}
}

// unhealthy lists the components that are not well, one on a line.
func unhealthy(dir state.Dir) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	status, err := control.NewClient(dir).Status(ctx)
	if err != nil {
		return "\n" + err.Error()
	}
	list := ""
	for _, c := range status.Components {
		if c.Health != "ok" {
			list += fmt.Sprintf("\n%s: %s", c.Name, c.Health)
		}
	}
	return list
}
