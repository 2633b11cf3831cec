# Everything that can be done here, one target each; `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
RUST := $(shell find rust -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
CARGO_TEST := $(shell command -v cargo-nextest >/dev/null 2>&1 && echo 'nextest run' || echo test)

.DEFAULT_GOAL := help
.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## (.*)/  make \1|\2/' | column -t -s '|'

$(READY): pyproject.toml models/minilm/pyproject.toml $(RUST)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet ./models/minilm --editable '.[local]' --group dev
	@touch $@

.PHONY: build
build: $(READY) ## set up .venv with mnemic (release build), its model and the tools

.PHONY: demo
demo: $(READY) ## store a conversation, ask it questions, close, reopen, ask again
	$(BIN)/python -m mnemic.demo

.PHONY: test
test: test-rust test-python ## run all tests

.PHONY: test-rust
test-rust: ## tests of the core crate
	cargo $(CARGO_TEST) --locked --package mnemic-core
	cargo test --locked --quiet --package mnemic-core --doc

.PHONY: test-python
test-python: $(READY) ## tests of the package
	$(BIN)/python -m pytest

.PHONY: check
check: lint test ## format, lint, types, stubs, import floors, tests

.PHONY: lint
lint: format-check lint-rust lint-python types stubs floors ## everything of check but the tests

.PHONY: format
format: $(READY) ## rewrite the sources in house format
	cargo fmt --all
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix-only --quiet .

.PHONY: format-check
format-check: $(READY) ## fail where format would change something
	cargo fmt --all --check
	$(BIN)/ruff format --check .

.PHONY: lint-rust
lint-rust: ## clippy on all targets
	cargo clippy --locked --workspace --all-targets -- --deny warnings

.PHONY: lint-python
lint-python: $(READY) ## ruff
	$(BIN)/ruff check .

.PHONY: types
types: $(READY) ## mypy strict and basedpyright
	$(BIN)/mypy
	$(BIN)/basedpyright

.PHONY: stubs
stubs: $(READY) ## compare _core.pyi with the extension
	$(BIN)/python -m mypy.stubtest mnemic._core

.PHONY: floors
floors: $(READY) ## imports go downward only
	$(BIN)/lint-imports

.PHONY: clean
clean: ## remove what was built
	rm -rf target $(VENV) dist
