"""Whether another arrangement of the rows explains the table as well: how the starts of a maximum fared, and what the
pictures of chains weigh.

A converged maximum is the best of those that were found from several starts, and no proof that there is no better one.
Chains, too, only show the arrangements that they were started in or came to.
"""

from __future__ import annotations

from ..maximum.competition import CLOSE, Start
from ..numerics.errors import Sentence
from .stacking import Arrangement

NUMBERS = {2: "two", 3: "three", 4: "four"}
DOUBTFUL = 0.1  # share of cells without a reliable density, from which on it is said


def behind(start: Start, starts: tuple[Start, ...]) -> float:
    """Nats of log posterior below the highest start after the last round that this one made.

    Where it was dropped early, the highest of that round need not be the winner.
    """
    last = len(start.heights) - 1
    return max(other.heights[last] for other in starts if len(other.heights) > last) - start.heights[last]


def raced(start: Start) -> bool:
    """Whether it met all rows and columns, and more than once: the others were dropped after a first short round."""
    return len(start.heights) > 1 + start.sampled


def rival(starts: tuple[Start, ...], N: int) -> Start | None:
    """Of the starts with another picture that raced on the whole table, the closest if it is close to the highest."""
    others = [start for start in starts[1:] if raced(start) and not start.same_picture]
    near = [start for start in others if behind(start, starts) < CLOSE * N]
    return min(near, key=lambda start: behind(start, starts), default=None)


def caution(starts: tuple[Start, ...], N: int) -> Sentence:
    """That two arrangements explain the table about equally well; empty where no other comes close."""
    other = rival(starts, N)
    if other is None:
        return Sentence("")
    winner, nats = starts[0], behind(other, starts)
    to_the_end = len(other.heights) == len(winner.heights)
    return Sentence(
        "two arrangements of the rows explain the table about equally well: from the start {other} another picture "
        "(R^2 {r2:.2f} with this one) {compared}, {per_row:.3f} per row. The standard deviations of positions are "
        "those within this arrangement. {another_start:To see the other one, fit with init={name}}",
        other=other.name,
        r2=other.r2,
        compared=Sentence(
            "has a log posterior {nats:.1f} nats below that from {winner}"
            if to_the_end
            else "had a log posterior {nats:.1f} nats below the highest when it was dropped after {n} iterations, in a "
            "race that {winner} won",
            nats=nats,
            winner=winner.name,
            n=other.n_iterations,
        ),
        per_row=nats / N,
        name=repr(other.name.split()[0]),
    )


def compared(starts: tuple[Start, ...]) -> Sentence:
    """What became of the starts that did not win, where none of them is a rival; empty where there was no other."""
    others = starts[1:]
    if not others:
        return Sentence("")
    alike = sum(start.same_picture for start in others)
    lower = sum(raced(start) and not start.same_picture for start in others)
    dropped = len(others) - alike - lower
    clauses = {
        "{alike} led to this picture": alike,
        "{lower} led to another that is more than {close} nats per row lower": lower,
        "{dropped} with another picture {were} dropped after a first round{sampled}, and what would have come of "
        "{them} is not known": dropped,
    }
    return Sentence(
        "of {n} other {starts} " + "; ".join(clause for clause, count in clauses.items() if count),
        n=len(others),
        starts="start" if len(others) == 1 else "starts",
        alike=alike,
        lower=lower,
        close=CLOSE,
        dropped=dropped,
        were="was" if dropped == 1 else "were",
        sampled=" on a sample of the table" if starts[0].sampled else "",
        them="it" if dropped == 1 else "them",
    )


def told(arrangements: tuple[Arrangement, ...]) -> Sentence:
    """That chains show different pictures, and which of them is used; empty where they show one."""
    if len(arrangements) < 2:
        return Sentence("")
    first, *rest = arrangements
    weights = [f"{one.weight:.2f}" for one in arrangements]
    unreliable = max(one.unreliable for one in arrangements)
    return Sentence(
        "the chains show {number} arrangements of the rows, with weights {weights} in predicting cells that are left "
        "out{doubt}: positions, their standard deviations and predictions are those of {chains}, {others} elsewhere. "
        "More chains show how often each is found",
        number=NUMBERS.get(len(arrangements), str(len(arrangements))),
        weights=", ".join(weights[:-1]) + " and " + weights[-1],
        doubt=f" (a rough guide: Pareto k is above 0.7 for {unreliable:.0%} of them)" if unreliable > DOUBTFUL else "",
        chains=_named(first.chains),
        others=_named(tuple(sorted(chain for one in rest for chain in one.chains)), "is", "are"),
    )


def weighed(arrangements: tuple[Arrangement, ...]) -> list[str]:
    """Lines for a person to read: what each picture of the chains weighs."""
    lines = [f"{'arrangement':24}{'weight':>8}{'log density of a cell':>26}{'Pareto k > 0.7':>18}"]
    for one in arrangements:
        lines.append(f"{_named(one.chains):24}{one.weight:8.2f}{one.elpd:26.4f}{one.unreliable:18.0%}")
    return [*lines, "Positions and what follows are of the first."]


def _named(chains: tuple[int, ...], *verbs: str) -> str:
    """Chains by number, from 1, as everywhere that a person reads."""
    numbers = [str(chain + 1) for chain in chains]
    verb = f" {verbs[len(chains) > 1]}" if verbs else ""
    if len(chains) == 1:
        return f"chain {numbers[0]}{verb}"
    return f"chains {', '.join(numbers[:-1])} and {numbers[-1]}{verb}"


def table(starts: tuple[Start, ...]) -> list[str]:
    """Lines for a person to read: log posterior after each round, the winner's first."""
    if len(starts) < 2:
        return []
    n_rounds = max(len(start.heights) for start in starts)
    rounds = "".join(f"{f'round {i + 1}':>14}" for i in range(n_rounds))
    lines = [f"{'start':18}{'iterations':>10}{rounds}   picture"]
    for start in starts:
        heights = "".join(f"{height:14.1f}" for height in start.heights).ljust(14 * n_rounds)
        picture = "this one" if start.same_picture else f"another, R^2 {start.r2:.2f}"
        lines.append(f"{start.name:18}{start.n_iterations:10}{heights}   {picture}")
    if starts[0].sampled:
        lines.append("Round 1 is on a sample of the table, and cannot be compared with the others.")
    return lines
