package kubelet

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// An image comes to the node as a folder with an OCI layout, without a registry.
func TestAnImageIsLoadedFromAFolder(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	const image = "example.com/tool:1"
	program, err := os.ReadFile(filepath.Join(cluster.Root(), "bin", "testpod"))
	if err != nil {
		t.Fatal(err)
	}
	cluster.LoadImage(t, writeLayout(t, image, program, "env"))
	worker := runs("main")
	worker.Image = image
	apply(t, ns, set(grovev1alpha1.WorkloadTypeTraining, 1, onRealNode(worker)))
	ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetSucceeded, patience)
	pods := ns.WaitForPods(1, patience, hasPhase(corev1.PodSucceeded))
	if log := ns.Kubectl("logs", pods[0].Name); !strings.Contains(log, "FROM_IMAGE=yes") {
		t.Errorf("the container does not run what the image says: %s", log)
	}
}

// writeLayout writes an image of one program, which runs with the argument.
func writeLayout(t *testing.T, name string, program []byte, argument string) string {
	t.Helper()
	dir := t.TempDir()
	layer := tarOf(t, "tool", program)
	config := asJSON(t, map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/tool"}, "Cmd": []string{argument}, "Env": []string{"FROM_IMAGE=yes"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digest(layer)}},
	})
	manifest := asJSON(t, map[string]any{
		"schemaVersion": 2,
		"config":        descriptor("application/vnd.oci.image.config.v1+json", config),
		"layers":        []any{descriptor("application/vnd.oci.image.layer.v1.tar", layer)},
	})
	entry := descriptor("application/vnd.oci.image.manifest.v1+json", manifest)
	entry["annotations"] = map[string]string{"io.containerd.image.name": name}
	files := map[string][]byte{
		"oci-layout": asJSON(t, map[string]string{"imageLayoutVersion": "1.0.0"}),
		"index.json": asJSON(t, map[string]any{"schemaVersion": 2, "manifests": []any{entry}}),
	}
	for _, blob := range [][]byte{layer, config, manifest} {
		files[filepath.Join("blobs", strings.ReplaceAll(digest(blob), ":", "/"))] = blob
	}
	for path, content := range files {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func tarOf(t *testing.T, name string, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func digest(content []byte) string {
	return fmt.Sprintf("sha256:%x", sha256.Sum256(content))
}

func descriptor(mediaType string, content []byte) map[string]any {
	return map[string]any{"mediaType": mediaType, "digest": digest(content), "size": len(content)}
}

func asJSON(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
