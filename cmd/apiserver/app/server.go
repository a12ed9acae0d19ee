// Package app is the command of the API server: its flags, and how it starts and ends.
package app

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/term"
	"k8s.io/klog/v2"

	"github.com/copse-dev/copse/pkg/apiserver/embeddedetcd"
	"github.com/copse-dev/copse/pkg/version"
)

// NewCommand returns the command. It runs until ctx ends.
func NewCommand(ctx context.Context) *cobra.Command {
	options := NewOptions()
	cmd := &cobra.Command{
		Use:   "copse-apiserver",
		Short: "Serve the grove.io and scheduler.grove.io APIs",
		Long: `copse-apiserver serves PodCliqueSet and its children behind the aggregation layer of a
Kubernetes cluster, with their defaults, their validation and the state machine of
their status, from an etcd of its own.`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		Version:      version.String(),
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return options.ServerRun.ComponentGlobalsRegistry.Set()
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			logs.InitLogs()
			if err := logsapi.ValidateAndApply(options.Logs, nil); err != nil {
				return err
			}
			cliflag.PrintFlags(cmd.Flags())
			if err := options.Validate(); err != nil {
				return err
			}
			return Run(ctx, options)
		},
	}
	groups := options.Flags()
	for _, flags := range groups.FlagSets {
		cmd.Flags().AddFlagSet(flags)
	}
	columns, _, _ := term.TerminalSize(cmd.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(cmd, groups, columns)
	return cmd
}

// Run serves until ctx ends, and then until the requests in flight have been answered.
func Run(ctx context.Context, options *Options) error {
	var endpoint string
	if options.EmbedsEtcd() {
		etcd, err := embeddedetcd.Start(ctx, options.DataDir)
		if err != nil {
			return fmt.Errorf("embedded etcd: %w", err)
		}
		defer etcd.Stop()
		endpoint = etcd.Endpoint()
		klog.InfoS("Running an embedded etcd: run one replica of this server only, and use --etcd-servers in production", "dataDir", options.DataDir)
	}
	config, err := options.Config(endpoint)
	if err != nil {
		return err
	}
	serving, end := context.WithCancelCause(ctx)
	defer end(nil)
	config.StorageReplaced = end
	server, err := config.New()
	if err != nil {
		return err
	}
	if err := server.PrepareRun().RunWithContext(serving); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(serving)
}
