#!/usr/bin/env bash
# Builds Copse's programs into bin/, or into the folder OUT; for GOOS and GOARCH if they are set.
set -o errexit -o nounset -o pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "${ROOT}"

OUT="${OUT:-bin}"
version="$(hack/version.sh)"
while read -r program command; do
  echo "building ${program}"
  # Static, so that an image needs nothing else; and the same bits wherever and however the
  # commit was checked out, which is why the version is told here and not by the Go command.
  CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X github.com/copse-dev/copse/pkg/version.version=${version}" \
    -o "${OUT}/${program}" "./cmd/${command}"
done <<END
copse-apiserver apiserver
copse-controller-manager controller-manager
start-gate start-gate
END
