package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// machine is what the steps work with.
type machine struct {
	out     io.Writer
	environ []string
	// account is the folder with the credentials of the pod.
	account string
	// onTerm is the code that SIGTERM ends the program with.
	onTerm int
	// held is what allocate holds.
	held [][]byte
	// terminated says that SIGTERM was waited for.
	terminated bool
}

func newMachine(out io.Writer, environ []string, account string) *machine {
	return &machine{out: out, environ: environ, account: account, onTerm: terminated}
}

// errSkip is what a condition returns that does not hold.
var errSkip = errors.New("skip the next step")

// exit is the error by which a step ends the program.
type exit int

func (e exit) Error() string { return "exit with " + strconv.Itoa(int(e)) }

// run takes the steps and returns the code of the program.
func run(ctx context.Context, steps []step, m *machine) int {
	skip := false
	for _, s := range steps {
		if skip {
			skip = s.condition
			continue
		}
		err := s.do(ctx, m)
		var code exit
		switch {
		case errors.Is(err, errSkip):
			skip = true
			continue
		case errors.As(err, &code):
			return int(code)
		case err != nil && ctx.Err() != nil:
			return m.onTerm
		case err != nil:
			fmt.Fprintf(m.out, "%s: %v\n", s.text, err)
			return 1
		}
		if m.terminated {
			// The rest is what to do then, and nothing disturbs it.
			ctx = context.WithoutCancel(ctx)
		}
	}
	return 0
}

func waitForTerm(ctx context.Context, m *machine) error {
	<-ctx.Done()
	m.terminated = true
	return nil
}

func sleep(d time.Duration) func(context.Context, *machine) error {
	return func(ctx context.Context, _ *machine) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return nil
		}
	}
}

func onTerm(code int) func(context.Context, *machine) error {
	return func(_ context.Context, m *machine) error {
		m.onTerm = code
		return nil
	}
}

func exitOnce(path string, code int) func(context.Context, *machine) error {
	return func(ctx context.Context, m *machine) error {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		return errors.Join(touch(path)(ctx, m), exit(code))
	}
}

func when(variable, wanted string) func(context.Context, *machine) error {
	return func(_ context.Context, m *machine) error {
		value, err := m.lookUp(variable)
		if err == nil && value != wanted {
			return errSkip
		}
		return err
	}
}

func (m *machine) lookUp(variable string) (string, error) {
	for _, entry := range m.environ {
		if value, found := strings.CutPrefix(entry, variable+"="); found {
			return value, nil
		}
	}
	return "", fmt.Errorf("%s is not in the environment", variable)
}

func printEnvironment(_ context.Context, m *machine) error {
	_, err := fmt.Fprintln(m.out, strings.Join(slices.Sorted(slices.Values(m.environ)), "\n"))
	return err
}

func printFile(path string) func(context.Context, *machine) error {
	return func(_ context.Context, m *machine) error {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		_, err = m.out.Write(text)
		return err
	}
}

func touch(path string) func(context.Context, *machine) error {
	return func(context.Context, *machine) error {
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		return file.Close()
	}
}

// await looks often: a mounted file appears by ways that send no event.
func await(path string) func(context.Context, *machine) error {
	return func(ctx context.Context, m *machine) error {
		for {
			if _, err := os.Stat(path); err == nil {
				return nil
			}
			if err := sleep(20*time.Millisecond)(ctx, m); err != nil {
				return err
			}
		}
	}
}

// failIf fails when a file is there, or is not.
func failIf(path string, there bool) func(context.Context, *machine) error {
	return func(context.Context, *machine) error {
		if _, err := os.Stat(path); (err == nil) == there {
			return exit(1)
		}
		return nil
	}
}

// allocate writes to all pages: those that are not written to are not there.
func allocate(mib int) func(context.Context, *machine) error {
	return func(_ context.Context, m *machine) error {
		for range mib {
			block := make([]byte, 1<<20)
			for i := 0; i < len(block); i += 1 << 10 {
				block[i] = 1
			}
			m.held = append(m.held, block)
		}
		return nil
	}
}

func listen(port int) func(context.Context, *machine) error {
	return func(ctx context.Context, _ *machine) error {
		var config net.ListenConfig
		listener, err := config.Listen(ctx, "tcp", net.JoinHostPort("", strconv.Itoa(port)))
		if err != nil {
			return err
		}
		// It ends with the program.
		go func() { _ = http.Serve(listener, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})) }()
		return nil
	}
}
