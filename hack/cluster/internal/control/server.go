package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/copse-dev/copse/hack/cluster/internal/state"
	"github.com/copse-dev/copse/hack/cluster/internal/supervisor"
)

// startTimeout is how long the start of a component may take.
const startTimeout = time.Minute

// Status is the answer to /status.
type Status struct {
	// PID is the supervisor.
	PID        int                 `json:"pid"`
	Ready      bool                `json:"ready"`
	Components []supervisor.Status `json:"components"`
}

// Server answers commands.
type Server struct {
	dir        state.Dir
	supervisor *supervisor.Supervisor
	shutdown   func()
	http       http.Server
	ended      chan error
}

// Serve answers commands for the supervisor in the background. shutdown is
// what /shutdown calls.
func Serve(dir state.Dir, s *supervisor.Supervisor, shutdown func()) (*Server, error) {
	l, err := listen(dir.ControlSocket())
	if err != nil {
		return nil, err
	}
	srv := &Server{dir: dir, supervisor: s, shutdown: shutdown, ended: make(chan error, 1)}
	srv.http.Handler = srv.handler()
	go func() { srv.ended <- srv.http.Serve(l) }()
	return srv, nil
}

// Close stops answering and removes the socket. What is being answered has a
// moment to end: the command that closes the server waits for its answer.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		// Whoever waits for something long, such as a stop, waits in vain.
		if err := s.http.Close(); err != nil {
			return err
		}
	}
	if err := <-s.ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return os.RemoveAll(s.dir.ControlSocket())
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", s.status)
	mux.HandleFunc("POST /components/{name}/stop", command(s.stop))
	mux.HandleFunc("POST /components/{name}/start", command(s.start))
	mux.HandleFunc("POST /components/{name}/kill", command(func(r *http.Request) error {
		return s.supervisor.Kill(r.PathValue("name"))
	}))
	mux.HandleFunc("POST /shutdown", command(func(*http.Request) error {
		s.shutdown()
		return nil
	}))
	return mux
}

func (s *Server) status(w http.ResponseWriter, r *http.Request) {
	answer, err := json.Marshal(Status{
		PID:        os.Getpid(),
		Ready:      s.dir.Ready(os.Getpid()),
		Components: s.supervisor.Status(r.Context()),
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintln(w, string(answer))
}

func (s *Server) stop(r *http.Request) error {
	grace, err := time.ParseDuration(r.URL.Query().Get("grace"))
	if err != nil {
		return fmt.Errorf("grace: %w", err)
	}
	return s.supervisor.Stop(r.Context(), r.PathValue("name"), grace)
}

func (s *Server) start(r *http.Request) error {
	name := r.PathValue("name")
	wait, err := strconv.ParseBool(r.URL.Query().Get("wait"))
	if err != nil {
		return fmt.Errorf("wait: %w", err)
	}
	if err := s.supervisor.Start(name); err != nil || !wait {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), startTimeout)
	defer cancel()
	return s.supervisor.WaitHealthy(ctx, name, 0)
}

// command turns a function into a handler that answers 200 or its error.
func command(do func(*http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := do(r); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
		}
	}
}
