// Command images packs Copse's programs into container images, from scratch and without a
// daemon, a registry or a network. hack/images.sh builds the programs and calls it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/copse-dev/copse/hack/images/internal/pack"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	fs := flag.NewFlagSet("images", flag.ContinueOnError)
	programs := fs.String("programs", "", "`folder` with a folder for each platform, such as linux-amd64, that has the programs")
	platforms := fs.String("platforms", "", "`platforms` separated by commas, such as linux/amd64")
	out := fs.String("out", "", "`folder` for the images")
	prefix := fs.String("prefix", "", "`text` before the name of each image, such as registry.example.com/copse/")
	tag := fs.String("tag", "", "`tag` of the images")
	version := fs.String("version", "", "`version` of the programs")
	revision := fs.String("revision", "", "`commit` that they were built from")
	created := fs.Int64("created", 0, "time of the images in `seconds` since 1970")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *programs == "" || *platforms == "" || *out == "" || *tag == "" || fs.NArg() == 0 {
		return errors.New("--programs, --platforms, --out, --tag and the names of programs must be given")
	}
	release := pack.Release{Prefix: *prefix, Tag: *tag, Version: *version, Revision: *revision, Created: time.Unix(*created, 0).UTC()}
	for _, program := range fs.Args() {
		written, err := release.Pack(program, *programs, strings.Split(*platforms, ","), *out)
		if err != nil {
			return fmt.Errorf("%s: %w", program, err)
		}
		for _, file := range written {
			fmt.Println(file)
		}
	}
	return nil
}
