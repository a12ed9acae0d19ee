package stages

import (
	"bytes"
	"embed"
	"io/fs"
)

//go:embed *.yaml
var files embed.FS

// Config returns the content of all files as one document stream.
func Config() ([]byte, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, err
	}
	var parts [][]byte
	for _, name := range names {
		part, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return bytes.Join(parts, []byte("---\n")), nil
}
