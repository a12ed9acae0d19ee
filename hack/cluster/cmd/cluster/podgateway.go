package main

import (
	"context"
	"net"

	"github.com/spf13/cobra"

	"github.com/copse-dev/copse/hack/cluster/internal/components"
	"github.com/copse-dev/copse/hack/cluster/internal/forward"
)

// newPodGatewayCommand is a component of clusters, not a command for people.
func newPodGatewayCommand() *cobra.Command {
	var listen, to string
	cmd := &cobra.Command{
		Use:    components.PodGateway,
		Short:  "Pass connections of pods on to kube-apiserver",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var config net.ListenConfig
			listener, err := config.Listen(cmd.Context(), "tcp", listen)
			if err != nil {
				return err
			}
			defer context.AfterFunc(cmd.Context(), func() { _ = listener.Close() })()
			return forward.Serve(cmd.Context(), listener, to)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "address to listen at")
	cmd.Flags().StringVar(&to, "to", "", "address to connect to")
	return cmd
}
