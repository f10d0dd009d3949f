"""The options ``--likelihood`` and ``--columns``.

A family is given by its name, or by its module and class if it is not of this package; columns by names or numbers.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from ..files.npz import FileError
from ..numerics.names import hint, plain
from .columns import listed

if TYPE_CHECKING:
    from .table import FileTable

ColumnFamily = tuple[Any, list[str]]  # a family, and columns or ranges of them

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


class FamilyOfColumns(click.ParamType):
    """A family and its columns, as in poisson=visits,calls or bernoulli=3-9."""

    name = "NAME=COLUMNS"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> ColumnFamily:
        """The family and the words for its columns."""
        family, _, columns = str(value).partition("=")
        words = [word.strip() for word in columns.split(",") if word.strip()]
        if not words:
            self.fail(f"{value!r} is not a family and its columns, such as poisson=visits,calls", param, ctx)
        return Family().convert(family.strip(), param, ctx), words


def by_column(table: FileTable, given: Sequence[ColumnFamily]) -> list[tuple[Any, list[int]]]:
    """Families with the numbers of their columns, as ``RFLVM`` takes them; those of one family together."""
    groups: dict[Any, tuple[Any, list[int]]] = {}
    for family, words in given:
        key = family if isinstance(family, str) else type(family)
        groups.setdefault(key, (family, []))[1].extend(j for word in words for j in _places(table, word))
    return list(groups.values())


def _places(table: FileTable, word: str) -> list[int]:
    """The cells' columns that a name, a number (from 1, as in the file) or a range of them stands for."""
    single = _place(table, word)
    if single is not None:
        return [single]
    for at, letter in enumerate(word):
        first, last = (_place(table, end.strip()) for end in (word[:at], word[at + 1 :]))
        if letter == "-" and first is not None and last is not None:
            if first > last:
                raise FileError(f"{table.path}: --columns {word} runs backwards")
            return list(range(first, last + 1))
    names = table.columns or [str(number) for number in table.numbers]
    raise FileError(
        f"{table.path} has no column of numbers {word!r} for --columns{hint(word, names)}; its columns: {listed(names)}"
    )


def _place(table: FileTable, word: str) -> int | None:
    names = table.columns or ()
    if word in names:
        return names.index(word)
    renamed = [j for j, name in enumerate(names) if word and name.startswith(f"{word} = ")]
    if len(renamed) == 1:
        return renamed[0]
    return table.numbers.index(int(word)) if word.isdecimal() and int(word) in table.numbers else None


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
