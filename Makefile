# All set-up happens here: only Python 3.11 or later with pip and venv is expected to be there.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORKERS ?= 2

.PHONY: demo test lint benchmark-quick clean

$(VENV)/.made-%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	touch $@

demo: $(VENV)/.made-demo
	$(BIN)/python -m pmdc.demo --out out

test: $(VENV)/.made-test
	$(BIN)/python -m pytest --numprocesses $(WORKERS)

lint: $(VENV)/.made-test $(VENV)/.made-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Small tables, three folds; needs the benchmark tables (PMDC_DATA or ../shared/data). Continues where it was stopped.
benchmark-quick: $(VENV)/.made-benchmark
	$(BIN)/pmdc benchmark --quick --jobs $(WORKERS) --out out/benchmark-quick

clean:
	rm -rf $(VENV) out
