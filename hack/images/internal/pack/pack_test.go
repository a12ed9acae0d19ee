package pack

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const program = "start-gate"

var (
	release = Release{
		Prefix: "registry.example.com/copse/", Tag: "v1.2.3", Version: "v1.2.3+abc", Revision: "abc",
		Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	content = []byte("\x7fELF and so on")
)

// built returns a folder with a program for platforms.
func built(t *testing.T, platforms ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, platform := range platforms {
		folder := filepath.Join(dir, strings.ReplaceAll(platform, "/", "-"))
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, program), append(content, platform...), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func packed(t *testing.T, out string, platforms ...string) []string {
	t.Helper()
	files, err := release.Pack(program, built(t, platforms...), platforms, out)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// check looks at an image as whoever runs it does.
func check(t *testing.T, image v1.Image, architecture string) {
	t.Helper()
	if err := validate.Image(image); err != nil {
		t.Error(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	want := v1.Config{
		User: "65532:65532", WorkingDir: "/", Entrypoint: []string{"/start-gate"},
		Labels: map[string]string{
			"org.opencontainers.image.title": program, "org.opencontainers.image.version": "v1.2.3+abc", "org.opencontainers.image.revision": "abc",
			"org.opencontainers.image.created": "2026-01-02T03:04:05Z", "org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	if !reflect.DeepEqual(config.Config, want) {
		t.Errorf("configuration %+v", config.Config)
	}
	if config.OS != "linux" || config.Architecture != architecture || !config.Created.Equal(release.Created) {
		t.Errorf("it is for %s/%s, of %s", config.OS, config.Architecture, config.Created)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, error %v", len(layers), err)
	}
	text, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	reader := tar.NewReader(text)
	header, err := reader.Next()
	if err != nil {
		t.Fatal(err)
	}
	if header.Name != program || header.Mode != 0o555 || header.Uid != 0 || header.Gid != 0 || !header.ModTime.Equal(release.Created) {
		t.Errorf("file %+v", header)
	}
	if got, err := io.ReadAll(reader); err != nil || !bytes.Equal(got, append(content, "linux/"+architecture...)) {
		t.Errorf("it holds %q, error %v", got, err)
	}
	if header, err := reader.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("there is more: %+v, error %v", header, err)
	}
}

func TestAnArchiveHasTheImageUnderItsName(t *testing.T) {
	out := t.TempDir()
	packed(t, out, "linux/amd64")
	tag, err := name.NewTag("registry.example.com/copse/start-gate:v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(filepath.Join(out, "start-gate-amd64.tar"), &tag)
	if err != nil {
		t.Fatal(err)
	}
	check(t, image, "amd64")
}

func TestALayoutHasOneEntry(t *testing.T) {
	out := t.TempDir()
	packed(t, out, "linux/amd64")
	path, err := layout.FromPath(filepath.Join(out, program))
	if err != nil {
		t.Fatal(err)
	}
	index, err := path.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("manifest %+v, error %v", manifest, err)
	}
	entry := manifest.Manifests[0]
	if entry.Annotations[refName] != "v1.2.3" || entry.Platform == nil || entry.Platform.String() != "linux/amd64" {
		t.Errorf("entry %+v", entry)
	}
	image, err := index.Image(entry.Digest)
	if err != nil {
		t.Fatal(err)
	}
	check(t, image, "amd64")
}

func TestALayoutOfSeveralPlatformsHasAnIndex(t *testing.T) {
	out := t.TempDir()
	files := packed(t, out, "linux/amd64", "linux/arm64")
	want := []string{filepath.Join(out, program), filepath.Join(out, "start-gate-amd64.tar"), filepath.Join(out, "start-gate-arm64.tar")}
	if !reflect.DeepEqual(files, want) {
		t.Errorf("files %v", files)
	}
	path, err := layout.FromPath(filepath.Join(out, program))
	if err != nil {
		t.Fatal(err)
	}
	top, err := path.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("manifest %+v, error %v", manifest, err)
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if manifest, err = index.IndexManifest(); err != nil || len(manifest.Manifests) != 2 {
		t.Fatalf("manifest %+v, error %v", manifest, err)
	}
	for i, architecture := range []string{"amd64", "arm64"} {
		entry := manifest.Manifests[i]
		if entry.Platform == nil || entry.Platform.Architecture != architecture {
			t.Errorf("entry %+v", entry)
		}
		image, err := index.Image(entry.Digest)
		if err != nil {
			t.Fatal(err)
		}
		check(t, image, architecture)
	}
}

// digests are the bits of all that is below a folder.
func digests(t *testing.T, dir string) map[string][sha256.Size]byte {
	t.Helper()
	found := map[string][sha256.Size]byte{}
	if err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(dir, path)
		found[below] = sha256.Sum256(text)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestTheSameProgramsGiveTheSameBits(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	packed(t, first, "linux/amd64", "linux/arm64")
	packed(t, second, "linux/amd64", "linux/arm64")
	// Nor does it matter what was there.
	packed(t, second, "linux/amd64")
	packed(t, second, "linux/amd64", "linux/arm64")
	a, b := digests(t, first), digests(t, second)
	if !reflect.DeepEqual(a, b) || len(a) < 8 {
		t.Errorf("bits %v and %v", a, b)
	}
}

func TestWhatCannotBePackedIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		release   Release
		platforms []string
		want      string
	}{
		"program that was not built": {release, []string{"linux/arm64"}, "no such file"},
		"platform in one word":       {release, []string{"linux"}, `platform "linux" is not like linux/amd64`},
		"wrong tag":                  {Release{Tag: "v1+2"}, []string{"linux/amd64"}, "tag can only contain"},
		"wrong prefix":               {Release{Tag: "v1", Prefix: "Team/"}, []string{"linux/amd64"}, "repository can only contain"},
	} {
		t.Run(name, func(t *testing.T) {
			out := t.TempDir()
			packed(t, out, "linux/amd64")
			before := digests(t, out)
			_, err := test.release.Pack(program, built(t, "linux/amd64"), test.platforms, out)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
			if after := digests(t, out); !reflect.DeepEqual(after, before) {
				t.Errorf("it leaves %v", after)
			}
		})
	}
}
