package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

const (
	// Snapshotter keeps a copy of the files for each container. It needs
	// nothing of the file system, while overlays cannot be stacked, and images
	// of a single program are soon copied.
	Snapshotter = "native"
	// namespace is the kubelet's in containerd.
	namespace = "k8s.io"
)

// Load loads the images of a docker-archive or an OCI archive into containerd,
// and returns what it says of them. The base name, which may be empty, is that of
// images that have a tag alone.
func Load(ctx context.Context, socket string, archive io.Reader, baseName string) (string, error) {
	args := []string{"--address", socket, "--namespace", namespace, "images", "import", "--snapshotter", Snapshotter}
	if baseName != "" {
		args = append(args, "--base-name", baseName)
	}
	cmd := exec.CommandContext(ctx, "ctr", append(args, "-")...)
	cmd.Stdin = archive
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("load the image: %w: %s", err, strings.TrimSpace(out.String()))
	}
	return out.String(), nil
}

// LoadPath loads an archive, or a folder with an OCI layout.
func LoadPath(ctx context.Context, socket, path, baseName string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.IsDir() {
		return loadFolder(ctx, socket, path, baseName)
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	return Load(ctx, socket, file, baseName)
}

func loadFolder(ctx context.Context, socket, path, baseName string) (string, error) {
	reader, writer := io.Pipe()
	go func() {
		archive := tar.NewWriter(writer)
		writer.CloseWithError(errors.Join(archive.AddFS(os.DirFS(path)), archive.Close()))
	}()
	defer reader.Close()
	return Load(ctx, socket, reader, baseName)
}
