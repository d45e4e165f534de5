# A Python between 3.11 and 3.13; `make test PYTHON=python3.12` chooses another.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
PYTEST_ARGS ?=
# One more than there are cores: tests wait for disks and servers a quarter of their time.
WORKERS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile
ON_POSTGRES := $(addprefix tests/,cases contexts erasing face policy promises recall summaries)
PROMISES_ON_POSTGRES := tests/promises tests/recall/test_vectors_erased.py \
	$(addprefix tests/cases/test_,$(addsuffix _cases.py,erasure isolation))

.PHONY: demo test test-postgres test-promises-postgres test-all bench lint format types imports dist check clean help

help:            ## what there is to make
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/ -/'

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Mnemolog needs Python 3.11, 3.12 or 3.13"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-run: pyproject.toml $(BIN)/python
	$(PIP) install -e .
	@touch $@

$(VENV)/.installed-test: pyproject.toml $(BIN)/python
	$(PIP) install -e '.[fastembed,kafka,postgres,qdrant,s3,test]'
	@touch $@ $(VENV)/.installed-run

demo: $(VENV)/.installed-run          ## a week of an agent's work: remembered, corrected, erased, rebuilt
	$(BIN)/python examples/demo.py

test: $(VENV)/.installed-test         ## the suite, without what is marked slow
	$(PYTEST) -m "not slow" $(PYTEST_ARGS)

test-postgres: $(VENV)/.installed-test ## the promises again, with log and views in PostgreSQL
	MNEMOLOG_TEST_STORE=postgres $(PYTEST) -m "not slow" $(ON_POSTGRES) $(PYTEST_ARGS)

test-promises-postgres: $(VENV)/.installed-test ## a minute of it: views, recall, erasure and isolation
	HYPOTHESIS_PROFILE=short MNEMOLOG_TEST_STORE=postgres $(PYTEST) --dist load -m "not slow" \
		-k "not deep_in_its_stack" $(PROMISES_ON_POSTGRES) $(PYTEST_ARGS)

test-all: $(VENV)/.installed-test     ## the whole suite
	$(PYTEST) $(PYTEST_ARGS)

bench: $(VENV)/.installed-test        ## what it costs, beside a floor in the same run
	$(BIN)/python bench/throughput.py
	$(BIN)/python bench/lexical.py

lint: $(VENV)/.installed-test         ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.installed-test       ## ruff: mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.installed-test        ## mypy --strict
	$(BIN)/mypy -p mnemolog

imports: $(VENV)/.installed-test      ## imports point one way
	$(BIN)/lint-imports

dist: $(VENV)/.installed-test         ## build wheel and sdist; install and run each in an empty environment
	bash .ci/check_dist

check: test lint types imports        ## what to run before a change is handed in

clean:           ## remove what was built, not .venv
	rm -rf build dist demo-data src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -print | xargs rm -rf
