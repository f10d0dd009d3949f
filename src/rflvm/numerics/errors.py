"""Errors that carry their parts (parameter, row, column), so that they can be reworded.

The library speaks of parameters and of ``Y[2, 0]``, the command line of options and of the lines of a file. A
``Sentence`` is text in the library's words that keeps its template and values; nobody has to look for patterns in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

Names = Mapping[str, str]
Where = Callable[[int | None, int | None], str]  # words for a row, a column or a cell, counted from 0

_NO_NAMES: Names = MappingProxyType({})


class Sentence(str):
    """Text in the library's words that can be reworded.

    Parameters
    ----------
    template : str
        As for ``str.format``. A field that is among ``parts`` is a value. Any other field is a thing that has another
        name elsewhere, most often a parameter: ``"raise {n_burnin}"``. If the library's words for it are not the name
        of the field, they follow after a colon: ``"the maximum was not reached: {longer_climb:raise max_iter}"``.
    **parts : Any
        Values, among them sentences. Three have a meaning of their own: ``row`` and ``column``, counted from 0, say
        what ``{where:...}`` is about, as in ``"{where:Y[{row}, {column}]} is infinite"``; ``parameter`` is the name
        of a parameter, and reworded as such.

    Examples
    --------
    >>> from rflvm.numerics.errors import Sentence
    >>> advice = Sentence("raise {n_burnin}: {where:row {row} of Y} has not settled in {n} sweeps", row=2, n=50)
    >>> print(advice)
    raise n_burnin: row 2 of Y has not settled in 50 sweeps
    >>> print(advice.reworded({"n_burnin": "--burnin"}, lambda row, column: f"line {row + 1}"))
    raise --burnin: line 3 has not settled in 50 sweeps
    """

    template: str
    parts: dict[str, Any]

    def __new__(cls, template: str, /, **parts: Any) -> Sentence:
        self = super().__new__(cls, _fill(template, parts, _NO_NAMES, None))
        self.template, self.parts = template, parts
        return self

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        """How copies are made, also in another process."""
        return (self.template,), self.parts

    def reworded(self, names: Names = _NO_NAMES, where: Where | None = None) -> str:
        """The sentence with these words for its names, and for the place it is about."""
        return _fill(self.template, self.parts, names, where)

    def part(self, name: str) -> Any:
        """A part of this sentence or of one in it; None if there is none of this name."""
        within = (value.part(name) for value in self.parts.values() if isinstance(value, Sentence))
        return self.parts[name] if name in self.parts else next((value for value in within if value is not None), None)


class _SentenceError(Exception):
    """What errors with parts have in common; ``args`` holds their sentence."""

    def __init__(self, template: str, /, **parts: Any):
        super().__init__(template if isinstance(template, Sentence) else Sentence(template, **parts))

    @property
    def parameter(self) -> str | None:
        """The parameter that is to blame."""
        return self.args[0].part("parameter")

    @property
    def row(self) -> int | None:
        """The row that is to blame, counted from 0."""
        return self.args[0].part("row")

    @property
    def column(self) -> int | None:
        """The column that is to blame, counted from 0."""
        return self.args[0].part("column")


class InputError(_SentenceError, ValueError):
    """A value that cannot be used; made like a ``Sentence``."""


class InputTypeError(_SentenceError, TypeError):
    """A value of a kind that cannot be used; made like a ``Sentence``."""


def moved(error: _SentenceError, number: Callable[[int], int]) -> _SentenceError:
    """The same error about another row, for one that was found in a part of a table: ``number`` of the row there."""
    return type(error)(_moved(error.args[0], number))


def _moved(sentence: Sentence, number: Callable[[int], int]) -> Sentence:
    parts: dict[str, Any] = dict(sentence.parts)
    rows = {"row", "index"} & set(parts) if "row" in parts else set()  # some sentences have the number as ``index`` too
    for name, part in sentence.parts.items():
        if name in rows:
            parts[name] = number(part)
        elif isinstance(part, Sentence):
            parts[name] = _moved(part, number)
    return Sentence(sentence.template, **parts)


def reworded(message: BaseException | str, names: Names, where: Where | None = None) -> str:
    """The text of an error or a warning, or a text, with other words for its names if it is a ``Sentence``."""
    text = message if isinstance(message, str) else message.args[0] if message.args else ""
    return text.reworded(names, where) if isinstance(text, Sentence) else str(message)


def _fill(template: str, parts: dict[str, Any], names: Names, where: Where | None) -> str:
    values = {
        name: reworded(value, names, where) if isinstance(value, Sentence) else value for name, value in parts.items()
    }
    if "parameter" in parts and not isinstance(parts["parameter"], Sentence):
        values["parameter"] = names.get(parts["parameter"], parts["parameter"])
    place = where(parts.get("row"), parts.get("column")) if where and parts.keys() & {"row", "column"} else None
    return template.format_map(_Fields({"where": _Name("where", place)} | values, names))


class _Fields(dict[str, Any]):
    def __init__(self, values: dict[str, Any], names: Names):
        super().__init__(values)
        self._names = names

    def __missing__(self, field: str) -> _Name:
        return _Name(field, self._names.get(field))


class _Name:
    """A field that is no value: the words for it, or else what follows the colon in the template, or else its name."""

    def __init__(self, name: str, words: str | None):
        self._name, self._words = name, words

    def __format__(self, own: str) -> str:
        return (own or self._name) if self._words is None else self._words
