"""Names as people write them: "Student-t" for "student_t", and which name was meant by one that there is not."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable


def plain(name: str) -> str:
    """A name without what does not matter: capitals, and whether a space, a hyphen or an underscore parts its words.

    Examples
    --------
    >>> from rflvm.numerics.names import plain
    >>> plain("Negative-Binomial ")
    'negative_binomial'
    """
    return re.sub(r"[\s_-]+", "_", name.strip()).lower()


def hint(value: object, names: Iterable[str]) -> str:
    """The end of a message that refuses a name: which one may be meant, where one is close; otherwise nothing."""
    close = difflib.get_close_matches(plain(value), list(names), 1) if isinstance(value, str) else []
    return f"; did you mean {close[0]!r}?" if close else ""
