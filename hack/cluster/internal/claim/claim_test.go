package claim

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTake(t *testing.T) {
	name := fmt.Sprintf("test-%d", os.Getpid())
	claim, err := Take(name)
	if err != nil {
		t.Fatal(err)
	}
	// What nobody holds is collected, and a claim is not.
	for range 3 {
		runtime.GC()
	}
	if _, err := Take(name); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("the second claim gives %v", err)
	}
	if err := claim.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := Take(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Release(); err != nil {
		t.Fatal(err)
	}
}
