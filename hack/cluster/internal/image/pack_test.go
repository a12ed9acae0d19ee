package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispecs "github.com/opencontainers/image-spec/specs-go/v1"
)

func TestPack(t *testing.T) {
	var archive bytes.Buffer
	if err := Pack(&archive, "example.com/tool:1", "tool", []byte("program"), "wait"); err != nil {
		t.Fatal(err)
	}
	again := bytes.Buffer{}
	if err := Pack(&again, "example.com/tool:1", "tool", []byte("program"), "wait"); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(archive.Bytes(), again.Bytes()) {
		t.Error("the same program gives another archive")
	}

	files := untar(t, archive.Bytes())
	var list []manifest
	unmarshal(t, files["manifest.json"], &list)
	if len(list) != 1 || len(list[0].RepoTags) != 1 || list[0].RepoTags[0] != "example.com/tool:1" {
		t.Fatalf("the manifest is %+v", list)
	}
	var config ocispecs.Image
	unmarshal(t, files[list[0].Config], &config)
	layer := files[list[0].Layers[0]]
	if len(config.RootFS.DiffIDs) != 1 || config.RootFS.DiffIDs[0] != digest.FromBytes(layer) {
		t.Errorf("the configuration is of other layers: %v", config.RootFS.DiffIDs)
	}
	if config.Config.Entrypoint[0] != "/tool" || config.Config.Cmd[0] != "wait" {
		t.Errorf("it runs %v with %v", config.Config.Entrypoint, config.Config.Cmd)
	}
	if got := untar(t, layer)["tool"]; string(got) != "program" {
		t.Errorf("the program is %q", got)
	}
}

func untar(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for reader := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Mode&0o111 == 0 {
			t.Errorf("%s cannot be executed", header.Name)
		}
		if files[header.Name], err = io.ReadAll(reader); err != nil {
			t.Fatal(err)
		}
	}
}

func unmarshal(t *testing.T, data []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%v in %q", err, data)
	}
}
