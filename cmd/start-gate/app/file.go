package app

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
)

// maxFile is the most that a ConfigMap can hold.
const maxFile = 1 << 20

// readFile says whether the file has the line of the pass. The mount is optional, so no
// file, and no folder, is no error.
func readFile(path string, p pass) (bool, error) {
	// Opened anew each time: the kubelet swaps the folder that the path leads through.
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return false, err
	}
	if len(content) > maxFile {
		return false, fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return listed(content, p), nil
}

// listed says whether one of the lines is exactly "<podclique> <attempt>". Whatever else is
// in there speaks of others.
func listed(content []byte, p pass) bool {
	want := []byte(p.podClique + " " + strconv.FormatInt(int64(p.attempt), 10))
	for line := range bytes.Lines(content) {
		if bytes.Equal(bytes.TrimRight(line, "\r\n"), want) {
			return true
		}
	}
	return false
}
