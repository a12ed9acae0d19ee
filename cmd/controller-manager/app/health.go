package app

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/klog/v2"
)

// serveHealth says at /healthz that a program is alive that has no manager yet, and is ready
// for nothing: a kubelet would kill one that waits for its cluster. stop leaves the address to
// the manager.
func serveHealth(ctx context.Context, address string) (stop func(), err error) {
	if address == "" || address == noAddress {
		return func() {}, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for health probes: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// It ends when it is closed.
		klog.V(2).InfoS("Health is told by the manager from now on", "why", server.Serve(listener))
	}()
	return func() {
		_ = server.Close()
		<-ended
		// A server that is closed before it serves does not know its listener.
		_ = listener.Close()
	}, nil
}
