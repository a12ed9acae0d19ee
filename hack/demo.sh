#!/usr/bin/env bash
# Starts a cluster with Copse, runs a training and an inference example in it, and
# shows them live until the training set has ended. The cluster stays up.
set -o errexit -o nounset -o pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "${ROOT}"
DIR="$1"
TRAINING=llama-ft
INFERENCE=serve-70b
# A job of the demo takes half a minute; more than this means that something is wrong.
LIMIT_SECONDS=300

bin/cluster up --dir "${DIR}" --copse --nodes 8
KUBECONFIG="$(cd "${DIR}" && pwd)/kubeconfig"
export KUBECONFIG
kubectl() { bin/kubectl "$@"; }

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }

say "A training job on 4 nodes of 8 GPUs, and a disaggregated inference service:"
kubectl delete pcs "${TRAINING}" --ignore-not-found --timeout=60s >/dev/null
kubectl apply -f artifacts/examples/training-finetune.yaml -f artifacts/examples/inference-disaggregated.yaml

snapshot() {
  kubectl get pcs "${TRAINING}" "${INFERENCE}"
  echo
  kubectl get pods -l "app.kubernetes.io/part-of in (${TRAINING}, ${INFERENCE})" --no-headers |
    awk '{count[$3]++; total++} END {printf "pods: %d", total; for (s in count) printf ", %d %s", count[s], s; print ""}'
}

say "Live, until ${TRAINING} has ended:"
lines=0
last=""
began=${SECONDS}
while :; do
  now="$(snapshot 2>&1 || true)"
  if [ -t 1 ]; then
    # On a terminal the table stays in its place.
    [ "${lines}" -gt 0 ] && printf '\033[%dA\033[J' "${lines}"
    printf '%s\n' "${now}"
    lines=$(wc -l <<<"${now}")
  elif [ "$(sed -E 's/ +[0-9]+[smh]([0-9]+s)? *$//' <<<"${now}")" != "${last}" ]; then
    # In a log it is printed when something other than the age has changed.
    printf '%s\n\n' "${now}"
    last="$(sed -E 's/ +[0-9]+[smh]([0-9]+s)? *$//' <<<"${now}")"
  fi
  phase="$(kubectl get pcs "${TRAINING}" -o jsonpath='{.status.phase}' 2>/dev/null || true)"
  [ "${phase}" = Succeeded ] && break
  if [ "${phase}" = Failed ] || [ $((SECONDS - began)) -gt "${LIMIT_SECONDS}" ]; then
    kubectl describe pcs "${TRAINING}"
    echo "${TRAINING} is ${phase:-not there} after $((SECONDS - began)) s" >&2
    exit 1
  fi
  sleep 0.5
done

say "${TRAINING} has Succeeded after $((SECONDS - began)) s. What it says of itself:"
kubectl describe pcs "${TRAINING}" | sed -n '/^  Conditions:/,$p'

say "The cluster stays up. Try:"
cat <<EOT
  export KUBECONFIG=${KUBECONFIG}
  export PATH=\$PWD/bin:\$PATH             # the cluster's own kubectl
  kubectl get pcs,pcsg,pclq,pg,pods       # everything there is
  kubectl explain pcs.spec.trainingSpec   # the API, explained
  kubectl scale pcs ${INFERENCE} --replicas=2
  kubectl annotate pod -l app.kubernetes.io/part-of=${INFERENCE} kwok.copse.dev/exit-after=0s   # let its pods end, and see them replaced
  kubectl apply -f artifacts/examples/training-pipeline.yaml
  make demo-down                          # end it
EOT
