// Command controller-manager runs Copse's controllers.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/copse-dev/copse/cmd/controller-manager/app"
)

func main() {
	os.Exit(cli.Run(app.NewCommand(ctrl.SetupSignalHandler())))
}
