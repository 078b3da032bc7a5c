# Every target sets up what it needs in .venv, once, with the exact versions of constraints.txt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# pip shows what it downloads on a terminal; in a build log it draws no bars, so that the log stays readable. Bytecode is
# made at the first import, of what is imported: making it of everything takes ten seconds more.
BARS := $(shell test -t 2 && echo on || echo off)
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input install --progress-bar $(BARS) --no-compile -c constraints.txt
# Size of the downloads: said once, before the first of them.
SIZE := echo 'Installing into $(VENV): about 480 MB of packages, once, some minutes by network.'

# The fold runs its own threads: a threaded BLAS beside them only slows both down.
export OPENBLAS_NUM_THREADS := 1
# Where this variable is set, each of the commands that tests start compiles all of its modules again: twice the CPU time.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo studio test test-slow fuzz reproduce-whole mutants coverage bench lint docs constraints clean

demo: $(VENV)/.warm
	$(BIN)/dynid demo

studio: $(VENV)/.studio
	$(BIN)/dynid studio

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist worksteal -q -m "not slow"

test-slow: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist worksteal -q -m slow || test $$? -eq 5  # 5: there is no slow test

# 20,000 inputs, a fifth of them hostile files, some 20 minutes of one core (the slow tests have 4,250);
# DYNID_FUZZ_SEED=N for others.
fuzz: $(VENV)/.dev
	DYNID_FUZZ_CASES=$${DYNID_FUZZ_CASES:-20000} $(BIN)/python -m pytest -n 2 -q -m slow tests/fuzz

# The studies that `dynid reproduce --all` runs in a smaller size, whole: about half an hour of one core, once a week.
WHOLE := actuator-faults actuators contact-iiwa coverage floating-faults friction-choice iv-monte-carlo silent simionato-coefficients standard-errors \
	tx40-pc-iv verdict verdict-real verdict-thresholds
reproduce-whole: $(VENV)/.dev
	for name in $(WHOLE); do $(BIN)/dynid reproduce $$name || failed="$$failed $$name"; done; test -z "$$failed"

# Mutation testing of the core algebra, a sample of 40; MUTANTS='--count 200 --seed 2' for others.
mutants: $(VENV)/.dev
	$(BIN)/python tests/mutants.py $(MUTANTS)

# Share of the lines of src that the quick tests run.
coverage: $(VENV)/.dev
	$(PIP) coverage
	$(BIN)/python -m coverage run --source src/dynid -m pytest -q -m "not slow"
	$(BIN)/python -m coverage report --skip-covered --sort cover

bench: $(VENV)/.dev
	$(BIN)/dynid bench --all

lint: $(VENV)/.dev
	$(BIN)/ruff check src tests benchmarks reproductions docs examples
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

docs: $(VENV)/.docs
	rm -rf site
	$(BIN)/python -m sphinx -b html -W --keep-going -q -d build/docs docs site
	@echo 'open site/index.html'

# After an upgrade in .venv: write down the versions that pass the tests.
constraints: $(VENV)/.dev
	{ head -n 1 constraints.txt; $(BIN)/python -m pip freeze --exclude-editable; } > constraints.new
	mv constraints.new constraints.txt

clean:
	rm -rf $(VENV) site build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dynid needs Python 3.11 or later; choose one with: make PYTHON=python3.12 ...")'
	@$(SIZE)
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.run: pyproject.toml constraints.txt | $(VENV)/.python
	$(PIP) -e .
	touch $@

# What all commands use is compiled for this machine, once.
$(VENV)/.warm: | $(VENV)/.run
	$(BIN)/dynid warmup
	touch $@

$(VENV)/.studio: pyproject.toml constraints.txt | $(VENV)/.python
	$(PIP) -e '.[studio]'
	$(BIN)/dynid warmup
	touch $@

$(VENV)/.docs: pyproject.toml constraints.txt | $(VENV)/.python
	$(PIP) -e '.[docs]'
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/.python
	$(PIP) -e '.[dev]'
	touch $@
