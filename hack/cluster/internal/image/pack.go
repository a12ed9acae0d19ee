package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"runtime"

	"github.com/opencontainers/go-digest"
	ocispecs "github.com/opencontainers/image-spec/specs-go/v1"
)

// manifest is an entry of manifest.json of a docker-archive.
type manifest struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// Pack writes an image, as a docker-archive, that consists of one static
// program, which it runs with the arguments by default.
func Pack(out io.Writer, name, programName string, program []byte, args ...string) error {
	var layer bytes.Buffer
	if err := writeTar(&layer, map[string][]byte{programName: program}, programName); err != nil {
		return err
	}
	config, err := json.Marshal(ocispecs.Image{
		Platform: ocispecs.Platform{Architecture: runtime.GOARCH, OS: "linux"},
		Config:   ocispecs.ImageConfig{Entrypoint: []string{path.Join("/", programName)}, Cmd: args, WorkingDir: "/"},
		RootFS:   ocispecs.RootFS{Type: "layers", DiffIDs: []digest.Digest{digest.FromBytes(layer.Bytes())}},
	})
	if err != nil {
		return err
	}
	configName := fmt.Sprintf("%x.json", sha256.Sum256(config))
	list, err := json.Marshal([]manifest{{Config: configName, RepoTags: []string{name}, Layers: []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	return writeTar(out, map[string][]byte{"layer.tar": layer.Bytes(), configName: config, "manifest.json": list},
		"layer.tar", configName, "manifest.json")
}

// writeTar writes files in an order, without times: the same content is the
// same archive.
func writeTar(out io.Writer, files map[string][]byte, order ...string) error {
	archive := tar.NewWriter(out)
	for _, name := range order {
		header := &tar.Header{Name: name, Mode: 0o755, Size: int64(len(files[name])), Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(files[name]); err != nil {
			return err
		}
	}
	return archive.Close()
}
