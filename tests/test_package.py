"""The names of the package, which are imported when they are asked for."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import rflvm


def test_every_name_is_there():
    assert set(rflvm.__all__) <= set(dir(rflvm))
    for name in rflvm.__all__:
        assert getattr(rflvm, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        rflvm.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_importing_the_package_does_not_import_jax():
    code = "import sys, rflvm; sys.exit('jax' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_command_line_names_the_families_that_need_no_parameter():
    """Written out there, so that the help does not wait for JAX."""
    from rflvm import likelihoods
    from rflvm.cli.families import ALIASES, NAMES

    assert set(NAMES) == {family.name for family in likelihoods.FAMILIES} - {"binomial"}
    assert {alias: family.name for family in likelihoods.FAMILIES for alias in family.aliases} == ALIASES


def test_the_version_is_the_same_wherever_it_is_written():
    root = Path(__file__).parents[1]
    version = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    assert re.findall(r"^version: (.+)$", (root / "CITATION.cff").read_text(), re.M) == [version]
    assert re.findall(r"^## (\S+)", (root / "CHANGELOG.md").read_text(), re.M)[0] == version


def test_type_checkers_are_told_that_the_package_has_types():
    assert (Path(rflvm.__file__).parent / "py.typed").is_file()
