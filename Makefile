# make demo   simulate the paper's Poisson S-curve, fit it, draw the picture
# make test   the whole test suite
# make docs   the documentation, in output/docs
PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.installed-docs

.PHONY: demo test test-long browser docs lint types benchmark clean

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v <= (3, 13) else "rflvm needs Python 3.11 to 3.13, got %d.%d: try make PYTHON=python3.12" % v)'
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[plots,diagnostics,datasets,test]'
	touch $@

demo: $(STAMP)
	$(VENV)/bin/python examples/s_curve.py

test: $(STAMP) browser
	$(VENV)/bin/python -m pytest -n 2 --dist worksteal

# The tests of the report's page need Debian's chromium, and are skipped where it cannot be had.
browser:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || \
	{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get -qq -o Acquire::http::Timeout=20 update && \
	  apt-get -qq install --yes --no-install-recommends chromium chromium-driver >/dev/null; } || \
	echo "no browser: as root, apt-get install chromium chromium-driver"

test-long: $(STAMP)
	XLA_FLAGS= $(VENV)/bin/python -m pytest -n 2 -m long

# Its pages compute: their examples run anew in every build.
docs: $(DOCS_STAMP)
	$(VENV)/bin/sphinx-build -W --keep-going -b html docs output/docs

$(DOCS_STAMP): $(STAMP)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[plots,docs]'
	touch $@

lint: $(STAMP)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

types: $(STAMP)
	$(VENV)/bin/pyright --warnings

benchmark: $(STAMP)
	$(VENV)/bin/python benchmarks/polyagamma.py
	$(VENV)/bin/python benchmarks/sweep.py
	$(VENV)/bin/python benchmarks/mixing.py
	$(VENV)/bin/python benchmarks/map.py
	$(VENV)/bin/python benchmarks/compilation.py
	$(VENV)/bin/python benchmarks/choices.py
	$(VENV)/bin/python benchmarks/calibration.py
	$(VENV)/bin/python benchmarks/recovery.py
	$(VENV)/bin/python benchmarks/kernels.py
	$(VENV)/bin/python benchmarks/alternatives.py
	$(VENV)/bin/python benchmarks/estimator.py
	$(VENV)/bin/python benchmarks/report.py

clean:
	rm -rf $(VENV) output
