#!/usr/bin/env bash
# Fails when generated code does not match the API types.
set -o errexit -o nounset -o pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "${ROOT}"

GENERATED=(pkg/generated ':(glob)pkg/apis/**/zz_generated.*' hack/api-violations.list docs/api-reference.md)

before="$(mktemp)"
after="$(mktemp)"
trap 'rm -f "${before}" "${after}"' EXIT

fingerprint() {
  git ls-files --cached --others --exclude-standard -z -- "${GENERATED[@]}" | sort -zu | xargs -0 -r sha256sum 2>/dev/null || true
}

fingerprint >"${before}"
hack/update-codegen.sh
fingerprint >"${after}"

if ! diff -u "${before}" "${after}"; then
  echo "Generated code was not up to date. It is now: look at 'git diff' and commit it." >&2
  exit 1
fi
echo "Generated code is up to date."
