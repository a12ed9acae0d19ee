// Command apiserver is Copse's aggregated API server.
package main

import (
	"os"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"

	"github.com/copse-dev/copse/cmd/apiserver/app"
)

func main() {
	os.Exit(cli.Run(app.NewCommand(genericapiserver.SetupSignalContext())))
}
