package bootstrap

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/copse-dev/copse/hack/cluster/internal/supervisor"
)

// shown is how many lines of a log are shown from its beginning and its end: a
// crash names its cause first, a program that gives up names it last.
const shown = 12

// explain adds what the failed component has written to an error.
func (c *cluster) explain(err error) error {
	var failed *componentError
	if !errors.As(err, &failed) {
		return err
	}
	path := c.options.Dir.Log(failed.name)
	log, readErr := os.ReadFile(path)
	if readErr != nil {
		return err
	}
	return fmt.Errorf("%w\nFrom %s:\n%s", err, path, excerpt(lastWords(string(log)), shown))
}

// lastWords returns the output of the last process in the log that wrote
// something.
func lastWords(log string) string {
	processes := strings.Split("\n"+log, "\n"+supervisor.LogMark)
	for i := len(processes) - 1; i > 0; i-- {
		_, output, _ := strings.Cut(processes[i], "\n")
		if output = strings.TrimSpace(output); output != "" {
			return output
		}
	}
	return strings.TrimSpace(log)
}

// excerpt shortens a text in the middle to twice the number of lines.
func excerpt(text string, lines int) string {
	all := strings.Split(text, "\n")
	if len(all) <= 2*lines {
		return text
	}
	left := len(all) - 2*lines
	return strings.Join(all[:lines], "\n") + fmt.Sprintf("\n[... %d lines ...]\n", left) +
		strings.Join(all[len(all)-lines:], "\n")
}
