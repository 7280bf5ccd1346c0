# Two commands to begin with: `make demo` and `make test`. `make help` lists the rest.
SHELL := /bin/bash
.DEFAULT_GOAL := help
VENV := .venv
PY := $(VENV)/bin/python
UV := $(shell command -v uv 2>/dev/null)
# Parallel workers of the default test run: two more than the machine has cores that this is measured on, since tests
# of whole programs wait more than they work.
WORKERS ?= 4
UV_CMD = $(or $(UV),build/uv/bin/uv)
# pytest keeps its rewritten modules only where bytecode may be written: half of what collecting the tests costs.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  \033[36m%-14s\033[0m %s\n", $$1, $$2}'

# uv makes the set-up a matter of seconds. Where it is missing, pip brings it into a virtual environment of its own,
# so nothing outside this folder changes. Bytecode is compiled here and now: where PYTHONDONTWRITEBYTECODE is set, as in
# many containers, every start of the program would else compile a thousand modules anew, which takes longer than they do.
build/uv/bin/uv:
	@python3 -m venv build/uv && build/uv/bin/pip install --quiet --disable-pip-version-check 'uv>=0.5'

$(VENV)/.ready: pyproject.toml requirements.lock $(if $(UV),,build/uv/bin/uv)
	@$(UV_CMD) venv --quiet --allow-existing --python '>=3.11' $(VENV)
	@$(UV_CMD) pip sync --quiet --compile-bytecode --python $(PY) --require-hashes requirements.lock
	@$(UV_CMD) pip install --quiet --python $(PY) --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: setup
setup: $(VENV)/.ready ## Make the virtual environment .venv from the lock file
	@$(PY) -m compileall -q -j 0 api controllers hack nodewright providers

.PHONY: demo
demo: setup ## Run the main job on the embedded control plane, live in the terminal
	@$(VENV)/bin/nodewright demo

.PHONY: up
up: setup ## Start the embedded control plane with the controllers, in the foreground
	@$(VENV)/bin/nodewright up

.PHONY: test
test: setup ## Lint, types, import contracts, and the tests: under ten minutes in all
	@$(MAKE) --no-print-directory -j2 --output-sync=target check collected
	@$(VENV)/bin/pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations=15 -m 'not slow and not e2e'

# The types take one core for half a minute. Meanwhile the other one rewrites the tests' modules, which each worker would
# do for itself in a new clone.
.PHONY: collected
collected: setup
	@found=$$($(VENV)/bin/pytest --collect-only -qq -n0 2>&1) || { tail -50 <<< "$$found"; exit 1; }

.PHONY: test-long
test-long: setup ## The slow tier: properties with ten times the examples, 1000 simulated schedules, SIGKILL under load, a real control plane, a minute of steady state
	@$(VENV)/bin/pytest -q -m 'slow and not openstack and not hosts'
	@$(VENV)/bin/pytest -q -m 'hypothesis and not slow' --hypothesis-profile thorough

N ?= 10
# So many of the N runs are without a load beside them.
QUIET ?= 0

.PHONY: deflake
deflake: setup ## Run the tests N times in random order beside a load on every core, and print what failed with its seed
	@$(PY) -m hack.deflake --runs $(N) --quiet $(QUIET) --workers $(WORKERS) $(if $(TESTS),-- $(TESTS))

.PHONY: e2e
# One after the other: each begins on a real control plane of its own, without what another has left there. tests/e2e
# runs on two planes at once, which halves its time: its tests wait more than they compute.
E2E = tests/kubectl tests/differential tests/api/test_real_server.py tests/runtime/test_faults_on_the_way.py \
  tests/runtime/test_real_workload_cluster.py tests/deploy/test_on_a_real_server.py tests/deploy/test_installing.py tests/gateways/test_webhook_on_a_real_server.py tests/gateways/cloudpool/test_on_a_real_plane.py tests/web/test_in_a_browser.py \
  tests/release/test_chart.py tests/release/test_chart_installed.py tests/release/test_krew.py tests/release/test_arm64.py
e2e: setup browser helm krew ## The main job with kubectl on the embedded and on a real control plane, both compared, and deploy/ on the real one
	@echo tests/e2e; $(VENV)/bin/pytest -q -n 2 --dist loadscope tests/e2e
	@echo "whole programs on the embedded plane"; $(VENV)/bin/pytest -q -n 2 --dist load -m 'e2e and not slow' tests --ignore tests/e2e --ignore tests/differential
	@for suite in $(E2E); do echo "$$suite"; $(VENV)/bin/pytest -q $$suite || exit 1; done

.PHONY: browser
browser: setup ## Find Chromium, or install Debian's, for the tests of the web view
	@$(PY) -m hack.browser

.PHONY: differential
differential: setup ## Compare the embedded plane with a real kube-apiserver, request by request
	@$(VENV)/bin/pytest -q tests/differential

.PHONY: check
check: setup lint types contracts verify ## All checks that run no test

.PHONY: lint
lint: setup
	@$(VENV)/bin/ruff check . && $(VENV)/bin/ruff format --check .

.PHONY: types
types: setup
	@$(VENV)/bin/mypy

.PHONY: contracts
contracts: setup
	@$(VENV)/bin/lint-imports

.PHONY: verify
verify: setup ## Prove that every generated file is current
	@$(PY) -m hack.crds --check
	@$(PY) -m hack.reference --check
	@$(PY) -m hack.features --check
	@$(PY) -m hack.runbooks --check
	@$(PY) -m hack.pictures --check
	@$(PY) -m hack.field_policy --check
	@$(PY) -m hack.proto --check

.PHONY: generate
generate: setup ## Write every generated file (CRDs, field tables, features, pictures)
	@$(PY) -m hack.crds --write
	@$(PY) -m hack.reference --write
	@$(PY) -m hack.features --write
	@$(PY) -m hack.runbooks --write
	@$(PY) -m hack.pictures --write
	@$(PY) -m hack.field_policy --write

.PHONY: proto
proto: setup ## Generate the Python code of the .proto files
	@$(PY) -m hack.proto --write

.PHONY: format
format: setup ## Format the code
	@$(VENV)/bin/ruff check --fix -q . ; $(VENV)/bin/ruff format -q .

.PHONY: e2e-gangs-1.37
e2e-gangs-1.37: setup ## Gangs with the kube-scheduler of Kubernetes 1.37 (builds its control plane once: many minutes of CPU)
	@$(PY) -c 'from hack import binaries as b; [b.ensure(n, b.NEXT) for n in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")]'
	@NODEWRIGHT_KUBERNETES=next $(VENV)/bin/pytest -q -n 0 tests/e2e/test_gangs.py

.PHONY: bench
bench: setup ## Print the benchmark tables and write build/bench.json
	@$(PY) -m hack.bench

.PHONY: bench-curves
bench-curves: setup ## Measure the autoscaler's loops at several sizes and draw docs/pictures/bench-*.svg
	@$(PY) -m hack.bench.curves

.PHONY: bench-race
bench-race: setup ## Our autoscaler beside Karpenter on one kube-apiserver (builds both once; about 45 minutes)
	@$(PY) -m hack.race

.PHONY: stories
stories: setup ## List the files of the decisions that three stories take (ADR 0023)
	@$(PY) -m pytest -q -s -p no:randomly tests/controllers/test_stories.py

.PHONY: simulate
simulate: setup ## 1000 random schedules with crashes, stale views and lost events
	@$(VENV)/bin/nodewright simulate

.PHONY: kubectl
kubectl: setup ## Find the stock kubectl, or build it as a pinned Go module
	@$(PY) -m hack.kubectl

.PHONY: lock
lock: ## Resolve the dependencies anew and write both lock files (hashes, no addresses)
	@$(UV_CMD) pip compile pyproject.toml --group dev --universal --generate-hashes --no-annotate --quiet \
	  --upgrade --custom-compile-command "make lock" --output-file requirements.lock
	@$(UV_CMD) pip compile pyproject.toml --constraint requirements.lock --universal --generate-hashes --no-annotate \
	  --quiet --extra externalgrpc --extra openstack --extra s3 --extra ssh \
	  --custom-compile-command "make lock" --output-file requirements-runtime.lock

.PHONY: real-plane
real-plane: setup ## Find the parts of a real control plane, or build them as pinned Go modules (minutes, once)
	@$(PY) -m hack.binaries etcd kube-apiserver kube-controller-manager kube-scheduler

.PHONY: cluster-autoscaler
cluster-autoscaler: setup ## Find a Cluster Autoscaler (CLUSTER_AUTOSCALER), or build the stand-in that plays its calls
	@$(PY) -m hack.autoscaler

.PHONY: openstack
openstack: setup ## A real OpenStack on this machine until Ctrl-C, installed if need be; prints where its clouds.yaml is
	@$(PY) -m hack.openstack

.PHONY: e2e-openstack
e2e-openstack: setup ## The provider's contract and fleets of servers on a real OpenStack (docs/providers/openstack.md)
	@$(PY) -m hack.openstack --install
	@$(VENV)/bin/pytest -q -s tests/openstack

.PHONY: e2e-openstack-long
e2e-openstack-long: setup ## The same fleets, 50 servers at a time, a hundred of them in bad times
	@$(PY) -m hack.openstack --install
	@NODEWRIGHT_OPENSTACK_SERVERS=50 NODEWRIGHT_OPENSTACK_WAVES=2 $(VENV)/bin/pytest -q -s tests/openstack/test_main_job.py

.PHONY: lab
lab: setup ## Real hosts on this machine: installs and builds what they need (root, Debian), then says how to use them
	@$(PY) -m hack.hosts install
	@$(UV_CMD) pip install --quiet --python $(PY) --no-deps --no-build-isolation --editable hack/hosts/provider

.PHONY: e2e-hosts
e2e-hosts: lab ## Real hosts join clusters: cloud-init, SSH, containerd, kubeadm, kubelet (docs/tasks/join.md)
	@$(VENV)/bin/pytest -q tests/hosts --ignore tests/hosts/clusters -m "not hosts_long"

.PHONY: e2e-clusters
e2e-clusters: lab ## Real hosts become clusters: kubeadm init, etcd, upgrades, create cluster (docs/tasks/make-a-cluster.md)
	@$(VENV)/bin/pytest -q tests/hosts/clusters -m "not hosts_long"

.PHONY: e2e-hosts-long
e2e-hosts-long: lab ## All tests on real hosts, those that take long too
	@$(VENV)/bin/pytest -q tests/hosts

.PHONY: openstack-lock
openstack-lock: ## Resolve the OpenStack of the tests anew and write its lock file (hashes, no addresses)
	@$(UV_CMD) pip compile hack/openstack/requirements.in --python-version 3.11 --universal --generate-hashes \
	  --no-annotate --quiet --upgrade --custom-compile-command "make openstack-lock" \
	  --output-file hack/openstack/requirements.lock

.PHONY: image
image: setup build/uv/bin/uv ## The container image as an OCI archive, without a daemon (ARCH=amd64,arm64)
	@$(PY) -m hack.release image --arch $(ARCH)

ARCH ?= amd64
KEY ?=
# Anything, such as 1: signs by an identity. TRUST_CONFIG=FILE is for a private Sigstore. TOKEN_FILE=FILE has the token.
SIGSTORE ?=
TRUST_CONFIG ?=
TOKEN_FILE ?=

.PHONY: release
release: setup build/uv/bin/uv ## All artefacts of a release into dist/, signed by KEY=FILE or SIGSTORE=1 if given (docs/releasing.md)
	@$(PY) -m hack.release make --arch $(ARCH) --out dist $(if $(KEY),--key $(KEY)) $(if $(SIGSTORE),--sigstore) \
	  $(if $(TRUST_CONFIG),--trust-config $(TRUST_CONFIG)) $(if $(TOKEN_FILE),--identity-token-file $(TOKEN_FILE))

.PHONY: release-twice
# Bundles of Sigstore hold a new key and a time each: the second release has none, so that no log gets entries for it.
release-twice: release ## Make the release again and prove that it has the same bytes
	@$(PY) -m hack.release make --arch $(ARCH) --out build/release-again $(if $(KEY),--key $(KEY)) > /dev/null
	@diff -r --exclude='*.sigstore.json' dist build/release-again && echo "both releases have the same bytes"

.PHONY: site
site: setup ## The documentation as a site in build/site; a broken link or anchor fails (docs/releasing.md)
	@$(PY) -m hack.site

.PHONY: helm
helm: setup ## Find helm, or build it as a pinned Go module (minutes, once)
	@$(PY) -m hack.pinned helm

.PHONY: e2e-sigstore
e2e-sigstore: setup ## Sign and check by a real Sigstore on this machine (builds Fulcio, a CT log, Rekor and a TSA once: minutes)
	@$(PY) -m hack.pinned fulcio tesseract rekor tsa
	@CI=true $(VENV)/bin/pytest -q -n 0 tests/release/test_sigstore.py

.PHONY: krew
krew: setup ## Find krew, or build it as a pinned Go module (a minute, once)
	@$(PY) -m hack.pinned krew

.PHONY: clean
clean: ## Remove what was built (the virtual environment too)
	@rm -rf build dist $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .nodewright
