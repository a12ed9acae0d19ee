package ports

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"

	"github.com/copse-dev/copse/hack/cluster/internal/claim"
)

// Ports are taken from a range below the one that Linux takes source ports
// from (32768 and up), else a connection could sit on the port of a component
// that is being restarted.
const (
	first = 15000
	last  = 30000
)

// Port is a port that is reserved for this process and its children.
type Port struct {
	Number int
	claim  claim.Claim
}

// Reserve reserves the preferred port if it is free, else another one. A
// preferred port of 0 means any.
func Reserve(preferred int) (Port, error) {
	if preferred != 0 {
		if p, err := reserve(preferred); err == nil {
			return p, nil
		}
	}
	var failure error
	for range 200 {
		p, err := reserve(first + rand.IntN(last-first))
		if err == nil {
			return p, nil
		}
		failure = err
	}
	return Port{}, fmt.Errorf("no free port from %d to %d: %w", first, last, failure)
}

// Release gives the port back.
func (p Port) Release() error {
	return p.claim.Release()
}

// reserve marks a port as ours among all clusters of this machine, then makes
// sure that nobody listens on it.
func reserve(number int) (Port, error) {
	mark, err := claim.Take(fmt.Sprintf("port-%d", number))
	if err != nil {
		return Port{}, err
	}
	probe, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", number))
	if err == nil {
		err = probe.Close()
	}
	if err != nil {
		return Port{}, errors.Join(err, mark.Release())
	}
	return Port{Number: number, claim: mark}, nil
}
