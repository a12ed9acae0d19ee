#!/usr/bin/env bash
# Writes everything that is generated from the API types: zz_generated.*,
# pkg/generated and docs/api-reference.md. Needs nothing but Go and the module proxy: the generators are pinned
# in hack/tools/go.mod.
set -o errexit -o nounset -o pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "${ROOT}"

MODULE="github.com/copse-dev/copse"
HEADER="hack/boilerplate.go.txt"
OUT="pkg/generated"
HUB=("${MODULE}/pkg/apis/grove" "${MODULE}/pkg/apis/scheduler")
VERSIONED=("${HUB[@]/%//v1alpha1}")

# Types that ours embed, or that the server serves, but that others own. Their
# definitions are needed in OpenAPI; nothing may be written into their packages.
FOREIGN=(
  k8s.io/api/autoscaling/v1
  k8s.io/api/autoscaling/v2
  k8s.io/api/core/v1
  k8s.io/api/resource/v1
  k8s.io/apimachinery/pkg/api/resource
  k8s.io/apimachinery/pkg/apis/meta/v1
  k8s.io/apimachinery/pkg/runtime
  k8s.io/apimachinery/pkg/util/intstr
  k8s.io/apimachinery/pkg/version
)

tool() {
  echo "  $1"
  go tool -modfile="${ROOT}/hack/tools/go.mod" "$1" --go-header-file "${HEADER}" "${@:2}"
}

# The types of these packages have apply configurations in client-go.
externals() {
  local applied="k8s.io/client-go/applyconfigurations"
  local -a pairs=(
    "k8s.io/api/core/v1.PodSpec:${applied}/core/v1"
    "k8s.io/api/autoscaling/v2.MetricSpec:${applied}/autoscaling/v2"
    "k8s.io/api/autoscaling/v2.HorizontalPodAutoscalerBehavior:${applied}/autoscaling/v2"
    "k8s.io/api/resource/v1.ResourceClaimTemplateSpec:${applied}/resource/v1"
  )
  local IFS=,
  echo "${pairs[*]}"
}

echo "helpers:"
tool deepcopy-gen --output-file zz_generated.deepcopy.go "${HUB[@]}" "${VERSIONED[@]}"
tool defaulter-gen --output-file zz_generated.defaults.go "${VERSIONED[@]}"
tool conversion-gen --output-file zz_generated.conversion.go "${VERSIONED[@]}"

echo "OpenAPI:"
readonly_args=()
for pkg in "${FOREIGN[@]}"; do readonly_args+=(--readonly-pkg "${pkg}"); done
tool openapi-gen \
  --output-dir "${OUT}/openapi" --output-pkg "${MODULE}/${OUT}/openapi" \
  --output-file zz_generated.openapi.go \
  --output-model-name-file zz_generated.model_name.go \
  --report-filename hack/api-violations.list \
  "${readonly_args[@]}" "${FOREIGN[@]}" "${VERSIONED[@]}"

echo "clients:"
rm -rf "${OUT}/applyconfiguration" "${OUT}/clientset" "${OUT}/listers" "${OUT}/informers"
tool applyconfiguration-gen \
  --output-dir "${OUT}/applyconfiguration" --output-pkg "${MODULE}/${OUT}/applyconfiguration" \
  --external-applyconfigurations "$(externals)" \
  "${VERSIONED[@]}"
tool client-gen \
  --clientset-name versioned --input-base "" \
  --output-dir "${OUT}/clientset" --output-pkg "${MODULE}/${OUT}/clientset" \
  --apply-configuration-package "${MODULE}/${OUT}/applyconfiguration" \
  --input "${VERSIONED[0]}" --input "${VERSIONED[1]}"
tool lister-gen \
  --output-dir "${OUT}/listers" --output-pkg "${MODULE}/${OUT}/listers" \
  "${VERSIONED[@]}"
tool informer-gen \
  --output-dir "${OUT}/informers" --output-pkg "${MODULE}/${OUT}/informers" \
  --versioned-clientset-package "${MODULE}/${OUT}/clientset/versioned" \
  --listers-package "${MODULE}/${OUT}/listers" \
  "${VERSIONED[@]}"

echo "reference:"
echo "  crd-ref-docs"
go tool -modfile="${ROOT}/hack/tools/go.mod" crd-ref-docs --log-level ERROR \
  --config hack/api-reference/config.yaml --source-path pkg/apis --renderer markdown --output-path docs/api-reference.md
