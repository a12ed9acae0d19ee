package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/copse-dev/copse/hack/cluster/internal/control"
	"github.com/copse-dev/copse/hack/cluster/internal/state"
)

func newStopCommand() *cobra.Command {
	var grace time.Duration
	cmd := newComponentCommand("stop", "Stop a component, which stays down until it is started",
		func(ctx context.Context, c *control.Client, name string) error {
			return c.Stop(ctx, name, grace)
		})
	cmd.Flags().DurationVar(&grace, "grace", 30*time.Second, "time between SIGTERM and SIGKILL")
	return cmd
}

func newStartCommand() *cobra.Command {
	var wait bool
	cmd := newComponentCommand("start", "Start a stopped component and wait until it is healthy",
		func(ctx context.Context, c *control.Client, name string) error {
			return c.Start(ctx, name, wait)
		})
	cmd.Flags().BoolVar(&wait, "wait", true, "wait until it is healthy")
	return cmd
}

func newKillCommand() *cobra.Command {
	return newComponentCommand("kill", "Kill a component with SIGKILL; it is started again",
		func(ctx context.Context, c *control.Client, name string) error {
			return c.Kill(ctx, name)
		})
}

func newComponentCommand(verb, short string, do func(context.Context, *control.Client, string) error) *cobra.Command {
	var flags dirFlag
	cmd := &cobra.Command{
		Use:   verb + " COMPONENT --dir DIR",
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := flags.dir()
			if err != nil {
				return err
			}
			client, err := connect(dir)
			if err != nil {
				return err
			}
			return do(cmd.Context(), client, args[0])
		},
	}
	flags.add(cmd)
	return cmd
}

// connect returns a client of a cluster that runs.
func connect(dir state.Dir) (*control.Client, error) {
	pid, err := dir.Supervisor()
	if err != nil {
		return nil, err
	}
	if pid == 0 {
		return nil, fmt.Errorf("no cluster runs in %s", dir)
	}
	return control.NewClient(dir), nil
}
