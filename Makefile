# Targets: demo, test, fuzz, lint, fmt, bench. On a machine with Python 3.11+, git and make each of them sets up what it needs.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3.14 python3; do command -v $$p >/dev/null 2>&1 && $$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TIERS ?= unit local slurm

.PHONY: demo test fuzz lint fmt bench lock clean

$(READY): pyproject.toml requirements/dev.txt
	@test -n "$(PYTHON)" || { echo "make: no Python 3.11 or newer with venv found; set PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fmt: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

test: $(READY)
	$(BIN)/python -m tests.tiers $(TIERS)

fuzz: $(READY)
	EXAMPLES=$(or $(EXAMPLES),5000) $(BIN)/python -m pytest -q -m unit tests/unit -k "$(ONLY)"

demo: $(READY)
	$(BIN)/python examples/demo $(if $(SLURM),--slurm,) $(if $(ROOT),--root $(ROOT),) $(if $(IMAGE),--image $(IMAGE),)

bench: $(READY)
	$(BIN)/python -m tests.bench $(if $(ONLY),--only $(ONLY),)

lock: $(READY)
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --extra dev --no-header --no-emit-index-url --no-emit-find-links --no-annotate -o requirements/dev.txt pyproject.toml

clean:
	rm -rf $(VENV) build dist
