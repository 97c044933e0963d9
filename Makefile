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
# What programs of lab/ need: figures and the peers of the tests too.
LAB := $(TESTED) $(READY)
PEERS := .peers
LIGHTNING := .peers-lightning
LOWEST := .lowest
DIST := .dist
AUDIT := .audit
INTEGRATION := .integration
DEMO_OUT ?= runs/demo
REPRODUCE_OUT ?= runs/reproduce
BENCH_OUT ?= runs/bench
KERNELS := $(shell grep -rlE "numba|njit" --include=*.py dboost)

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-lowest coverage lint oracle against-glmnet same-features passes-table ablation pairs-table titles many-products all-products many-classes many-workers stumps-million baseline compare same-bits cv-cost \
    chaos kills campaign soak fuzz fuzz-paths fold-study preflight docs dist audit sbom wheel-alone integration retrain-years reproduce reproduce-seeds \
    bench clean

help:
	@echo "make demo          from the source code that this machine has to a certified model, its page and new labels"
	@echo "make test          installs what it needs, then ruff, mypy and one test of each kind (aimed at 10 minutes)"
	@echo "make test-all      the same with every test there is"
	@echo "make lint          ruff and mypy only"
	@echo "make test-lowest   tests of data, models and fits under the lowest versions that pyproject.toml allows"
	@echo "make coverage      the tests once more, with which lines and branches they run (COVER: files or folders of tests)"
	@echo "make oracle        every loss and penalty against independent solvers"
	@echo "make against-glmnet the options of R's glmnet, each solved by both (needs R)"
	@echo "make same-features error and time at the same number of features, beside glmnet and abess (needs DBOOST_DATA_HOME)"
	@echo "make passes-table  passes over the data to 1e-6, per method"
	@echo "make ablation      what each accelerator of the solver is worth (needs DBOOST_DATA_HOME; an hour)"
	@echo "make pairs-table   every loss, penalty and bound: counts tried and the worst of each"
	@echo "make titles        573,800 arXiv titles, 172 categories (needs DBOOST_DATA_HOME)"
	@echo "make many-classes  1,000 to 10,000 classes: seconds and memory as their number grows"
	@echo "make many-products all products of 2,000 words over 100,000 documents (needs DBOOST_DATA_HOME)"
	@echo "make all-products  every system over all products of 5,000 and 20,000 sparse columns: a round's seconds and memory"
	@echo "make compare       our speed on small made-up problems beside the stored baseline: which is slower, and by how much"
	@echo "make baseline      measure that baseline again and store it: lab/benchmarks/baseline.json"
	@echo "make many-workers  a real scheduler with up to 1,024 thin workers: where a pass over 10^8 documents binds (15 minutes)"
	@echo "make stumps-million the best of all stumps over 1,000,000 rows in every round, beside LightGBM"
	@echo "make same-bits     one fit on threads and on 1, 2 and 4 workers: the same bits"
	@echo "make cv-cost       10 folds x 50 strengths on the arXiv abstracts, in cold fits (needs DBOOST_DATA_HOME)"
	@echo "make chaos         worker deaths, silence, lack of memory: the undisturbed bits or one clear error (10 minutes)"
	@echo "make preflight     estimates of memory and seconds before a training, beside what it then takes (5 minutes)"
	@echo "make kills         runs, cross-validations and retrainings killed at random instants: the same models (10 minutes)"
	@echo "make campaign      every fault by the hundred: kills, torn writes, hangs, bad data, attacks (90 minutes; needs gcc)"
	@echo "make soak          two hours of retraining with workers killed: memory, files, tasks and disk stay flat"
	@echo "make fuzz          2,000 random fits of hostile data against an oracle in long double"
	@echo "make fuzz-paths    5,000 paths and cross-validations of tables of any unit: none ends in a foreign error or NaN"
	@echo "make fold-study    200 draws of folds and halves of rows of few values, beside scikit-learn's"
	@echo "make docs          the documentation as pages (docs/_build/html), with every warning an error"
	@echo "make dist          wheel and source archive, checked, and the wheel tried in an environment of its own"
	@echo "make audit         known vulnerabilities in the wheel and what it declares (needs a network; AUDIT_SERVICE=pypi or osv)"
	@echo "make sbom          the bill of materials of the wheel and what it declares, in dist/sbom.json (CycloneDX)"
	@echo "make integration   against real servers and programs that make test does without (MLflow, Slurm, ssh, schemas)"
	@echo "make retrain-years retraining over years of arXiv: warm against cold, and the decisions (needs DBOOST_DATA_HOME)"
	@echo "make reproduce     the paper's experiments, figures and verdicts (needs DBOOST_DATA_HOME; up to an hour)"
	@echo "make reproduce-seeds those of ShareBoost, AdaBoost+L1 and leveraging (needs DBOOST_DATA_HOME; two hours)"
	@echo "make bench         how fast it is, against peers on one machine and on a cluster (needs DBOOST_DATA_HOME; an hour)"
	@echo "make clean         remove the environment, caches and builds (not runs/)"
	@echo "Those from oracle to bench are programs of lab/, with arguments of their own: .venv/bin/python -m lab lists them."

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if v >= (3, 11) else \
	"dboost needs Python 3.11 or later; $(PYTHON) is %d.%d. Name another one: make PYTHON=python3.12 ..." % v)'
	@$(PYTHON) -c 'import ensurepip, venv' || { echo "$(PYTHON) cannot create environments: install its venv package \
	(on Debian and Ubuntu: apt-get install python3-venv)" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(PIP) install --no-compile -c constraints.txt -e .
	@touch $(INSTALLED)

# What the tests need beyond what a run does.
$(TESTED): $(INSTALLED)
	$(PIP) install --no-compile -c constraints.txt -e ".[test,plots]"
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
	$(BIN)/mypy

# Compiling, linting and installing what tests need keep one core busy each, and run side by side. Then there are two
# processes of tests; a file of them stays in one process, with what its tests share.
TEST = $(BIN)/python -m pytest -n 2 --dist loadfile
test: $(INSTALLED)
	@$(MAKE) --no-print-directory -j 2 lint $(READY)
	$(TEST) -m "not full"

test-all: $(INSTALLED)
	@$(MAKE) --no-print-directory -j 2 lint $(READY)
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
coverage: $(LAB)
	rm -rf .coverage-data && mkdir -p .coverage-data
	$(BIN)/python -m coverage run -m pytest -q $(COVER)
	$(BIN)/python -m coverage combine -q
	$(BIN)/python -m coverage report --skip-covered --sort=cover

# Independent solvers live in an environment of their own; one that does not build here is named in the table.
# glmnet's wrapper needs NumPy 1, and pandas 3 does not load beside that.
$(PEERS)/.ready: Makefile
	$(PYTHON) -m venv --clear $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check 'numpy<2' 'pandas<3' scipy scikit-learn
	@for peer in celer==0.7.4 cyanure==1.2.2 python-glmnet==2.6.1 skglm==0.5 xgboost-cpu==3.2.0 pyspark==4.3.0 \
	    dask-ml==2025.1.0 lightgbm==4.7.0 abess==0.4.11 snapml==1.17.2 adelie==1.1.52; do \
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

same-features: $(LAB) $(PEERS)/.ready
	DBOOST_PEER_PYTHON=$(PEERS)/bin/python $(BIN)/python -m lab same-features

oracle: $(LAB) $(PEERS)/.ready
	DBOOST_PEER_PYTHON=$(PEERS)/bin/python $(BIN)/python -m lab oracle

ablation: $(LAB)
	$(BIN)/python -m lab ablation

against-glmnet: $(LAB)
	$(BIN)/python -m lab against-glmnet

passes-table: $(LAB)
	$(BIN)/python -m lab passes-table

pairs-table: $(LAB)
	$(BIN)/python -m lab pairs-table

titles: $(LAB)
	$(BIN)/python -m lab titles

many-classes: $(LAB)
	$(BIN)/python -m lab many-classes

all-products: $(LAB)
	$(BIN)/python -m lab all-products

many-products: $(LAB)
	$(BIN)/python -m lab many-products

many-workers: $(LAB)
	$(BIN)/python -m lab many-workers

stumps-million: $(LAB) $(PEERS)/.ready
	DBOOST_PEER_PYTHON=$(PEERS)/bin/python $(BIN)/python -m lab bench stumps --out runs/stumps --force

# Ratios to work of scikit-learn, SciPy and Dask that runs in the same turns; no data sets, about a minute of processor.
baseline: $(LAB)
	$(BIN)/python -m lab bench record

compare: $(LAB)
	$(BIN)/python -m lab bench compare

same-bits: $(LAB)
	$(BIN)/python -m lab same-bits

cv-cost: $(LAB)
	$(BIN)/python -m lab cv-cost

preflight: $(LAB)
	$(BIN)/python -m lab preflight

kills: $(LAB)
	$(BIN)/python -m lab run-kills

campaign: $(LAB)
	$(BIN)/python -m lab campaign

soak: $(LAB)
	$(BIN)/python -m lab soak

chaos: $(LAB)
	$(BIN)/python -m lab chaos

retrain-years: $(LAB)
	$(BIN)/python -m lab retrain-years

fuzz: $(LAB)
	$(BIN)/python -m lab fuzz

fuzz-paths: $(LAB)
	$(BIN)/python -m lab fuzz --paths --fits 5000 --seconds 60

fold-study: $(LAB)
	$(BIN)/python -m lab fold-study

# Examples of the gallery are run; what Python warns of in Sphinx's own extensions is not ours.
$(VENV)/.docs: $(LAB)
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

integration: $(LAB) $(INTEGRATION)/.installed
	DBOOST_INTEGRATION=1 $(INTEGRATION)/bin/python -m pytest tests/integration

reproduce: $(LAB)
	$(BIN)/python -m lab reproduce structural --out $(REPRODUCE_OUT) --force

reproduce-seeds: $(LAB)
	$(BIN)/python -m lab reproduce seeds --out $(REPRODUCE_OUT)-seeds --force

bench: $(LAB) $(PEERS)/.ready $(LIGHTNING)/.ready
	DBOOST_PEER_PYTHON=$(PEERS)/bin/python DBOOST_LIGHTNING_PYTHON=$(LIGHTNING)/bin/python \
	    $(BIN)/python -m lab bench all --out $(BENCH_OUT) --force

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
