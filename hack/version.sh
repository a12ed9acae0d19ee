#!/usr/bin/env bash
# Prints the version of what is built here.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
echo "v0.1.0+$(git describe --tags --always --dirty 2>/dev/null || echo unknown)"
