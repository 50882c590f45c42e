# Each target builds what it needs in .venv; PYTHON chooses the interpreter for it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# What tests the tests and the posteriors, for an hour or two: make trust.
TRUST := covering mutants repeats faults sbc_bsdr calibration_posteriors
BENCHMARKS := $(filter-out $(TRUST:%=benchmarks/%.py),$(wildcard benchmarks/*.py))
PAPERS := paper-yytkw06 paper-lyz09 paper-g13

.PHONY: help demo test test-slow test-anndata test-docs test-versions test-floor test-newest lint audit bench trust docs dist papers $(PAPERS) clean

help:
	@echo "make demo       fit the models on bundled data and write a report"
	@echo "make test       the test suite"
	@echo "make test-slow  the long statistical tests"
	@echo "make test-anndata  models on AnnData and scanpy, in an environment of their own"
	@echo "make test-docs  every built page in a browser"
	@echo "make test-versions  the test suite with the oldest versions allowed and with the newest"
	@echo "make dist       wheel and source archive, installed elsewhere and tested"
	@echo "make lint       format, lint and types"
	@echo "make audit      installed packages against known vulnerabilities, without a network"
	@echo "make bench      benchmarks against peers, results in benchmarks/results"
	@echo "make trust      mutants, faults and calibration, results in benchmarks/results and on their page"
	@echo "make papers     the papers' tables again, with the data of GNOMON_DATA"
	@echo "make docs       the documentation, in docs/_build/html"

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[plot,cli,files,dask,graph,label,onnx]" --group test
	touch $@

demo: $(READY)
	$(BIN)/gnomon demo --out demo

test: $(READY)
	$(BIN)/python -m pytest -n 2

test-slow: $(READY)
	$(BIN)/python -m pytest -n 2 -m slow

# anndata asks for other versions of pandas than the rest does, hence an environment of its own.
test-anndata:
	$(PYTHON) -m venv .venv-anndata
	.venv-anndata/bin/python -m pip install --quiet --disable-pip-version-check ".[anndata,plot,cli,files]" scanpy pytest
	.venv-anndata/bin/python -m pytest -q tests/test_io.py tests/tools/test_formats.py

test-docs: $(READY)
	$(BIN)/python -m pytest -q -m pages tests/test_pages.py

# Two environments: the oldest version of every package that pyproject.toml allows, and the newest.
# uv finds them in seconds, for which pip needs minutes; compiled at once, since the oldest networkx
# warns when it is. anndata holds pandas back, hence not newest.
EXTRAS_floor := all
EXTRAS_newest := plot,cli,files,dask,graph,label,onnx,mcmc,umap,excel

test-versions: test-floor test-newest

test-floor test-newest: test-%:
	$(PYTHON) -m venv --clear build/$*
	build/$*/bin/python -m pip install --quiet --disable-pip-version-check "uv>=0.8"
	$(PYTHON) docs/floors.py > build/floors.txt
	build/$*/bin/uv pip install --quiet --compile-bytecode --python build/$*/bin/python --editable ".[$(EXTRAS_$*)]" --group test $(if $(filter floor,$*),--constraint build/floors.txt,--upgrade)
	build/$*/bin/python docs/floors.py --run $*

# What is built is what is tested: the wheel, with the tests of the source archive beside it.
dist: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "build>=1.2" "twine>=6"
	rm -rf dist build/dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*
	$(PYTHON) -m venv build/dist
	build/dist/bin/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	build/dist/bin/python -m pip install --quiet --disable-pip-version-check "$$(ls $(CURDIR)/dist/*.whl)[plot,cli,files,dask,graph,label,onnx]" --group test
	mkdir build/dist/source && tar -xzf dist/*.tar.gz --strip-components 1 -C build/dist/source
	rm -r build/dist/source/src
	cd build/dist/source && ../bin/python -m pytest -n 2 -q tests

lint: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	MYPYPATH=src $(BIN)/mypy --strict --follow-imports=silent tests/typing/use_everything.py
	$(BIN)/codespell
	$(BIN)/pre-commit validate-config
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/python -c "from rattler_build import Stage0Recipe as R, VariantConfig as V; print(R.from_file('conda/recipe.yaml').render(V()))"

# ADVISORIES=all.zip is a copy of PyPI/all.zip of osv.dev; SECURITY.md says what is told without it.
audit: $(READY)
	$(BIN)/python docs/audit.py

bench: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group bench
	for script in $(BENCHMARKS); do PYTHONPATH=. $(BIN)/python $$script || exit 1; done
	$(BIN)/python docs/figures.py

# Mutants go on where a run was stopped.
trust: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group bench
	for name in $(TRUST); do PYTHONPATH=. $(BIN)/python benchmarks/$$name.py || exit 1; done
	PYTHONPATH=. $(BIN)/python benchmarks/covering.py --report
	PYTHONPATH=. $(BIN)/python benchmarks/mutants.py --report
	$(BIN)/python docs/trust.py

# The guides use anndata as well, hence an environment of its own here too.
docs:
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[plot,cli,files,dask,graph,mcmc,label,onnx,anndata,umap]" --group docs
	.venv-docs/bin/python -m sphinx -W --keep-going -b html docs docs/_build/html

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
	rm -rf $(VENV) .venv-anndata .venv-docs build dist docs/jupyter_execute docs/_build docs/api docs/gallery demo
