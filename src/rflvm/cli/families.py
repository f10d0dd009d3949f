"""The option ``--likelihood``: a family by its name, or one that is not of this package by its module and class."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Iterator
from typing import Any

import click

from ..numerics.names import hint, plain

# Families that need no parameter; written out, so that the help does not wait for JAX (a test compares them).
NAMES = (
    "gaussian", "student_t", "poisson", "negative_binomial", "zero_inflated_poisson", "zero_inflated_negative_binomial",
    "bernoulli", "ordinal", "multinomial",
)  # fmt: skip
ALIASES = {
    "nb": "negative_binomial", "normal": "gaussian", "t": "student_t", "zip": "zero_inflated_poisson",
    "zinb": "zero_inflated_negative_binomial",
}  # fmt: skip


class Family(click.ParamType):
    """A name, or MODULE:CLASS: a class derived from ``rflvm.likelihoods.Likelihood``, of which an instance is made."""

    name = "NAME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The name, or the family."""
        known = ("auto", *NAMES)
        name = ALIASES.get(plain(value), plain(value))
        if name in known:
            return name
        if ":" not in value:
            other = hint(value, known) or "; or MODULE:CLASS for a family of your own"
            self.fail(f"{value!r} is not one of {', '.join(known)}{other}", param, ctx)
        try:
            return imported(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def imported(path: str) -> Any:
    """The family that MODULE:CLASS names; modules are also looked for in the current folder."""
    module, _, name = path.partition(":")
    try:
        with _current_folder_importable():
            family = getattr(importlib.import_module(module), name, None)
    except ImportError as error:
        raise ValueError(f"{path}: {error}") from error
    from ..likelihoods import Likelihood

    if family is None:
        raise ValueError(f"{path}: {module} has no {name!r}")
    if isinstance(family, type) and issubclass(family, Likelihood):
        try:
            family = family()
        except TypeError as error:
            raise ValueError(f"{path} cannot be made without parameters ({error}): name an instance of it") from error
    if not isinstance(family, Likelihood):
        raise ValueError(f"{path} is not a likelihood: derive it from rflvm.likelihoods.Likelihood")
    return family


@contextlib.contextmanager
def _current_folder_importable() -> Iterator[None]:
    folder = os.getcwd()
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


family_option = click.option(
    "--likelihood",
    metavar="MODULE:CLASS",
    type=Family(),
    help="The family of MODEL, if it is not one of rflvm's.",
)
