package pack

import (
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// refName is by what a tool finds an image in a layout.
const refName = "org.opencontainers.image.ref.name"

// platformImage is an image and what it runs on.
type platformImage struct {
	image    v1.Image
	platform v1.Platform
}

// write writes images of a program to a folder for work, and then moves all of it out.
func (r Release) write(program string, images []platformImage, work, out string) ([]string, error) {
	if err := r.writeLayout(filepath.Join(work, program), images); err != nil {
		return nil, err
	}
	files := []string{program}
	tag, err := name.NewTag(r.Prefix+program+":"+r.Tag, name.WithDefaultRegistry(""))
	if err != nil {
		return nil, err
	}
	for _, image := range images {
		file := program + "-" + image.platform.Architecture + image.platform.Variant + ".tar"
		if err := tarball.WriteToFile(filepath.Join(work, file), tag, image.image); err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	for i, file := range files {
		to := filepath.Join(out, file)
		if err := os.RemoveAll(to); err != nil {
			return nil, err
		}
		if err := os.Rename(filepath.Join(work, file), to); err != nil {
			return nil, err
		}
		files[i] = to
	}
	return files, nil
}

// writeLayout writes an OCI layout with one entry: the image, or the index of several.
func (r Release) writeLayout(dir string, images []platformImage) error {
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	annotations := layout.WithAnnotations(map[string]string{refName: r.Tag})
	if len(images) == 1 {
		return path.AppendImage(images[0].image, annotations, layout.WithPlatform(images[0].platform))
	}
	var index v1.ImageIndex = empty.Index
	for _, image := range images {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image.image, Descriptor: v1.Descriptor{Platform: &image.platform}})
	}
	return path.AppendIndex(index, annotations)
}
