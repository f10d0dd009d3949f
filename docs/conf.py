"""Settings of the documentation; ``make docs`` builds it with warnings as errors."""

import os
import sys
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # mathematics.py

# The tables of the examples are small, and most of their time is compilation: as in the tests, machine code that is not
# optimised is ready sooner.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false")

project = "rflvm"
author = "The rflvm developers"
copyright = author
version = release = version_of("rflvm")

extensions = ["myst_nb", "mathematics", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"rflvm {version}"
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_math_renderer = "svg"

# The pages compute. They run anew in every build: a cache would not notice that the library has changed.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_in_temp = True  # files that a page writes go nowhere
nb_output_stderr = "warn"  # and a page that prints a warning does not build
nb_merge_streams = True

myst_enable_extensions = ["amsmath", "dollarmath", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # types are in the docstrings
numpydoc_show_class_members = False
numpydoc_use_plots = False
