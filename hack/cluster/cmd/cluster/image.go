package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/copse-dev/copse/hack/cluster/internal/image"
)

func newImageCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "image",
		Short: "Bring images to the real node",
	}
	cmd.AddCommand(newImageLoadCommand())
	return cmd
}

func newImageLoadCommand() *cobra.Command {
	var flags dirFlag
	cmd := &cobra.Command{
		Use:   "load PATH --dir DIR",
		Short: "Load the images of a docker-archive, an OCI archive or a folder with an OCI layout",
		Long: `Load images into the real node, for containers with imagePullPolicy: Never.

PATH is a docker-archive, an OCI archive or a folder with an OCI layout. An image
of OCI has the name in the annotation io.containerd.image.name of its entry in
index.json.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := flags.dir()
			if err != nil {
				return err
			}
			if _, err := connect(dir); err != nil {
				return err
			}
			cluster, err := dir.Load()
			if err != nil {
				return err
			}
			if !cluster.RealNode.Exists() {
				return fmt.Errorf("the cluster in %s has no real node", dir)
			}
			loaded, err := image.LoadPath(cmd.Context(), dir.Containerd(), args[0])
			fmt.Fprint(cmd.OutOrStdout(), loaded)
			return err
		},
	}
	flags.add(cmd)
	return cmd
}
