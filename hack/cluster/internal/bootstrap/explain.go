package bootstrap

import (
	"bytes"
	"errors"
	"fmt"
	"os"
)

// tailSize is how much of a log is shown, in bytes.
const tailSize = 2048

// explain adds the end of the failed component's log to an error.
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
	return fmt.Errorf("%w\nThe end of %s:\n%s", err, path, tail(log, tailSize))
}

// tail returns the last whole lines of a text.
func tail(text []byte, size int) []byte {
	text = bytes.TrimRight(text, "\n")
	if len(text) <= size {
		return text
	}
	text = text[len(text)-size:]
	if _, rest, found := bytes.Cut(text, []byte("\n")); found {
		return rest
	}
	return text
}
