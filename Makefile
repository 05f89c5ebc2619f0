# Every target works on a fresh checkout: it does the set-up it needs by itself.

PYTHON ?= python3
WORKERS ?= 2
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
BOOTSTRAP := .cache/virtualenv
#: Where tests are that start Spark, but for campaigns: to look through all others takes longer.
ON_SPARK := tests/engine
# Tests start Python hundreds of times, which takes half as long again if nothing is kept.
unexport PYTHONDONTWRITEBYTECODE
NO_VENV := setup: cannot make a virtual environment here; run "apt install python3-venv", then make again
OLD_PYTHON := setup: $(PYTHON) is not Python 3.11 or newer; run "make PYTHON=/path/to/a/newer/python3 setup"

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast test-spark proof compare lint types format golden replay-plans bench site clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP)  ## create .venv and install the pinned dependencies
	@:

# The stamp is written last, so that an interrupted installation is taken up again.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo '$(OLD_PYTHON)' >&2; exit 1; }
	@echo 'setup: installing the versions of constraints.txt into $(VENV) (a minute or two)'
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || $(MAKE) -s $(BIN)/pip
	@$(BIN)/pip install -qq -c constraints.txt -e '.[spark,server,dev]'
	@touch $@
	@echo "setup: $$($(BIN)/python -m millstream.engine.spark.archive)"

# Some systems split ensurepip off from Python; virtualenv brings its own pip.
$(BIN)/pip:
	@$(PYTHON) -m pip install -qq --target $(BOOTSTRAP) virtualenv \
		&& PYTHONPATH=$(BOOTSTRAP) $(PYTHON) -m virtualenv -q --clear $(VENV) \
		|| { echo '$(NO_VENV)' >&2; exit 1; }

demo: setup  ## run the main job on generated data and show the result
	@$(BIN)/millstream demo

test: setup  ## run every test except the long campaigns of `proof`
	@$(BIN)/pytest -n $(WORKERS) --dist worksteal -m 'not spark and not proof'
	@$(BIN)/pytest -n $(WORKERS) --dist worksteal -m 'spark and not proof' $(ON_SPARK)

test-fast: setup  ## run the tests for every minute of work: no Spark, under 60 s
	@$(BIN)/pytest -q -n $(WORKERS) --dist worksteal -m 'not spark and not slow and not proof'

test-spark: setup  ## run the tests that start Spark
	@$(BIN)/pytest -n $(WORKERS) --dist worksteal -m 'spark and not proof' $(ON_SPARK)

proof: setup  ## run the long campaigns
	@$(BIN)/pytest -m proof --hypothesis-profile searching

compare: setup  ## compare with the values kept in workbooks: make compare FOLDER=...
	@$(BIN)/python -m tests.languages.sheets.corpus '$(FOLDER)'

lint: setup  ## check style and format
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check

types: setup  ## check types
	@$(BIN)/mypy

format: setup  ## format the code and mend what ruff can mend
	@$(BIN)/ruff check --fix --exit-zero
	@$(BIN)/ruff format

golden: setup  ## write the expected outputs anew; read the difference before committing it
	@MILLSTREAM_UPDATE_GOLDEN=1 $(BIN)/pytest -q -m 'not spark and not proof' -k golden

# UPDATE=1 writes them anew.
replay-plans: setup  ## compare what becomes of every example, stage by stage, with the kept texts
	@$(if $(UPDATE),MILLSTREAM_UPDATE_GOLDEN=1) $(BIN)/pytest -q tests/replay

bench: setup  ## run the benchmarks
	@$(BIN)/millstream bench

site: setup  ## build the pages of docs/ as a site, in build/site
	@$(BIN)/pip install -qq -c constraints.txt mkdocs-material
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build -q --strict
	@echo 'site: build/site/index.html'

clean:  ## delete everything that make creates
	@rm -rf $(VENV) .cache .hypothesis build dist bench/output
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
