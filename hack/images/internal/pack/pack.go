// Package pack makes images of static programs: one layer with one file, and what runs it.
// The same programs give the same bits.
package pack

import (
	"archive/tar"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user is nobody in particular. It is a number, because that is what runAsNonRoot can judge.
const user = "65532:65532"

// Release is what the images of one build have in common.
type Release struct {
	// Prefix comes before the name of a program in the name of its image.
	Prefix string
	Tag    string
	// Version, Revision and Created are told by labels, and Created is the time of all there is.
	Version  string
	Revision string
	Created  time.Time
}

// image returns the image of a program for a platform. The file is read when the image is.
func (r Release) image(program, layerFile string, platform v1.Platform) (v1.Image, error) {
	layer, err := tarball.LayerFromFile(layerFile, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	created := v1.Time{Time: r.Created}
	if image, err = mutate.Append(image, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: created, CreatedBy: "COPY " + program + " /" + program},
	}); err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant = platform.OS, platform.Architecture, platform.Variant
	config.Created = created
	config.Config = v1.Config{
		User:       user,
		WorkingDir: "/",
		Entrypoint: []string{"/" + program},
		Labels: map[string]string{
			"org.opencontainers.image.title":    program,
			"org.opencontainers.image.version":  r.Version,
			"org.opencontainers.image.revision": r.Revision,
			"org.opencontainers.image.created":  r.Created.Format(time.RFC3339),
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return mutate.ConfigFile(image, config)
}

// writeLayer writes a layer with a program alone, which nobody can change.
func (r Release) writeLayer(path, program, file string) error {
	source, err := os.Open(file)
	if err != nil {
		return err
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil {
		return err
	}
	layer, err := os.Create(path)
	if err != nil {
		return err
	}
	defer layer.Close()
	writer := tar.NewWriter(layer)
	if err := writer.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: program, Size: info.Size(), Mode: 0o555, ModTime: r.Created, Format: tar.FormatPAX,
	}); err != nil {
		return err
	}
	if _, err := io.Copy(writer, source); err != nil {
		return err
	}
	if err := writer.Close(); err != nil {
		return err
	}
	return layer.Close()
}

// Pack makes the images of a program for platforms, and returns the paths of what it has
// written below out: an OCI layout in PROGRAM, with an index if there are several platforms,
// and PROGRAM-ARCHITECTURE.tar for each. What was there before is replaced when all is done.
func (r Release) Pack(program, programs string, platforms []string, out string) ([]string, error) {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp(out, ".pack-")
	if err != nil {
		return nil, err
	}
	// What is left of it is hidden, and in nobody's way.
	defer func() { _ = os.RemoveAll(work) }()
	var built []platformImage
	for _, name := range platforms {
		platform, err := v1.ParsePlatform(name)
		if err != nil {
			return nil, err
		}
		if platform.OS == "" || platform.Architecture == "" {
			return nil, fmt.Errorf("platform %q is not like linux/amd64", name)
		}
		slug := strings.ReplaceAll(name, "/", "-")
		layer := filepath.Join(work, "layer-"+slug)
		if err := r.writeLayer(layer, program, filepath.Join(programs, slug, program)); err != nil {
			return nil, err
		}
		image, err := r.image(program, layer, *platform)
		if err != nil {
			return nil, err
		}
		built = append(built, platformImage{image: image, platform: *platform})
	}
	return r.write(program, built, work, out)
}
