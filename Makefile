# Every target creates what it needs; only Python (3.11 or later) and make must be there before.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Python keeps the bytecode of what it imports, whatever is set: a process of the tests reads a thousand files otherwise. pip
# makes none beforehand, which takes as long as installing.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check --no-input
INSTALLED := $(VENV)/.installed
TESTED := $(VENV)/.tested
READY := $(VENV)/.ready
PEERS := .peers
LIGHTNING := .peers-lightning
LOWEST := .lowest
DIST := .dist
AUDIT := .audit
INTEGRATION := .integration
DEMO_OUT ?= runs/demo
KERNELS := $(shell grep -rlE "numba|njit" --include=*.py dboost)

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-lowest coverage lint docs dist audit sbom read wheel-alone integration peers clean

help:
	@echo "make demo          from the source code that this machine has to a certified model, its page and new labels"
	@echo "make test          installs what it needs, then ruff, mypy and one test of each kind (under 10 minutes on two cores)"
	@echo "make test-all      the same with every test there is"
	@echo "make lint          ruff and mypy only"
	@echo "make test-lowest   tests of data, models and fits under the lowest versions that pyproject.toml allows"
	@echo "make coverage      the tests once more, with which lines and branches they run (COVER: files or folders of tests)"
	@echo "make integration   against real servers and programs that make test does without (MLflow, Slurm, ssh, schemas)"
	@echo "make docs          the documentation as pages (docs/_build/html), with every warning an error"
	@echo "make dist          wheel and source archive, checked, and the wheel tried in an environment of its own"
	@echo "make audit         known vulnerabilities in the wheel and what it declares (needs a network; AUDIT_SERVICE=pypi or osv)"
	@echo "make sbom          the bill of materials of the wheel and what it declares, in dist/sbom.json (CycloneDX)"
	@echo "make peers         the solvers that dboost is compared with, in environments of their own: .peers, .peers-lightning"
	@echo "make clean         remove the environment, caches and builds (not runs/)"
	@echo "What measures, compares and breaks things is lab/: .venv/bin/python -m lab lists its programs."

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if v >= (3, 11) else \
	"dboost needs Python 3.11 or later; $(PYTHON) is %d.%d. Name another one: make PYTHON=python3.12 ..." % v)'
	@$(PYTHON) -c 'import ensurepip, venv' || { echo "$(PYTHON) cannot create environments: install its venv package \
	(on Debian and Ubuntu: apt-get install python3-venv)" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(PIP) install --no-compile -c constraints.txt -e .
	@touch $(INSTALLED)

# What the tests need beyond what a run does; dboost itself is there, and building it anew takes seconds.
$(TESTED): $(INSTALLED)
	@$(BIN)/python -c "import tomllib; extras = tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']; \
	    print(*extras['test'], *extras['plots'], sep='\n')" > $(VENV)/tested.txt
	$(PIP) install --no-compile -c constraints.txt -r $(VENV)/tested.txt
	@touch $(TESTED)

# Kernels are compiled once, so that no run waits for them; of those that are kept, only what a change reaches is compiled
# again.
$(READY): $(INSTALLED) $(KERNELS)
	$(BIN)/python -m dboost.warm
	@touch $(READY)

demo: $(INSTALLED)
	$(BIN)/dboost demo --out $(DEMO_OUT) --force

lint: $(TESTED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy

# Compiling keeps one core busy, and installing what tests need, linting and reading the tests the other one: what pytest
# makes of their sources is kept, where the processes below would each make it. A file of tests stays in one process, with
# what its tests share; there is one process more than cores, since tests of clusters mostly wait.
TEST = $(BIN)/python -m pytest -n 3 --dist loadfile
read: lint
	@$(BIN)/python -m pytest --collect-only -q > /dev/null

test: $(INSTALLED)
	@$(MAKE) --no-print-directory -j 2 read $(READY)
	$(TEST) -m "not full"

test-all: $(INSTALLED)
	@$(MAKE) --no-print-directory -j 2 read $(READY)
	$(TEST)

# The lowest versions of all that is declared, in an environment of its own. Its compiled loops lie apart too: beside the
# sources two versions of numba would throw away each other's. Warnings of libraries of that time are no errors.
LOWEST_TESTS ?= tests/test_import.py tests/data tests/losses tests/model tests/plots tests/engine/test_tree.py \
    tests/engine/test_engines.py tests/estimators/test_fit.py tests/estimators/test_ecosystem.py \
    tests/estimators/test_named_columns.py
$(LOWEST)/.installed: pyproject.toml lab/lowest.py
	$(PYTHON) -m venv --clear $(LOWEST)
	$(PYTHON) lab/lowest.py > $(LOWEST)/lowest.txt
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check -r $(LOWEST)/lowest.txt
	@touch $@

test-lowest: $(LOWEST)/.installed
	NUMBA_CACHE_DIR=$(CURDIR)/$(LOWEST)/compiled \
	    $(LOWEST)/bin/python -m pytest -q -p no:cacheprovider -o filterwarnings=default $(LOWEST_TESTS)

# The figure is of Python: what numba compiles is not seen, and a test whose process is killed counts for nothing.
COVER ?= tests
coverage: $(TESTED) $(READY)
	rm -rf .coverage-data && mkdir -p .coverage-data
	$(BIN)/python -m coverage run -m pytest -q $(COVER)
	$(BIN)/python -m coverage combine -q
	$(BIN)/python -m coverage report --skip-covered --sort=cover

# Independent solvers live in an environment of their own; one that does not build here is named in the table. rpy2 finds
# the system's R with its package glmnet (Debian: r-base-core, r-cran-glmnet), and later releases need a later R. adelie
# needs NumPy 1, and pandas 3 does not load beside that.
$(PEERS)/.ready: Makefile
	$(PYTHON) -m venv --clear $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check 'numpy<2' 'pandas<3' scipy scikit-learn setuptools
	@for peer in celer==0.7.4 cyanure==1.2.2 rpy2==3.5.17 skglm==0.5 snapml==1.17.2 \
	    adelie==1.1.52 glum==3.4.1 blitzl1==0.0.2 lightgbm==4.7.0; do \
	    $(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check $$peer \
	    || echo "$$peer cannot be installed here; the table will say so" >&2; done
	@touch $@

# lightning is built from its source and only against releases of its own time.
$(LIGHTNING)/.ready: Makefile
	$(PYTHON) -m venv --clear $(LIGHTNING)
	@$(LIGHTNING)/bin/python -m pip install --quiet --disable-pip-version-check numpy==1.26.4 scipy==1.11.4 \
	    scikit-learn==1.3.2 cython==0.29.37 'setuptools<60' wheel joblib \
	    && $(LIGHTNING)/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation \
	    sklearn-contrib-lightning==0.6.2.post0 \
	    || echo "lightning cannot be installed here; the table will say so" >&2
	@touch $@

peers: $(PEERS)/.ready $(LIGHTNING)/.ready

# Examples of the gallery are run; what Python warns of in Sphinx's own extensions is not ours.
$(VENV)/.docs: $(TESTED) $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	@touch $@

docs: $(VENV)/.docs
	$(BIN)/python -W ignore -m sphinx -q -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

# What make test does without, since installing it takes minutes. Slurm and sshd are packages of the system (Debian:
# slurmctld slurmd slurm-client munge openssh-server); tests that miss a program say so and are skipped.
# They have an environment of their own, and what they need is not pinned there: MLflow wants an older Arrow, and other
# versions of what Dask needs too.
$(INTEGRATION)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear $(INTEGRATION)
	$(INTEGRATION)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[test,plots]"
	$(INTEGRATION)/bin/python -m pip install --quiet --disable-pip-version-check jsonschema kubernetes-validate \
	    -e ".[gateway,kubernetes,mlflow,slurm,ssh]"
	@touch $@

integration: $(TESTED) $(READY) $(INTEGRATION)/.installed
	DBOOST_INTEGRATION=1 $(INTEGRATION)/bin/python -m pytest tests/integration

# The wheel is tried with nothing beside it but what it declares, from a folder that holds no checkout. It is built twice:
# the first one, without compiled loops, makes those of the default fits, which the second one carries.
$(DIST)/.installed: Makefile
	$(PYTHON) -m venv --clear $(DIST)
	$(DIST)/bin/python -m pip install --quiet --disable-pip-version-check build twine check-wheel-contents
	@touch $@

LOOPS := $(CURDIR)/dboost/loops
dist: $(DIST)/.installed
	rm -rf dist build $(DIST)/try $(LOOPS)
	$(DIST)/bin/python -m build --outdir dist .
	$(PYTHON) -m venv $(DIST)/try
	$(DIST)/try/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	cd $(DIST)/try && bin/dboost warm --fits default --to $(LOOPS)
	$(DIST)/bin/python -m build --wheel --outdir dist .
	rm -rf $(LOOPS) build
	$(DIST)/bin/twine check --strict dist/*
	$(DIST)/bin/check-wheel-contents --toplevel dboost,dboost_pipelines dist/*.whl
	$(DIST)/try/bin/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps dist/*.whl
	$(DIST)/try/bin/python -m pip check --disable-pip-version-check
	cd $(DIST)/try && bin/dboost --version && bin/python -c "import numpy, dboost; \
	    print(dboost.BoostedClassifier(alpha=0.1).fit(numpy.eye(4), [0, 0, 1, 1]))"

# The tools have an environment of their own, so that what they look at holds the wheel and what it declares, and nothing
# else. The wheel is found by its name: one that is named by its path would be listed with the path of this machine.
AUDIT_SERVICE ?= pypi
$(AUDIT)/.installed: Makefile
	$(PYTHON) -m venv --clear $(AUDIT)
	$(AUDIT)/bin/python -m pip install --quiet --disable-pip-version-check build cyclonedx-bom pip-audit
	@touch $@

wheel-alone: $(AUDIT)/.installed
	rm -rf build $(AUDIT)/built $(AUDIT)/wheel
	$(AUDIT)/bin/python -m build --wheel --outdir $(AUDIT)/built .
	$(PYTHON) -m venv --without-pip $(AUDIT)/wheel
	$(AUDIT)/bin/python -m pip --python $(AUDIT)/wheel/bin/python install --quiet --disable-pip-version-check \
	    --find-links $(AUDIT)/built dboost==$$($(AUDIT)/bin/python lab/supply_chain.py version $(AUDIT)/built)

audit: wheel-alone
	$(PYTHON) lab/supply_chain.py audit $(AUDIT)/bin/pip-audit $(AUDIT)/wheel/bin/python $(AUDIT_SERVICE)

sbom: wheel-alone
	mkdir -p dist
	$(AUDIT)/bin/cyclonedx-py environment --validate --output-reproducible --output-format JSON \
	    --output-file dist/sbom.json $(AUDIT)/wheel/bin/python
	$(PYTHON) lab/supply_chain.py sbom dist/sbom.json

clean:
	rm -rf $(AUDIT) $(DIST) $(INTEGRATION) $(VENV) $(PEERS) $(LIGHTNING) $(LOWEST) .coverage-data build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
