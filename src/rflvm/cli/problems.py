"""What is wrong with a table, told all at once, with the options that would put up with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..files.npz import FileError

MOST = 12  # problems that are told; the rest are counted


class Problem(NamedTuple):
    """One thing that is wrong.

    Attributes
    ----------
    text : str
        Where, what, and what to do.
    options : tuple of str
        Words to add to the command line that would put up with it; none if the file has to be changed.
    """

    text: str
    options: tuple[str, ...] = ()


class ProblemsError(FileError):
    """A file that cannot be read as it is.

    Attributes
    ----------
    options : tuple of str
        What to add to the command line so that the file is read, empty if no option would help.
    """

    def __init__(self, path: object, problems: Sequence[Problem]):
        lines = [f"{path}, {problems[0].text}"]
        if len(problems) > 1:
            lines = [f"{path} has {len(problems)} problems"] + [f"- {problem.text}" for problem in problems[:MOST]]
            if len(problems) > MOST:
                lines.append(f"- and {len(problems) - MOST} more")
        super().__init__("\n".join(lines))
        solvable = len(problems) > 1 and all(problem.options for problem in problems)
        pairs = dict.fromkeys(problem.options for problem in problems)
        self.options = tuple(word for pair in pairs for word in pair) if solvable else ()
