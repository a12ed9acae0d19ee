package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// step is one thing to do.
type step struct {
	text string
	do   func(context.Context, *machine) error
	// condition says that it only decides whether the next step is taken.
	condition bool
}

// parse reads all steps before the first is taken: a mistake in the last one
// must not look like a failure of the work.
func parse(args []string) ([]step, error) {
	steps := make([]step, len(args))
	for i, arg := range args {
		name, value, given := strings.Cut(arg, "=")
		do, err := parseStep(name, value, given)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", arg, err)
		}
		steps[i] = step{text: arg, do: do, condition: name == "when"}
	}
	return steps, nil
}

func parseStep(name, value string, given bool) (func(context.Context, *machine) error, error) {
	if alone := name == "env" || name == "wait-term"; alone == given {
		if alone {
			return nil, fmt.Errorf("%s has no value", name)
		}
		return nil, fmt.Errorf("not a step, or one without its value")
	}
	switch name {
	case "env":
		return printEnvironment, nil
	case "wait-term":
		return waitForTerm, nil
	case "sleep":
		d, err := time.ParseDuration(value)
		return sleep(d), err
	case "exit":
		code, err := parseCode(value)
		return func(context.Context, *machine) error { return exit(code) }, err
	case "exit-once":
		return parseExitOnce(value)
	case "when":
		return parseWhen(value)
	case "on-term":
		code, err := parseCode(value)
		return onTerm(code), err
	case "touch":
		return touch(value), nil
	case "remove":
		return func(context.Context, *machine) error { return os.RemoveAll(value) }, nil
	case "await":
		return await(value), nil
	case "print":
		return printFile(value), nil
	case "allocate":
		mib, err := strconv.Atoi(value)
		return allocate(mib), err
	case "listen":
		port, err := strconv.ParseUint(value, 10, 16)
		return listen(int(port)), err
	case "get":
		return get(value), nil
	case "fail-if":
		return failIf(value, true), nil
	case "fail-unless":
		return failIf(value, false), nil
	}
	return nil, fmt.Errorf("no such step")
}

func parseCode(text string) (int, error) {
	code, err := strconv.ParseUint(text, 10, 8)
	return int(code), err
}

func parseExitOnce(value string) (func(context.Context, *machine) error, error) {
	// Paths may have colons, codes have none.
	at := strings.LastIndex(value, ":")
	if at < 1 {
		return nil, fmt.Errorf("want PATH:CODE")
	}
	code, err := parseCode(value[at+1:])
	return exitOnce(value[:at], code), err
}

func parseWhen(value string) (func(context.Context, *machine) error, error) {
	variable, wanted, found := strings.Cut(value, ":")
	if !found || variable == "" {
		return nil, fmt.Errorf("want VARIABLE:VALUE")
	}
	return when(variable, wanted), nil
}
