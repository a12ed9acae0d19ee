#!/usr/bin/env bash
# Builds what a cluster on this machine is made of into bin/: Kubernetes' and
# etcd's programs, KWOK and the launcher. What is up to date is not built again.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
bin=$root/bin

command -v go >/dev/null || { echo "build.sh: go is missing: install Go 1.26 or newer" >&2; exit 1; }
command -v sha256sum >/dev/null || { echo "build.sh: sha256sum is missing: install coreutils" >&2; exit 1; }

# The modules here stand alone, also inside of somebody's workspace.
export GOWORK=off
# Kubernetes is compiled as its machine's Go does it, whatever the caller's own programs need.
unset CGO_ENABLED
mkdir -p "$bin/.stamps"

# inputs prints what a build depends on besides the modules that go.mod pins.
inputs() { # module folder, sources...
  local module=$1
  shift
  go version
  sha256sum "${BASH_SOURCE[0]}" "$module/go.mod" "$module/go.sum"
  find "$@" -type f \( -name '*.go' -o -name '*.yaml' \) ! -name '*_test.go' -print0 | sort -z | xargs -0r sha256sum
}

# build builds one program unless its inputs are those of the last time. Go
# alone would find nothing to compile but link all the same, for many seconds.
build() { # program, note, module folder, package, sources..., -- linker flags
  local program=$1 note=$2 module=$3 package=$4
  shift 4
  local sources=()
  while [ "$1" != -- ]; do sources+=("$1"); shift; done
  shift
  local stamp=$bin/.stamps/$program now
  now=$( (inputs "$module" "${sources[@]}"; echo "$*") | sha256sum)
  if [ -x "$bin/$program" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$now" ]; then
    echo "$program is up to date"
    return
  fi
  echo "building $program$note"
  local began=$SECONDS
  (cd "$module" && go build -trimpath -buildvcs=false -ldflags "-s -w $*" -o "$bin/$program" "$package")
  echo "$now" > "$stamp"
  echo "built $program in $((SECONDS - began)) s"
}

# Clients ask the servers for their version, and see v0.0.0 without this.
kubernetes=$(cd "$here" && go list -m -f '{{.Version}}' k8s.io/kubernetes)
released=$(cd "$here" && go list -m -f '{{.Time.Format "2006-01-02T15:04:05Z"}}' k8s.io/kubernetes)
IFS=. read -r major minor _ <<< "${kubernetes#v}"
version=
for pair in gitVersion=$kubernetes gitMajor=$major gitMinor=$minor gitTreeState=clean gitCommit= buildDate=$released; do
  version+=" -X k8s.io/component-base/version.$pair"
done

programs=(etcd kube-apiserver kube-controller-manager kube-scheduler kubectl kubelet)
build kubernetes ": ${programs[*]} (first time: about 12 minutes)" "$here" ./cmd/kubernetes "$here/cmd/kubernetes" -- "$version"
for program in "${programs[@]}"; do
  ln -sfn kubernetes "$bin/$program"
done
build kwok " (first time: about 2 minutes)" "$here/kwok" sigs.k8s.io/kwok/cmd/kwok "$here/kwok" --
build cluster "" "$here" ./cmd/cluster "$here/cmd/cluster" "$here/internal" "$here/stages" --
# It is alone in an image, so it has to bring all with it.
CGO_ENABLED=0 build testpod "" "$here" ./cmd/testpod "$here/cmd/testpod" --
