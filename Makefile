# Every target sets up what it needs: on a fresh machine `make demo` or `make test` is all there is to type.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SOURCES := cli core loaders preprocess writers latentprep
CONFIG ?= prep.yaml
TEST_WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help venv demo test chaos lint types svs sizes docs ci clean

help: ## This list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  make svs CONFIG=prep.yaml GPUS=8   ARGS=... is handed on to prep svs"

venv: $(STAMP) ## Python environment in .venv, with everything that tests need

# Installed again only when pyproject.toml changed.
$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "latentprep needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1 || echo missing)."; \
		echo "Name another one: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@echo "Installing latentprep and what it needs into $(VENV) (PyTorch is about 6 GB; this takes some minutes) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(STAMP) ## Make a small corpus, encode it on the CPU, and decode one row to a WAV
	$(BIN)/prep demo demo
	$(BIN)/prep svs --config demo/prep.yaml --device cpu --workers 2 --overwrite
	$(BIN)/prep decode demo_out --row 0 --wav demo/row0.wav
	@echo "prep is in $(VENV): type 'source $(BIN)/activate' once in a shell, or $(BIN)/prep"

test: $(STAMP) ## All tests
	@$(BIN)/python -m pytest -n $(TEST_WORKERS) $(ARGS)

chaos: $(STAMP) ## Kill, stop and damage real runs at random, and count what is lost (ARGS=--help)
	@$(BIN)/python -m tests.chaos.chaos $(ARGS)

lint: $(STAMP) ## Style and formatting
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(STAMP) ## Type check of the source folders
	@$(BIN)/pyright

svs: $(STAMP) ## prep svs with CONFIG and GPUS
	$(BIN)/prep svs --config $(CONFIG) $(if $(GPUS),--gpus $(GPUS)) $(ARGS)

sizes: $(STAMP) ## The ten longest files and functions
	@$(BIN)/python .ci/sizes.py $(SOURCES)

docs: $(STAMP) ## Write the generated pages anew: cli, faults, modules
	@$(BIN)/python docs/generate.py

ci: ## What continuous integration runs
	@.ci/run

clean: ## Remove caches, builds and the demo; keep .venv
	rm -rf build dist demo demo_out .pytest_cache .ruff_cache .hypothesis *.egg-info
	find $(SOURCES) tests -name __pycache__ -type d -prune -exec rm -rf {} +
