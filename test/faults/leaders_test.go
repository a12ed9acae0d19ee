package faults

import (
	"fmt"
	"testing"
)

// Two controller managers that both believe to lead do no harm that is not made good.
func TestGangsEndRightThoughTwoControllerManagersWorkAtOnce(t *testing.T) {
	runs := 1
	if *deep {
		runs = 15
	}
	for i := range runs {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			gateway := newGateway(t)
			startManager(t, gateway)
			startManager(t, gateway)
			g := applyGangs(t, quiet(i == 0))
			g.run(g.strike)
		})
	}
}
