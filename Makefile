# Targets for people; `make` alone lists them. ARGS goes to ansible-playbook or pytest:
# make matrix ARGS="-e '{\"matrix_blocks\": 10}'"
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
RUN_STAMP := $(VENV)/.requirements.txt.stamp
TEST_STAMP := $(VENV)/.requirements-test.txt.stamp
PLAYBOOKS := preflight provision tune calibrate bandwidth kubernetes koordinator compare report reset
BENCHMARKS := matrix node bandwidth kubernetes
# Debian packages that only tests need; what a testbed needs is installed by its roles.
TEST_PACKAGES := git make gcc libc6-dev iproute2 util-linux procps chromium chromium-driver shellcheck fuse3 libfuse3-3 \
	clang-14 iperf3 user-mode-linux libpfm4-dev
ARGS ?=

# Ansible refuses to start in a locale that isn't UTF-8, which is what a bare machine has.
export LC_ALL ?= C.UTF-8
export PATH := $(CURDIR)/$(BIN):$(PATH)
export ANSIBLE_CONFIG := $(CURDIR)/ansible.cfg

.PHONY: help venv matrix $(PLAYBOOKS) test test-packages bench $(BENCHMARKS:%=bench-%) lint docs bpf clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z$$%()-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(RUN_STAMP): requirements.txt tools/venv.sh
	@tools/venv.sh $(VENV) requirements.txt

$(TEST_STAMP): requirements-test.txt requirements.txt tools/venv.sh
	@tools/venv.sh $(VENV) requirements-test.txt
	@touch $(RUN_STAMP)

venv: $(RUN_STAMP) ## Make the virtual environment .venv with the pinned requirements

matrix: $(RUN_STAMP) ## Make the testbed, run the matrix, judge and report
	$(BIN)/ansible-playbook site.yml $(ARGS)

preflight: ## Say what the hosts lack, before anything is changed
provision: ## Make the testbed without measuring
tune: ## Apply a policy to the nodes themselves: control groups, cache, host settings
calibrate: ## Show which effects this machine can detect, and how often it sees one that isn't there
bandwidth: ## Compare our bandwidth control with HTB, TBF and none, judge and report
kubernetes: ## Attach to a cluster or make one; ARGS="-i inventories/kubernetes_local" makes one on this machine
koordinator: ## The same, install Koordinator into it, and prove that it works
compare: ## Compare the run directories that ARGS names as compare_run_dirs
report: ## Write the report of a run again
reset: ## Put every host back as it was
$(PLAYBOOKS): $(RUN_STAMP)
	$(BIN)/ansible-playbook playbooks/$@.yml $(ARGS)

test-packages:
	@missing=(); for package in $(TEST_PACKAGES); do \
	  dpkg-query -W -f '$${Status}' $$package 2>/dev/null | grep -q 'ok installed' || missing+=($$package); \
	done; \
	if [ $${#missing[@]} -eq 0 ]; then exit 0; fi; \
	if [ "$$(id -u)" -ne 0 ]; then echo "tests need these packages, install them as root: $${missing[*]}" >&2; exit 1; fi; \
	echo "installing for the tests: $${missing[*]}"; \
	apt-get update -qq; \
	DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$${missing[@]}" >/dev/null

# Packages and environment take some of the time that CI gives to everything.
test: export COLOCATION_TESTBED_STARTED_S := $(shell date +%s)
test: test-packages $(TEST_STAMP) ## Run every test; choose with ARGS='-m "not molecule"'
	$(BIN)/pytest tests $(ARGS)

bench: $(BENCHMARKS:%=bench-%) ## Run every benchmark
bench-matrix: ## Run the matrix benchmark and write results/bench/matrix.json
bench-node: ## Time module cgroup with 200 groups and write results/bench/node.json
bench-bandwidth: ## Measure exactness, speed and cost of bandwidth; parts with ARGS="--only accuracy,cpu"
bench-kubernetes: ## Run the matrix on pods of a cluster of this machine and write results/bench/kubernetes.json
$(BENCHMARKS:%=bench-%): bench-%: $(RUN_STAMP)
	PYTHONPATH=$(CURDIR)/collections $(BIN)/python -m tools.bench $* $(ARGS)

lint: $(TEST_STAMP) ## Run the gates: linters, types, documentation, packaging, sanity
	$(BIN)/pytest -m gate tests/gates $(ARGS)

docs: $(TEST_STAMP) ## Render the pages of every module, role and plugin to build/docs
	@rm -rf build/docs && mkdir -p build/docs
	cd build/docs && $(CURDIR)/$(BIN)/antsibull-docs sphinx-init --use-current --squash-hierarchy --dest-dir . colocation.testbed >/dev/null
	cd build/docs && $(CURDIR)/$(BIN)/antsibull-docs collection --use-current --squash-hierarchy --fail-on-error --dest-dir rst colocation.testbed

bpf: ## Build the BPF objects again from files/bpf (clang 14)
	@python3 -m tools.bpf

clean: ## Remove the virtual environment and caches; results stay
	rm -rf $(VENV) build .ansible .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
