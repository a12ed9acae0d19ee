package main

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/copse-dev/copse/hack/cluster/internal/control"
	"github.com/copse-dev/copse/hack/cluster/internal/state"
	"github.com/copse-dev/copse/hack/cluster/internal/supervisor"
)

func newStatusCommand() *cobra.Command {
	var flags dirFlag
	cmd := &cobra.Command{
		Use:   "status --dir DIR",
		Short: "Show the components of a cluster",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := flags.dir()
			if err != nil {
				return err
			}
			client, err := connect(dir)
			if err != nil {
				return err
			}
			status, err := client.Status(cmd.Context())
			if err != nil {
				return err
			}
			cluster, err := dir.Load()
			if err != nil {
				return err
			}
			return printStatus(cmd.OutOrStdout(), status, cluster, time.Now())
		},
	}
	flags.add(cmd)
	return cmd
}

func printStatus(out io.Writer, status control.Status, cluster state.Cluster, now time.Time) error {
	ready := "not ready"
	if status.Ready {
		ready = "ready"
	}
	fmt.Fprintf(out, "%s, supervisor %d, up %s, %s\n\n", ready, status.PID, age(cluster.Started, now), cluster.Server)
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "COMPONENT\tPORT\tPID\tUP\tRESTARTS\tHEALTH")
	for _, c := range status.Components {
		fmt.Fprintf(table, "%s\t%d\t%s\t%d\t%s\n",
			c.Name, cluster.Components[c.Name].Port, process(c, now), c.Restarts, healthOf(c))
	}
	return table.Flush()
}

// process fills two columns.
func process(c supervisor.Status, now time.Time) string {
	if c.PID == 0 {
		return "-\t-"
	}
	return strconv.Itoa(c.PID) + "\t" + age(c.Since, now)
}

func healthOf(c supervisor.Status) string {
	switch {
	case c.PID != 0:
		return c.Health
	case c.Stopped:
		return "stopped"
	case c.LastExit != "":
		return "ended (" + c.LastExit + "), starts again"
	default:
		return c.Health
	}
}

func age(since, now time.Time) string {
	return now.Sub(since).Round(time.Second).String()
}
