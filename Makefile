# `make demo` and `make test` set up all they need in .venv; the other targets are steps of them.
# Needs python3 >= 3.11, git and make. A second run starts at once: what is set up is remembered in stamp files.

VENV ?= .venv
DEMO ?= demo-output
REPORT ?= build/report
# four for two cores: some tests wait, for a Slurm, a signal or a browser
WORKERS ?= 4
MINUTES ?= 10
# of them every direct dependency is imported
LOWEST := tests/unit/core tests/unit/store tests/unit/compiled tests/unit/joblogs/test_signatures.py \
	tests/unit/predictors/test_trees.py tests/unit/reports/charts

BIN := $(VENV)/bin
ROOMS := gpuctl queries predictors reports
SCRIPTS := tests labs tools benchmarks
CONSTRAINTS := .ci/constraints.txt
# PIP_BUILD_CONSTRAINT is what pip >= 25.3 reads for the build backend; older ones read PIP_CONSTRAINT.
PIP := PIP_CONSTRAINT=$(CONSTRAINTS) PIP_BUILD_CONSTRAINT=$(CONSTRAINTS) $(BIN)/python -m pip \
	--disable-pip-version-check --quiet --no-input
INSTALL := PIP_CONSTRAINT=$(CONSTRAINTS) PIP_BUILD_CONSTRAINT=$(CONSTRAINTS) $(BIN)/python tools/pip_progress.py

# Bytecode is kept: without it collecting takes twice as long, and so does each start of the program.
unexport PYTHONDONTWRITEBYTECODE

# One worker takes a whole file: what its tests share (a browser, a Slurm) is made once. Marks of groups have no effect
# in pytest-xdist 3.8 with pytest 9.2. In the order of the folders the long files come first. A worker that dies ends
# the run: by this distribution a new one would not get the rest of the file, and the run would wait for ever.
SPREAD := --dist loadfile --no-loadscope-reorder --max-worker-restart=0

.DEFAULT_GOAL := help
.PHONY: help demo test report check lint format typecheck imports unit checked fuzz labs chromium slurm packages kernels tree docs site pictures size bench release lowest constraints clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 14

demo: $(VENV)/.installed-run ## analyze sample_data/ on one screen and say where the HTML page is
	@mkdir -p "$(DEMO)" && rm -f "$(DEMO)/report.html"
	@$(BIN)/gpuctl analyze sample_data/philly --format table --html "$(DEMO)/report.html"
	@echo "The report is $(abspath $(DEMO))/report.html: open it in a browser."

# What needs no tests runs side by side first: one core compiles while the other looks at types, or waits for Debian.
test: export MADE_REPORT = $(abspath $(REPORT))
test: $(VENV)/.installed-dev ## everything that CI runs: lint, types, import contracts, the sample's report, tests
	@$(MAKE) --no-print-directory --jobs=3 --output-sync=target check report packages
	@$(MAKE) --no-print-directory -o kernels -o chromium -o slurm unit

# The numbers of the sample are known: a limit is there to see that it is held, and that a rise is told.
report: $(VENV)/.installed-dev kernels ## the report of sample_data/ as build/report: page, Markdown, checks, metrics
	@rm -rf "$(REPORT)" && mkdir -p "$(REPORT)/results"
	@$(BIN)/gpuctl --quiet analyze sample_data/philly --json --output "$(REPORT)/results/philly.json"
	@$(BIN)/gpuctl --quiet analyze sample_data/failures --json --output "$(REPORT)/results/failures.json"
	@$(BIN)/gpuctl --quiet replay sample_data/jobs.csv --cluster 4x8 --policy fifo,srtf,tiresias \
		--json --output "$(REPORT)/results/replay.json"
	@cd "$(REPORT)" && $(abspath $(BIN))/gpuctl --quiet report results/*.json \
		--fail-if "overview.jobs{result=philly} != 1962" --fail-if "queueing.p95_wait_h{result=philly} > 2.5" \
		--fail-if "failures.failed_jobs_pct{result=failures} > 40" --fail-if "replay.mean_wait_h{policy=fifo} > 1.5" \
		--html index.html --markdown report.md --junit checks.xml --json --output metrics.json
	@echo "The report of the sample data is $(abspath $(REPORT))/index.html"

check: lint typecheck imports ## the checks that run no tests

unit: $(VENV)/.installed-dev chromium slurm kernels ## the tests alone; PYTEST="-k name -x" passes options on
	@$(BIN)/python -m pytest -n $(WORKERS) $(SPREAD) $(PYTEST)

fuzz: $(VENV)/.installed-dev kernels ## look for inputs that break gpuctl, other ones each time, for MINUTES=10
	@$(BIN)/python tools/fuzz.py $(MINUTES) -n $(WORKERS) $(PYTEST)

labs: export GPUCTL_LABS = 1
labs: $(VENV)/.installed-dev slurm kernels ## the tests that run a real Slurm and a real YARN; fetches Debian's Slurm and Maven's Hadoop
	@$(BIN)/python -m pytest -m lab $(PYTEST)

lint: $(VENV)/.installed-dev ## ruff: rules and format
	@$(BIN)/ruff check --quiet $(ROOMS) $(SCRIPTS)
	@$(BIN)/ruff format --check --quiet $(ROOMS) $(SCRIPTS) || \
		{ echo "error: not formatted as ruff would; run: make format" >&2; exit 1; }

format: $(VENV)/.installed-dev ## let ruff mend what it can
	@$(BIN)/ruff check --quiet --fix $(ROOMS) $(SCRIPTS) || true
	@$(BIN)/ruff format $(ROOMS) $(SCRIPTS)

typecheck: tree ## mypy --strict, on the package as it gets installed
	@cd build/tree && ../../$(BIN)/mypy --config-file ../../pyproject.toml --cache-dir ../../.mypy_cache -p gpuctl

imports: tree ## which room may import which
	@cd build/tree && ../../$(BIN)/lint-imports --config ../../pyproject.toml --cache-dir ../../.import_linter_cache \
		--no-logo >lint-imports.log 2>&1 || { cat lint-imports.log; exit 1; }

# In the checkout three rooms lie beside the package: tools that read the tree see them only once it is installed.
tree: $(VENV)/.installed-dev
	@rm -rf build/tree
	@$(PIP) install --no-deps --no-build-isolation --no-compile --target build/tree .

checked: export NUMBA_BOUNDSCHECK = 1
checked: $(VENV)/.installed-dev ## tests of all policies with every index of compiled code looked at; minutes of compiling
	@$(BIN)/python -m pytest -n $(WORKERS) $(SPREAD) tests/property/test_replay_*.py tests/unit/replay $(PYTEST)

chromium:
	@sh tools/chromium.sh

slurm:
	@sh tools/slurm_packages.sh

# one after the other: both ask apt
packages:
	@sh tools/chromium.sh
	@sh tools/slurm_packages.sh

kernels: $(VENV)/.installed-dev
	@$(BIN)/python tools/compile_kernels.py

docs: $(VENV)/.installed-dev ## write what the documents have from the code anew: help pages, tables, parameters
	@$(BIN)/python tools/help_pages.py
	@$(BIN)/python tools/metric_pages.py
	@$(BIN)/python tools/analysis_pages.py
	@$(BIN)/python tools/policy_pages.py
	@$(BIN)/python tools/policy_figures.py
	@$(BIN)/python tools/schema_page.py
	@$(BIN)/python tools/library_page.py

site: $(VENV)/.installed-site ## build the documents as a site, build/site; a broken link or anchor is an error
	@mkdir -p build && NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict >build/site.log 2>&1 || \
		{ grep -v '^INFO' build/site.log >&2; exit 1; }
	@echo "The site is $(abspath build/site)/index.html"

pictures: $(VENV)/.installed-dev chromium ## take the pictures of the README anew
	@$(BIN)/python tools/pictures.py

size: ## lines of each room beside its budget in CONTRIBUTING.md
	@python3 tools/size.py

bench: $(VENV)/.installed-dev ## how long the program takes to start
	@$(BIN)/python benchmarks/help_startup.py

release: $(VENV)/.installed-dev ## build wheel and sdist in dist/, check them, and try each in empty environments
	@$(BIN)/python tools/release.py

# Old releases may warn of what newer ones of their own dependencies deprecate.
lowest: $(VENV)/.installed-dev ## a part of the tests with the lowest versions that pyproject.toml allows
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python build/lowest
	@$(BIN)/uv pip install --quiet --python build/lowest/bin/python --resolution lowest-direct \
		--group dev --editable '.[dask]'
	@build/lowest/bin/python -m pytest -n $(WORKERS) $(SPREAD) -W default $(LOWEST) $(PYTEST)

constraints: ## pin the newest releases that fit, for CI
	@rm -rf build/constraints && sh tools/make_venv.sh build/constraints
	@build/constraints/bin/python -m pip --disable-pip-version-check --quiet install 'pip>=25.1'
	@build/constraints/bin/python -m pip --disable-pip-version-check --quiet install --group dev --group site -e '.[dask]'
	@{ echo "# The releases that the tests and the site use. Written by: make constraints"; \
		build/constraints/bin/python -m pip --disable-pip-version-check freeze --exclude-editable --exclude pip; } \
		> $(CONSTRAINTS)
	@rm -rf build/constraints

clean: ## remove all that make has made
	@rm -rf .venv build dist demo-output .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find $(ROOMS) $(SCRIPTS) -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@PYTHON="$(PYTHON)" sh tools/make_venv.sh "$(VENV)"

$(VENV)/.installed-run: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	@echo "Installing gpuctl and what it needs into $(VENV)" >&2
	@$(INSTALL) install --editable .
	@touch $@

# uv unpacks on all cores, in a fifth of pip's time; where it cannot be had, or reaches no package index, pip does it.
# Modules are compiled afterwards, but for others' tests and what nothing imports, or runs as machine code.
$(VENV)/.installed-dev: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	@echo "Installing gpuctl, what it needs and what its tests need into $(VENV)" >&2
	@{ $(PIP) install uv && $(BIN)/uv pip install --quiet --python $(BIN)/python --constraint $(CONSTRAINTS) \
		--build-constraint $(CONSTRAINTS) --group dev --editable '.[dask]'; } 2>/dev/null || \
		{ $(PIP) install 'pip>=25.1' && $(INSTALL) install --no-compile --group dev --editable '.[dask]'; }
	@$(BIN)/python -m compileall -qq -j 0 -x '/(tests?|mypyc?|setuptools|fontTools|pygments/lexers)/' "$(VENV)/lib" || true
	@touch $(VENV)/.installed-run $@

$(VENV)/.installed-site: $(VENV)/.installed-dev
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --constraint $(CONSTRAINTS) --group site 2>/dev/null || \
		{ $(PIP) install 'pip>=25.1' && $(PIP) install --group site; }
	@touch $@
