# Everything a contributor runs; continuous integration and pre-commit run the same targets.
# Each target makes what it needs: the environment .venv (no activation) and a release build of the core in it.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/.stamps
# Where `make bench` leaves its raw output; benches/results holds the runs that are kept.
RESULTS ?= target/bench-results

# rustup installs here, and a shell opened before does not know it yet.
export PATH := $(PATH):$(HOME)/.cargo/bin
export PYTHON VENV RESULTS
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
unexport CONDA_PREFIX PYTHONHOME PYTHONPATH

# Directories are listed too: their time changes when a file is added or removed.
RUST_SOURCES := $(shell find src crates -type d -o -name '*.rs') \
	$(wildcard Cargo.toml Cargo.lock crates/*/Cargo.toml rust-toolchain.toml)

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

.PHONY: demo
demo: $(STAMPS)/extension ## fit half a million image patches; the model and a figure go to demo/
	$(BIN)/python -m stickbreak.demo

.PHONY: test
test: $(STAMPS)/dev $(STAMPS)/extension ## all tests but the slow ones
	cargo test
	$(BIN)/python -m pytest

.PHONY: test-slow
test-slow: $(STAMPS)/dev $(STAMPS)/extension ## the slow tests
	cargo test -- --ignored
	$(BIN)/python -m pytest -m slow

.PHONY: lint
lint: $(STAMPS)/dev $(STAMPS)/extension stubs ## formatting, clippy, ruff, types, stubs, structure
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- --deny warnings
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/pre-commit validate-config
	$(BIN)/python scripts/check_structure.py

.PHONY: format
format: $(STAMPS)/dev ## format Rust and Python
	cargo fmt --all
	$(BIN)/ruff check --fix --exit-zero --quiet
	$(BIN)/ruff format

.PHONY: bench
bench: $(STAMPS)/dev $(STAMPS)/extension ## all benches; RESULTS=benches/results keeps the raw output
	mkdir -p $(RESULTS)
	cargo bench 2>&1 | tee $(RESULTS)/criterion.txt
	@for bench in $(basename $(notdir $(wildcard benches/*.py))); do \
		echo "benches/$$bench.py"; \
		$(BIN)/python benches/$$bench.py 2>&1 | tee $(RESULTS)/$$bench.txt; \
	done

.PHONY: papers
papers: $(STAMPS)/dev $(STAMPS)/extension ## the papers' experiments; RESULTS=benches/results keeps text and figures
	mkdir -p $(RESULTS)/papers
	@for experiment in blei_jordan blei_jordan_images memoized_toy memoized_toy_moves memoized_mnist memoized_ablation \
		memoized_patches sparse_mixtures; do \
		echo "benches/papers/$$experiment.py"; \
		$(BIN)/python benches/papers/$$experiment.py 2>&1 | tee $(RESULTS)/papers/$$experiment.txt; \
	done

.PHONY: docs
docs: $(STAMPS)/dev $(STAMPS)/extension ## the site in docs/_build/html and the core's pages in target/doc
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -b html docs docs/_build/html
	RUSTDOCFLAGS="--deny warnings" cargo doc --no-deps --package stickbreak
	@echo "Open docs/_build/html/index.html"

.PHONY: stubs
stubs: $(STAMPS)/dev $(STAMPS)/extension ## compare _core.pyi with the built module
	$(BIN)/python -m mypy.stubtest --allowlist tests/api/stubtest_allowlist.txt stickbreak._core

.PHONY: api
api: $(STAMPS)/dev $(STAMPS)/extension ## rewrite the snapshot of the public API, tests/api/public_api.txt
	$(BIN)/python scripts/public_api.py --write

.PHONY: build
build: $(STAMPS)/extension ## the release build of the core in .venv

# On Linux zig links against old versions of the C library, so that the wheel runs on all that are in use.
# The files of an sdist all have one old date: beside an earlier build, cargo takes changed ones for unchanged.
ifeq ($(shell uname -s),Linux)
WHEEL_OPTIONS := --zig --compatibility manylinux_2_17
endif

.PHONY: wheel
wheel: $(STAMPS)/wheel ## an sdist, and a wheel built from it, in dist/; what is in them is checked
	@scripts/setup.sh check
	rm -rf dist target/wheel
	CARGO_TARGET_DIR="$(CURDIR)/target/wheel" PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/maturin build --release --locked --sdist $(WHEEL_OPTIONS) --out dist
	$(BIN)/python scripts/check_wheel.py dist

.PHONY: test-wheel
test-wheel: wheel ## make wheel, then the tests from a new environment with only the wheel
	$(BIN)/python scripts/try_wheel.py dist

.PHONY: clean
clean: ## remove everything that make made
	rm -rf $(VENV) target dist demo docs/_build .pytest_cache .hypothesis .mypy_cache .ruff_cache
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

$(STAMPS)/dev: $(STAMPS)/venv pyproject.toml
	@echo "Installing the tools for tests, lint and docs"
	@scripts/setup.sh pip --group test --group lint --group docs
	@touch $@

$(STAMPS)/extension: $(STAMPS)/tools $(RUST_SOURCES)
	@scripts/setup.sh check
	PIP_QUIET=1 $(BIN)/maturin develop --release --extras demo
	@touch $@
