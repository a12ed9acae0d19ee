// Command start-gate is the waiter: the init container that holds back the containers of
// a pod until the gate of its PodClique is open.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/copse-dev/copse/cmd/start-gate/app"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	code := app.Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
