package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/copse-dev/copse/hack/cluster/internal/certs"
)

// Dir is the state folder of a cluster, as an absolute path.
type Dir string

// NewDir makes the path absolute. The folder need not exist.
func NewDir(path string) (Dir, error) {
	abs, err := filepath.Abs(path)
	return Dir(abs), err
}

// Make creates the folder with its parts. It refuses a folder that holds other
// things: the whole folder is removed in the end.
func (d Dir) Make() error {
	entries, err := os.ReadDir(string(d))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(entries) > 0 && !d.Exists() {
		return fmt.Errorf("%s holds other things than the state of a cluster", d)
	}
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return err
	}
	mark, err := os.OpenFile(d.PIDFile(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := mark.Close(); err != nil {
		return err
	}
	for _, sub := range []string{"logs", "kubeconfigs", "data", "install"} {
		if err := os.MkdirAll(d.path(sub), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// Exists returns whether the folder was made by Make.
func (d Dir) Exists() bool {
	_, err := os.Stat(d.PIDFile())
	return err == nil
}

// Remove removes the folder. The mark goes last: what could not be removed is
// still known as a state folder.
func (d Dir) Remove() error {
	if !d.Exists() {
		return fmt.Errorf("%s is not the state folder of a cluster", d)
	}
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := d.path(e.Name())
		if path == d.PIDFile() {
			continue
		}
		// The components of a supervisor that was killed take a moment to die,
		// and write until then.
		if err := patiently(func() error { return os.RemoveAll(path) }); err != nil {
			return err
		}
	}
	return os.RemoveAll(string(d))
}

func (d Dir) path(elem ...string) string {
	return filepath.Join(append([]string{string(d)}, elem...)...)
}

// ClusterFile is cluster.json.
func (d Dir) ClusterFile() string { return d.path("cluster.json") }

// PIDFile is locked while a supervisor runs, and holds its process id. It is
// also the mark of a state folder.
func (d Dir) PIDFile() string { return d.path("supervisor.pid") }

// ReadyFile exists while the cluster is ready, and holds the id of the
// supervisor that made it so.
func (d Dir) ReadyFile() string { return d.path("ready") }

// ControlSocket is the supervisor's unix socket, relative to the folder.
func (d Dir) ControlSocket() string { return d.path("control.sock") }

// Kubeconfig is the administrator's.
func (d Dir) Kubeconfig() string { return d.path("kubeconfig") }

// KubeconfigOf is what a component connects to the API server with.
func (d Dir) KubeconfigOf(component string) string {
	return d.path("kubeconfigs", component)
}

// Log is the log of a component, of all its processes one after the other.
func (d Dir) Log(component string) string { return d.path("logs", component+".log") }

// Data is where a component keeps its data.
func (d Dir) Data(component string) string { return d.path("data", component) }

// Certs is the folder of keys and certificates.
func (d Dir) Certs() certs.Folder { return certs.Folder(d.path("certs")) }

// KWOKConfig is KWOK's configuration, stages included.
func (d Dir) KWOKConfig() string { return d.path("kwok.yaml") }

// Install is the folder of Copse's kustomization.
func (d Dir) Install() string { return d.path("install") }
