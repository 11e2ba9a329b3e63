# Everything a contributor runs; continuous integration runs the same targets.
# Each target makes what it needs: the environment .venv (no activation) and a build of the core in it. Tests, lint and
# docs share one that is quick to make and checks itself (the profile `dev`); `make demo`, benches and wheels are
# releases.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/.stamps
# Where `make bench` leaves its raw output; benches/results holds the runs that are kept.
RESULTS ?= target/bench-results

# The package and the tools install while the core compiles.
MAKEFLAGS += --jobs=2
# cargo has jobs of its own.
unexport MAKEFLAGS MFLAGS

# rustup installs here, and a shell opened before does not know it yet.
export PATH := $(PATH):$(HOME)/.cargo/bin
export PYTHON VENV RESULTS
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
unexport CONDA_PREFIX PYTHONHOME PYTHONPATH

# Extensions are loaded by an interpreter, so they link against none.
export PYO3_BUILD_EXTENSION_MODULE := 1

# A test has one thread unless threads are its subject (tests/conftest.py), and there is one process a core.
PYTEST := $(BIN)/python -m pytest --numprocesses auto --dist loadfile
# Not the example, a program that compiles the generic core again: the integration tests run it. (`cargo test --lib`
# would compile the binding as a test, which it has none of.)
TARGETS := --lib --tests

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile

.PHONY: demo
demo: release ## fit half a million image patches; the model and a figure go to demo/
	$(BIN)/python -m stickbreak.demo

.PHONY: test
test: $(STAMPS)/dev checked ## all tests but the slow and the long ones
	cargo test --tests
	cargo test --doc
	$(PYTEST)

.PHONY: test-moves
test-moves: $(STAMPS)/dev checked ## the tests of moves; with MOVE=delete those of one and of all together
	cargo test --tests moves::
	$(PYTEST) tests/moves $(if $(MOVE),-k "$(MOVE) or all")

.PHONY: test-slow
test-slow: $(STAMPS)/dev checked ## the slow tests: all combinations, real data, many rows
	cargo test --tests -- --ignored
	$(PYTEST) -m slow

.PHONY: test-long
test-long: $(STAMPS)/dev checked ## tests that take hours: Geweke, calibration, injected bugs, the papers
	$(PYTEST) -m long
	$(BIN)/python scripts/injected_bugs.py

.PHONY: lint
lint: $(STAMPS)/dev checked stubs ## formatting, clippy, ruff, types, stubs, structure
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- --deny warnings
	cargo clippy --locked --package stickbreak-python --features sections -- --deny warnings
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/pre-commit validate-config
	$(BIN)/python scripts/check_structure.py
	$(BIN)/python scripts/licences.py --check

.PHONY: format
format: $(STAMPS)/dev ## format Rust and Python
	cargo fmt --all
	$(BIN)/ruff check --fix --exit-zero --quiet
	$(BIN)/ruff format

.PHONY: bench
bench: $(STAMPS)/dev release ## all benches; RESULTS=benches/results keeps the raw output
	mkdir -p $(RESULTS)/rust
	@for bench in $(basename $(notdir $(wildcard benches/*.rs))); do \
		echo "benches/$$bench.rs"; \
		{ $(BIN)/python benches/common/head.py; cargo bench --quiet --package stickbreak-benches --bench $$bench; } \
			| tee $(RESULTS)/rust/$$bench.txt; \
	done
	@for bench in $(basename $(notdir $(wildcard benches/*.py))); do \
		echo "benches/$$bench.py"; \
		$(BIN)/python benches/$$bench.py 2>&1 | tee $(RESULTS)/$$bench.txt; \
	done

EXPERIMENTS := blei_jordan blei_jordan_images memoized_toy memoized_toy_moves memoized_mnist memoized_mnist_long memoized_ablation \
	memoized_patches sparse_mixtures sparse_topics tree_guided accelerated_vdp

.PHONY: papers
papers: $(STAMPS)/dev release ## the papers' experiments, or EXPERIMENT="one another"; RESULTS=benches/results keeps them
	mkdir -p $(RESULTS)/papers
	@for experiment in $(or $(EXPERIMENT),$(EXPERIMENTS)); do \
		echo "benches/papers/$$experiment.py"; \
		$(BIN)/python benches/papers/$$experiment.py 2>&1 | tee $(RESULTS)/papers/$$experiment.txt; \
	done

.PHONY: docs
docs: $(STAMPS)/dev checked ## the site in docs/_build/html and the core's pages in target/doc
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -b html docs docs/_build/html
	RUSTDOCFLAGS="--deny warnings" cargo doc --no-deps --package stickbreak
	@echo "Open docs/_build/html/index.html"

.PHONY: stubs
stubs: $(STAMPS)/dev checked ## compare _core.pyi with the built module
	$(BIN)/python -m mypy.stubtest --allowlist tests/api/stubtest_allowlist.txt stickbreak._core

.PHONY: api
api: $(STAMPS)/dev checked ## rewrite the snapshot of the public API, tests/api/public_api.txt
	$(BIN)/python scripts/public_api.py --write

.PHONY: build
build: release ## a release build of the core in .venv

# Cargo knows what is out of date. Built with the tests, the extension has their features, so they share the core. Both
# builds go to the same place in the package: it holds the one that was asked for last.
.PHONY: checked
checked: compiled $(STAMPS)/package ## the build of the core that tests run on, in .venv
	@scripts/setup.sh extension debug

.PHONY: compiled
compiled: $(STAMPS)/venv
	@scripts/setup.sh check
	cargo build $(TARGETS)

.PHONY: release
release: compiled-release $(STAMPS)/package
	@scripts/setup.sh extension release

.PHONY: compiled-release
compiled-release: $(STAMPS)/venv
	@scripts/setup.sh check
	cargo build --release --package stickbreak-python

# On Linux zig links against old versions of the C library, so that the wheel runs on all that are in use.
# The files of an sdist all have one old date: beside an earlier build, cargo takes changed ones for unchanged.
ifeq ($(shell uname -s),Linux)
WHEEL_OPTIONS := --zig --compatibility manylinux_2_17
endif

# An sdist has no benches, so cargo takes their crates out of its Cargo.lock, which `--locked` would forbid; that ours
# is whole is checked first.
.PHONY: wheel
wheel: $(STAMPS)/wheel ## an sdist, and a wheel built from it, in dist/; what is in them is checked
	@scripts/setup.sh check
	rm -rf dist target/wheel
	cargo metadata --locked --format-version 1 > /dev/null
	CARGO_TARGET_DIR="$(CURDIR)/target/wheel" PATH="$(CURDIR)/$(BIN):$$PATH" \
		$(BIN)/maturin build --release --sdist $(WHEEL_OPTIONS) --out dist
	$(BIN)/python scripts/check_wheel.py dist

# What is tried here is what is in a wheel, not its speed: without optimisation across crates it is built four times as
# fast.
.PHONY: test-wheel
test-wheel: export CARGO_PROFILE_RELEASE_LTO := off
test-wheel: export CARGO_PROFILE_RELEASE_CODEGEN_UNITS := 16
test-wheel: wheel ## make wheel, then tests of the surface and the laws in a new environment with only the wheel
	$(BIN)/python scripts/try_wheel.py dist tests/surface tests/laws docs README.md --pyargs stickbreak \
		--numprocesses auto --dist loadfile

.PHONY: clean
clean: ## remove everything that make made
	rm -rf $(VENV) target dist demo docs/_build docs/api docs/auto_gallery
	rm -rf .pytest_cache .hypothesis .mypy_cache .ruff_cache
	rm -f python/stickbreak/*.so
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMPS)/venv: scripts/setup.sh
	@scripts/setup.sh venv
	@mkdir -p $(STAMPS)
	@touch $@

$(STAMPS)/tools: $(STAMPS)/venv pyproject.toml
	@echo "Installing the build tools"
	@scripts/setup.sh pip --group build
	@touch $@

$(STAMPS)/wheel: $(STAMPS)/venv pyproject.toml
	@echo "Installing the tools for wheels"
	@scripts/setup.sh pip --group wheel
	@touch $@

# After the package: two pips at a time would be in each other's way.
$(STAMPS)/dev: $(STAMPS)/venv pyproject.toml | $(STAMPS)/package
	@echo "Installing the tools for tests, lint and docs"
	@scripts/setup.sh pip --group test --group lint --group docs
	@touch $@

$(STAMPS)/package: $(STAMPS)/tools pyproject.toml Cargo.toml scripts/install_editable.py
	@echo "Installing the package where it lies, and what it needs"
	@$(BIN)/python scripts/install_editable.py $(BIN)/maturin
	@touch $@
