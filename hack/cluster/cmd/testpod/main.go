// Command testpod is what containers of tests run. It takes steps, one after the
// other, that its arguments name:
//
//	sleep=DURATION          wait, such as 500ms
//	exit=CODE               end
//	exit-once=PATH:CODE     end, and make a file; if it is there already, go on
//	when=VARIABLE:VALUE     skip the next step unless the environment variable has
//	                        this value; several in a row all have to hold
//	touch=PATH              make a file
//	remove=PATH             remove a file, which need not exist
//	await=PATH              wait until a file exists
//	print=PATH              print a file
//	env                     print the environment
//	wait-term               wait for SIGTERM, and go on
//	on-term=CODE            with what SIGTERM ends the program in all other steps
//	                        from now on; before, with 143
//	allocate=MIB            use that much memory
//	listen=PORT             answer HTTP from now on
//	get=PATH                ask kube-apiserver, as a client in a pod does, and end
//	                        with 1 if the answer is not 200
//	fail-if=PATH            end with 1 if a file exists
//	fail-unless=PATH        end with 1 if it does not
//
// After the last step it ends with 0. Without the network's or the kubelet's
// help it does nothing else, so it is also the container that keeps a pod's
// namespaces.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// terminated is the code of a program that SIGTERM has ended, as shells have it.
const terminated = 128 + int(syscall.SIGTERM)

// misused is the code of a program that does not understand its arguments.
const misused = 2

func main() {
	steps, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "testpod:", err)
		os.Exit(misused)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	code := run(ctx, steps, newMachine(os.Stdout, os.Environ(), accountFolder))
	stop()
	os.Exit(code)
}
