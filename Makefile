# What CI runs is what a person runs. Each target works alone on a fresh clone.

PYTHON ?= python3
ARGS ?=
BGT_CHROMIUM ?= $(shell for name in chromium chromium-browser google-chrome; do command -v $$name && break; done)
BIN := .venv/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
# tests/conftest.py deals out the tests; each worker is a process that needs about a gigabyte
WORKERS := --numprocesses auto --maxprocesses 8 --dist loadfile --no-loadscope-reorder

# With torch, whose build depends on the machine, come those of CUDA.
UNHASHED := torch triton cuda-bindings cuda-pathfinder cuda-toolkit $(addprefix nvidia-,cublas cuda-cupti cuda-nvrtc \
  cuda-runtime cudnn-cu13 cufft cufile curand cusolver cusparse cusparselt-cu13 nccl-cu13 nvjitlink nvshmem-cu13 nvtx)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help app test test-all check mutants lock docs bench clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

app: .venv/with-app ## install what the app needs and open it; ARGS="--model PATH" reaches the app
	$(BIN)/bgt app $(ARGS)

test: check ## check, then all tests but the longest, in parallel; ARGS="-k probes" reaches pytest, ARGS="-m 'not slow'" is quicker
test-all: check ## check and all tests, as CI runs them
test: LESS := -m "not long"
test test-all:
	@$(if $(BGT_CHROMIUM),,echo "Browser tests skipped: no Chromium found. Install one, or set BGT_CHROMIUM to its path.")
	BGT_CHROMIUM="$(BGT_CHROMIUM)" $(BIN)/python -m pytest $(WORKERS) $(LESS) $(ARGS)

check: .venv/with-dev ## lint, formatting, import contracts, types; how many lines, commands and options there are
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/python -m tests.sizes

docs: .venv/with-dev ## guide, API pages and all other documents as one site: site/index.html
	NO_MKDOCS_2_WARNING=1 SITE_NAME="bgt $$($(BIN)/bgt --version)" $(BIN)/mkdocs build --quiet $(ARGS)

mutants: .venv/with-mutants ## change one thing of a core formula at a time: a test should fail for each; hours
	$(BIN)/mutmut run $(ARGS)

bench: .venv/with-bench ## measure every figure of bench/RESULTS.md anew; ARGS="training app" only these pages
	$(BIN)/python -m bench $(ARGS)

clean: ## remove the environment and every cache; runs and data stay
	rm -rf .venv dist site mutants *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis .import_linter_cache
	find app bgt_core probes tests bench analysis docs examples -name __pycache__ -prune -exec rm -rf {} +

# .venv/with-EXTRA is a stamp: it is made again when the wanted versions change, and costs nothing otherwise.
.venv/with-app .venv/with-dev: .venv/with-%: .venv/with-torch requirements/%.txt pyproject.toml
	$(PIP) install --require-hashes --no-deps --requirement requirements/$*.txt
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

.venv/with-bench .venv/with-mutants: .venv/with-%: .venv/with-torch pyproject.toml
	$(PIP) install --constraint constraints.txt --editable ".[$*]"
	@touch $@

lock: constraints.txt pyproject.toml ## write the hashes of all that `make app` and `make test` install into requirements
	$(PYTHON) -m venv .venv/lock
	.venv/lock/bin/python -m pip --quiet --disable-pip-version-check install uv
	for extra in app dev; do .venv/lock/bin/uv pip compile --quiet pyproject.toml --extra $$extra --group build \
	  --constraint constraints.txt --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	  $(addprefix --no-emit-package ,$(UNHASHED)) --output-file requirements/$$extra.txt || exit; done

# First and alone, so that no other requirement chooses which build of torch arrives.
.venv/with-torch: constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	  "Python 3.11 or newer is needed, %s is %s; try: make PYTHON=python3.11" % (sys.executable, sys.version.split()[0]))'
	$(PYTHON) -m venv .venv
	$(PIP) install $$(grep '^torch==' constraints.txt)
	@touch $@
