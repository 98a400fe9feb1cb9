# Every task of this project, one target each; `make` alone lists them.

# rustup puts cargo here, but an open shell may not know it yet.
export PATH := $(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH)
# The kernel's test binaries are linked without Python, so that no machine needs its shared library.
export PYO3_BUILD_EXTENSION_MODULE := 1
export PYO3_PYTHON := $(CURDIR)/.venv/bin/python

python := .venv/bin/python
kernel := src/penstock/_kernel.abi3.so
kernel_sources := $(shell find kernel/src -name '*.rs' 2>/dev/null) kernel/Cargo.toml $(wildcard kernel/Cargo.lock)
cargo_flags := --manifest-path kernel/Cargo.toml $(if $(CI),--locked)

# Leaves the first Python that is new enough in $$python, or says what to do.
define find_python
for python in $(or $(PYTHON),python3 python3.15 python3.14 python3.13 python3.12 python3.11 python3.10); do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && break; python=; \
done; \
if [ -z "$$python" ]; then \
	echo "Penstock needs Python 3.10 or newer: install it, or name one with 'make PYTHON=/path/to/python3'." >&2; \
	exit 1; \
fi; \
if ! "$$python" -c 'import ensurepip, venv' 2>/dev/null; then \
	echo "This Python cannot make virtual environments: install its venv package (Debian: python3-venv)." >&2; \
	exit 1; \
fi
endef

# Passes when cargo is new enough and there is a linker for it, or says what to do.
define find_rust
set -- $$(cargo --version 2>/dev/null | sed -n 's/^cargo \([0-9]*\)\.\([0-9]*\)\..*/\1 \2/p') 0 0; \
if [ "$$1" -lt 2 ] && { [ "$$1" -lt 1 ] || [ "$$2" -lt 85 ]; }; then \
	echo "Penstock needs Rust 1.85 or newer: install it from https://rustup.rs or as your distribution's package." >&2; \
	exit 1; \
fi; \
if ! command -v cc >/dev/null; then \
	echo "Rust needs a C linker: install a C compiler such as gcc (Debian: build-essential)." >&2; \
	exit 1; \
fi
endef

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# The steps of `check` stand in an order, and cargo uses every core by itself.
.NOTPARALLEL:
.PHONY: help build demo test test-kernel lint format check bench torture clean

help:  ## List the targets
	@sed -n 's/^\([a-z-]*\):.*  ## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | \
		while IFS='|' read -r target text; do printf '  make %-12s %s\n' "$$target" "$$text"; done

build: $(kernel)  ## Build the kernel and install Penstock and its tools in .venv

demo: build  ## Run the example
	$(python) examples/demo.py

test: build  ## Run the tests (ARGS="-k roll" hands pytest more)
	$(python) -m pytest $(ARGS)

test-kernel: .venv/.tools  ## Run the Rust tests of the kernel
	cargo test $(cargo_flags)

lint: build  ## Check style, types, stubs and layers, in Python and in Rust
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	$(python) -m mypy.stubtest --mypy-config-file pyproject.toml penstock._kernel
	.venv/bin/lint-imports
	cargo fmt --manifest-path kernel/Cargo.toml --check
	cargo clippy $(cargo_flags) --all-targets -- -D warnings

format:  .venv/.tools  ## Lay out Python and Rust as `lint` wants it
	.venv/bin/ruff check --fix
	.venv/bin/ruff format
	cargo fmt --manifest-path kernel/Cargo.toml

check: lint test-kernel test  ## All of the above that can fail: what CI runs

bench: build .venv-bench/.tools  ## Measure against other queues (ARGS="--help" tells more)
	.venv-bench/bin/python bench/run.py $(ARGS)

torture: build  ## Kill writers and damage files at random, for longer than `test` does
	$(python) -m tests.torture $(ARGS)

clean:  ## Delete all that was built, the environments too
	rm -rf .venv .venv-bench kernel/target src/penstock/_kernel*.so
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.tools: pyproject.toml
	@$(find_python); $(find_rust); \
	[ -f $@ ] || "$$python" -m venv --clear .venv
	$(python) -m pip install --quiet pip==26.3
	$(python) -m pip install --quiet --group dev
	@touch $@

$(kernel): .venv/.tools $(kernel_sources)
	@$(find_rust)
	VIRTUAL_ENV=$(CURDIR)/.venv .venv/bin/maturin develop --release $(if $(CI),--locked)
	@touch $@

# The rivals stay out of .venv, so that nothing of ours comes to lean on them.
.venv-bench/.tools: bench/requirements.txt pyproject.toml
	@$(find_python); \
	[ -f $@ ] || "$$python" -m venv --clear .venv-bench
	.venv-bench/bin/python -m pip install --quiet -r bench/requirements.txt
	.venv-bench/bin/python -m pip install --quiet --editable .
	@touch $@
