# Two commands for a newcomer: `make demo` and `make test`. Everything else is listed by `make`.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready
CARGO  ?= cargo
VERIFIER := python/chronomemory/verify_log

.DEFAULT_GOAL := help
.PHONY: help demo test check format bench soak fuzz wheel build release clean

# How long, how many: make soak SOAK="--kills 10000 --only kill\ -9", make bench BENCH="--quick --only write"
SOAK ?=
BENCH ?=
FUZZ_SECONDS ?= 60

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/pip install --quiet --disable-pip-version-check --group dev "numpy>=1.26" "pydantic>=2.7" "rich>=13" "typer>=0.12"
	@touch $@

build: $(STAMP)  ## build the engine into the virtual environment, without the last optimisations
	VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --profile quick --quiet

release: $(STAMP)  ## build it as it is in a wheel
	VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --release --quiet

demo: build  ## see the main job on one screen
	$(BIN)/python -m chronomemory.demo

test: build  ## run all tests: the engine's, then Python's
	$(CARGO) test --workspace --exclude chronomemory-py --profile quick --quiet
	$(BIN)/python -m pytest -q -n auto --dist worksteal

check: build  ## format, lint and types
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy --strict tools/*.py
	MYPYPATH=$(VERIFIER) $(BIN)/mypy --strict --config-file= --explicit-package-bases $(VERIFIER)/[a-z]*.py
	$(BIN)/python -m mypy.stubtest chronomemory._core

format: $(STAMP)  ## put everything into shape
	$(CARGO) fmt --all
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: release  ## measure against peers and the physical limit; in five minutes with BENCH=--quick
	$(BIN)/pip install --quiet --disable-pip-version-check --group bench
	$(BIN)/python -m benches run $(BENCH)

soak: release  ## every fault harness for long: crashes, kills, faults, crowds, full disks, fuzzing
	$(BIN)/python tests/faults/soak.py $(SOAK)

fuzz: $(STAMP)  ## bend bytes for FUZZ_SECONDS; with cargo-fuzz and nightly its targets too
	CHRONOMEMORY_FUZZ_SECONDS=$(FUZZ_SECONDS) $(CARGO) test --profile quick --package chronomemory --test promises no_bytes_break_a_reader
	@if cargo fuzz --version >/dev/null 2>&1 && $(CARGO) +nightly --version >/dev/null 2>&1; then \
	  cd rust/engine && for target in json line log state; do \
	    $(CARGO) +nightly fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS) || exit 1; done; \
	else echo "cargo-fuzz or a nightly compiler is missing: only the seeded mutator ran"; fi

wheel: $(STAMP)  ## build a wheel into dist/
	$(BIN)/maturin build --release --strip --quiet --out dist

clean:  ## remove what the build made
	rm -rf $(VENV) dist python/chronomemory/_core*.so
	$(CARGO) clean
