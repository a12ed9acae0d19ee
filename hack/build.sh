#!/usr/bin/env bash
# Builds Copse's programs into bin/.
set -o errexit -o nounset -o pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "${ROOT}"

version="$(git describe --tags --always --dirty 2>/dev/null || echo unknown)"
for program in apiserver controller-manager; do
  echo "building copse-${program}"
  # Static, so that an image needs nothing else.
  CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X github.com/copse-dev/copse/pkg/version.version=v0.1.0+${version}" \
    -o "bin/copse-${program}" "./cmd/${program}"
done
