// Command cluster runs Kubernetes on this machine, as plain processes: etcd,
// the control plane and KWOK's nodes, and on request Copse. All state is in
// one folder; any number of clusters run side by side.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "cluster",
		Short:         "Run Kubernetes on this machine, for tests",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.AddCommand(newRunCommand(), newUpCommand(), newDownCommand(), newStatusCommand(),
		newStopCommand(), newStartCommand(), newKillCommand(),
		newImageCommand(), newPreflightCommand(), newPodGatewayCommand())
	return cmd
}
