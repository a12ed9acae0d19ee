#!/usr/bin/env bash
# Packs Copse's programs into images, in bin/images or the folder OUT:
#   PROGRAM/                   an OCI layout, for crane and skopeo; an index if there are several platforms
#   PROGRAM-ARCHITECTURE.tar   for `docker load` and `ctr images import`
#
#   PLATFORMS  separated by commas, such as linux/amd64,linux/arm64; this machine's if not set
#   PREFIX     comes before the names of the images, such as registry.example.com/copse/
#   TAG        of the images
#
# Nothing is read from a registry and no daemon is asked. One commit, built with one version of Go,
# gives the same bits on every machine.
set -o errexit -o nounset -o pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "${ROOT}"

OUT="$(realpath -m "${OUT:-bin/images}")"
PLATFORMS="${PLATFORMS:-linux/$(go env GOARCH)}"
PREFIX="${PREFIX:-}"
TAG="${TAG:-v0.1.0}"

programs="${OUT}/programs"
for platform in ${PLATFORMS//,/ }; do
  IFS=/ read -r os arch variant <<<"${platform}"
  echo "for ${platform}:"
  GOOS="${os}" GOARCH="${arch}" GOARM="${variant#v}" OUT="${programs}/${platform//\//-}" hack/build.sh
done

echo "packing into ${OUT}"
# Times as well belong to the commit.
CGO_ENABLED=0 go run -C hack/images . --programs="${programs}" --platforms="${PLATFORMS}" --out="${OUT}" \
  --prefix="${PREFIX}" --tag="${TAG}" --version="$(hack/version.sh)" \
  --revision="$(git rev-parse HEAD 2>/dev/null || echo unknown)" \
  --created="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}" \
  copse-apiserver copse-controller-manager start-gate
