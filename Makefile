# Each target builds what it needs in .venv; PYTHON chooses the interpreter for it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PAPERS := paper-yytkw06 paper-lyz09 paper-g13

.PHONY: help demo test test-slow lint bench docs papers $(PAPERS) clean

help:
	@echo "make demo       fit the models on bundled data and write a report"
	@echo "make test       the test suite"
	@echo "make test-slow  the long statistical tests"
	@echo "make lint       format, lint and types"
	@echo "make bench      benchmarks against peers, results in benchmarks/results"
	@echo "make papers     the papers' tables again, with the data of GNOMON_DATA"
	@echo "make docs       the documentation, in docs/_build/html"

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[plot,cli,files,dask,graph,label]" --group test
	touch $@

demo: $(READY)
	$(BIN)/gnomon demo --out demo

test: $(READY)
	$(BIN)/python -m pytest -n 2

test-slow: $(READY)
	$(BIN)/python -m pytest -n 2 -m slow

lint: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/codespell

bench: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group bench
	for script in benchmarks/*.py; do PYTHONPATH=. $(BIN)/python $$script || exit 1; done
	$(BIN)/python docs/figures.py

docs: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

# OPTIONS=--quick for few repeats on small sets, kept apart; a run that was stopped goes on.
papers: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group bench
	$(MAKE) --jobs 2 $(PAPERS)
ifeq ($(findstring --quick,$(OPTIONS)),)
	$(BIN)/python -m benchmarks.dcagm_accuracy
	PYTHONPATH=. $(BIN)/python benchmarks/prpca_accuracy.py
	$(BIN)/python -m benchmarks.papers.pictures
	$(BIN)/python -m benchmarks.papers.page
	$(BIN)/python docs/figures.py
endif

# One thread for each, so that two run side by side.
$(PAPERS): paper-%: $(READY)
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.papers.$* $(OPTIONS)

clean:
	rm -rf $(VENV) docs/_build docs/api docs/gallery demo
