# Everything is built into bin/. The scripts in hack/ do the work; this file names them.
.DEFAULT_GOAL := help
CLUSTER_DIR ?= .copse/cluster

# One set of compiler flags for programs, tests and lint, so that what one has compiled
# serves the others.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath

.PHONY: help
help: ## Show the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Use
.PHONY: demo demo-down up down
demo: build ## Start a cluster with Copse and run the examples in it, live
	@hack/demo.sh $(CLUSTER_DIR)
demo-down: down ## End the demo

up: build ## Start a cluster with Copse; the last line is for eval
	@bin/cluster up --dir $(CLUSTER_DIR) --copse --nodes 8
down: ## End the cluster
	@if [ -x bin/cluster ]; then bin/cluster down --dir $(CLUSTER_DIR); fi

##@ Build
.PHONY: build build-copse build-cluster images generate
build: build-cluster build-copse ## Build Copse and the local cluster
build-cluster: ## Build the local cluster's programs (first time: a quarter of an hour)
	@hack/cluster/build.sh
build-copse: ## Build Copse's programs
	@hack/build.sh
images: ## Pack Copse's programs into images, in bin/images (PLATFORMS, PREFIX, TAG)
	@hack/images.sh
generate: ## Generate code from the API types
	@hack/update-codegen.sh

##@ Check
.PHONY: test bench mutants rules test-unit test-deep lint verify
test: build ## Run all tests: unit, integration, end-to-end, real containers
	@hack/test.sh unit chaos cluster images integration e2e kubelet storage faults
bench: build ## Measure restarts of big gangs, and print the figures
	@hack/test.sh bench
mutants: ## Make deliberate mistakes, and see that the unit tests notice each
	@go test -count=1 -timeout 60m -v ./test/mutants -mutants | grep -v '^=== '
rules: ## Switch off one validation rule at a time, and see that the unit tests notice
	@go test -count=1 -timeout 60m -v ./test/rules -rules | grep -v '^=== '
test-unit: ## Run the tests that need no cluster
	@hack/test.sh unit
test-deep: build ## Run the tests that take long
	@hack/test.sh deep
lint: ## Check style and layers
	@hack/lint.sh
verify: ## Check that generated code is up to date
	@hack/verify-codegen.sh
