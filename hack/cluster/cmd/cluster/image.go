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
	var baseName string
	cmd := &cobra.Command{
		Use:   "load PATH --dir DIR",
		Short: "Load the images of a docker-archive, an OCI archive or a folder with an OCI layout",
		Long: `Load images into the real node, for containers with imagePullPolicy: Never.

PATH is a docker-archive, an OCI archive or a folder with an OCI layout. An image
of OCI has its name in the annotation io.containerd.image.name of its entry in
index.json, or a tag alone in org.opencontainers.image.ref.name, which --base-name
completes: --base-name=docker.io/library/tool for what pods call tool:1.0.`,
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
			loaded, err := image.LoadPath(cmd.Context(), dir.Containerd(), args[0], baseName)
			fmt.Fprint(cmd.OutOrStdout(), loaded)
			return err
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&baseName, "base-name", "", "name of images that have a tag alone, with the registry")
	return cmd
}
