#!/usr/bin/env bash
# Runs tiers of tests, named as arguments, and sums them up.
#   unit         all packages that need no cluster, the small worlds of the model, and sets drawn by
#                lot that might wait for ever
#   chaos        the controllers in memory: each crash point, and some of the other faults
#   cluster      the local cluster's own packages
#   images       how images are packed
#   integration  the API through kubectl and the aggregation layer
#   e2e          workloads from manifest to end
#   kubelet      real containers: a kubelet, containerd and runc; needs root and three packages
#   storage      etcds that are swapped under running pods
#   faults       gangs of all kinds while the processes of the control plane die
#   deep         what takes long: the large worlds of the model, tens of thousands of sets drawn
#                by lot and a hundred of them on a cluster, every fault at every write,
#                real processes that die at many places, each validation rule switched off in
#                turn, fuzzing of the API
#   bench        times that depend on the machine; printed, not judged
set -o errexit -o nounset -o pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "${ROOT}"

gotestsum() {
  go tool -modfile="${ROOT}/hack/tools/go.mod" gotestsum --format "${FORMAT:-pkgname-and-test-fails}" --format-hide-empty-pkg "$@"
}

# Each fuzz target of the API for ten minutes, one after another.
fuzz() {
  local target
  for target in $(go test -list '^Fuzz' ./pkg/registry | grep '^Fuzz'); do
    go test -run '^$' -fuzz "^${target}\$" -fuzztime "${FUZZTIME:-10m}" -fuzzminimizetime 1s ./pkg/registry || return 1
  done
}

run() {
  case "$1" in
    unit) gotestsum -- $(go list ./cmd/... ./pkg/... ./test/history/... ./test/model/... ./test/deadlock/... ./test/lots/... ./test/rules/... ./test/story/... ./test/docs/...) ;;
    chaos) gotestsum -- -count=1 -timeout 20m ./test/chaos/... ;;
    cluster) (cd hack/cluster && gotestsum -- ./internal/... ./cmd/cluster/... ./cmd/testpod/... ./stages/...) ;;
    images) (cd hack/images && gotestsum ./...) ;;
    # The checks of conformance mostly wait.
    integration)
      gotestsum -- -count=1 -timeout 20m ./test/integration/... &&
        gotestsum -- -count=1 -timeout 10m -parallel 16 ./test/conformance/...
      ;;
    # Progress by test: a person sees what takes long. Most of the time they wait.
    e2e)
      FORMAT=testdox gotestsum -- -count=1 -timeout 30m -parallel 4 ./test/e2e/... &&
        FORMAT=testdox gotestsum -- -count=1 -timeout 5m ./test/plain/... &&
        FORMAT=testdox gotestsum -- -count=1 -timeout 5m -parallel 8 ./test/topology/...
      ;;
    # The containers mostly wait.
    kubelet) FORMAT=testdox gotestsum -- -count=1 -timeout 10m -parallel 6 ./test/kubelet/... ;;
    storage) FORMAT=testdox gotestsum -- -count=1 -timeout 10m ./test/storage/... ;;
    faults) FORMAT=testdox gotestsum -- -count=1 -timeout 10m ./test/faults/... ;;
    deep)
      MODEL_DEEP=1 FORMAT=standard-verbose gotestsum -- -count=1 -timeout 60m -run TestSafety ./test/model/... &&
        HUNT_DEEP=1 FORMAT=standard-verbose gotestsum -- -count=1 -timeout 60m -run TestNoSetWaitsForEver ./test/deadlock/... &&
        HUNT_DEEP=1 FORMAT=standard-verbose gotestsum -- -count=1 -timeout 30m -run TestNoSetDrawnByLotWaitsForEver ./test/e2e/... &&
        CHAOS_DEEP=1 gotestsum -- -count=1 -timeout 120m ./test/chaos/... &&
        FAULTS_DEEP=1 FORMAT=standard-verbose gotestsum -- -count=1 -timeout 120m ./test/faults/... &&
        FORMAT=standard-verbose gotestsum -- -count=1 -timeout 60m ./test/rules -rules &&
        fuzz
      ;;
    bench) go test -count=1 -v -timeout 60m ./test/bench/... ;;
    *) echo "unknown tier $1" >&2; return 2 ;;
  esac
}

# What the machine lacks for a tier, in words.
missing() {
  case "$1" in
    # Without the programs the tier itself says that they have to be built.
    kubelet) [ ! -x bin/cluster ] || bin/cluster preflight 2>&1 || true ;;
  esac
}

failed=()
lines=()
for tier in "$@"; do
  echo "=== ${tier}"
  began=${SECONDS}
  result=passed
  note="$(missing "${tier}")"
  if [ -n "${note}" ]; then
    result=SKIPPED
    note=" this machine lacks ${note#cluster: }"
    note="${note//$'\n'/; }"
    echo "SKIPPED:${note}"
  else
    run "${tier}" || { result=FAILED; failed+=("${tier}"); }
  fi
  lines+=("$(printf '  %-12s %-7s %4d s%s' "${tier}" "${result}" $((SECONDS - began)) "${note}")")
done

echo
echo "Summary:"
printf '%s\n' "${lines[@]}"
if [ "${#failed[@]}" -gt 0 ]; then
  echo "failed: ${failed[*]}"
  exit 1
fi
