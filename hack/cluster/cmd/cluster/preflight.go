package main

import (
	"github.com/spf13/cobra"

	"github.com/copse-dev/copse/hack/cluster/internal/realnode"
)

func newPreflightCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "preflight",
		Short: "Tell what this machine lacks for a real node",
		Long: `Tell what this machine lacks for a real node, one thing on a line. It fails if
there is any.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return realnode.Preflight() },
	}
}
