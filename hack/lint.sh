#!/usr/bin/env bash
# Runs golangci-lint with the rules of .golangci.yml.
#
#   hack/lint.sh              the main module
#   hack/lint.sh DIR...       these folders and what is below them; a folder may belong to another module
#   hack/lint.sh --fix ...    also repairs what the linters can repair
#
# The linter is built from the versions that hack/lint/go.mod pins, so it needs nothing but the Go module proxy.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
lint=$root/bin/golangci-lint

# The toolchain is part of the stamp: golangci-lint refuses code of a newer Go than the one that built it.
stamp=$(cd "$root/hack/lint" && { cat go.mod go.sum; go env GOVERSION GOOS GOARCH; } | git hash-object --stdin)

if [[ ! -x $lint || $(cat "$lint.stamp" 2>/dev/null) != "$stamp" ]]; then
  echo "lint: building golangci-lint (once, a few minutes)" >&2
  mkdir -p "$root/bin"
  # A name of its own and a rename at the end: two builds at once, or one that is killed, leave no half binary.
  (cd "$root/hack/lint" && GOWORK=off nice -n 10 go build -mod=readonly -buildvcs=false -ldflags='-s -w' -o "$lint.$$" \
    github.com/golangci/golangci-lint/v2/cmd/golangci-lint)
  mv "$lint.$$" "$lint"
  echo "$stamp" >"$lint.stamp"
fi

flags=()
dirs=()
for arg in "$@"; do
  case $arg in
    -*) flags+=("$arg") ;;
    *) dirs+=("$(cd "$arg" && pwd)") ;;
  esac
done
[[ ${#dirs[@]} -gt 0 ]] || dirs=("$root")

# A misspelt key would switch a rule off in silence.
"$lint" config verify --config "$root/.golangci.yml"

failed=0
# A wait ends by an event or at its exact deadline, never after a fixed time (tests may expect a fixed result). No linter
# looks at the value of a field; so there are two ways to write it: until a deadline, or the wait that was computed from some.
if grep -rnE --include='*.go' --exclude='*_test.go' 'RequeueAfter(:|[[:space:]]*=)' "${dirs[@]}" |
  grep -vE 'RequeueAfter: (wait|pace\.Until\([a-zA-Z.]+, now\))}'; then
  echo "lint: RequeueAfter is pace.Until(a deadline, now), or a wait computed from such, never a constant" >&2
  failed=1
fi

for dir in "${dirs[@]}"; do
  # golangci-lint loads one module at a time, from its root.
  mod=$(cd "$dir" && dirname "$(go env GOMOD)")
  (cd "$mod" && nice -n 10 "$lint" run --config "$root/.golangci.yml" "${flags[@]}" ".${dir#"$mod"}/...") || failed=1
done
exit "$failed"
