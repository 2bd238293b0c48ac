# Needs only Python 3.11 or later with pip and venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORKERS ?= 2

.PHONY: demo test browser-test lint coverage explore errata benchmark-quick clean

$(VENV)/.made-%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	touch $@

demo: $(VENV)/.made-demo
	$(BIN)/python -m pmdc.demo --out out

test: $(VENV)/.made-test
	$(BIN)/python -m pytest --numprocesses $(WORKERS)

# Reports and the explorer in Chromium, which must be installed: see CONTRIBUTING.md.
browser-test: $(VENV)/.made-browser
	$(BIN)/python -m pytest tests/report/page/test_browser.py tests/explore/page

lint: $(VENV)/.made-test $(VENV)/.made-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The second run executes the compiled kernels as plain Python, which coverage can measure.
KERNEL_TESTS := tests/learners/test_twins.py tests/learners/test_naive_bayes.py tests/inference/test_kernels.py \
	tests/search/test_kernels.py tests/search/test_clusters.py
coverage: $(VENV)/.made-coverage
	rm -f .coverage .coverage.*
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --cov --cov-report=
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest --numprocesses $(WORKERS) --cov --cov-append --cov-report= $(KERNEL_TESTS)
	$(BIN)/coverage report --skip-covered

# New random examples in each run, instead of the same ones.
explore: $(VENV)/.made-test
	HYPOTHESIS_PROFILE=explore $(BIN)/python -m pytest --numprocesses $(WORKERS)

# The computations behind docs/errata/README.md.
errata: $(VENV)/.made-test
	$(BIN)/python -m pytest docs/errata

# Three small tables, three folds; needs the benchmark tables (PMDC_DATA). Continues a run that was stopped.
benchmark-quick: $(VENV)/.made-benchmark
	$(BIN)/pmdc benchmark --quick --jobs $(WORKERS) --out out/benchmark-quick

clean:
	rm -rf $(VENV) out
