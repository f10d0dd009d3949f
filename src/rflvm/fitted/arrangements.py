"""How the starts of a maximum fared, and whether another arrangement of the rows explains the table as well.

A converged maximum is the best of those that were found from several starts, and no proof that there is no better one.
"""

from __future__ import annotations

from ..maximum.competition import CLOSE, Start
from ..numerics.errors import Sentence


def behind(start: Start, winner: Start) -> float:
    """Nats of log posterior below the winner after the last round that both have made."""
    last = len(start.heights) - 1
    return winner.heights[last] - start.heights[last]


def rival(starts: tuple[Start, ...], N: int) -> Start | None:
    """Of the starts with another picture that met the whole table twice, the closest if it is close to the winner."""
    if not starts:
        return None
    winner = starts[0]
    raced = [start for start in starts[1:] if len(start.heights) > 1 and not start.same_picture]
    near = [start for start in raced if behind(start, winner) < CLOSE * N]
    return min(near, key=lambda start: behind(start, winner), default=None)


def caution(starts: tuple[Start, ...], N: int) -> Sentence:
    """That two arrangements explain the table about equally well; empty where no other comes close."""
    other = rival(starts, N)
    if other is None:
        return Sentence("")
    return Sentence(
        "two arrangements of the rows explain the table about equally well: from the start {other} another picture "
        "(R^2 {r2:.2f} with this one) has a log posterior {nats:.1f} nats below that from {winner}, {per_row:.3f} per "
        "row. The standard deviations of positions are those within this arrangement. "
        "{another_start:To see the other one, fit with init={name}}",
        other=other.name,
        r2=other.r2,
        nats=behind(other, starts[0]),
        winner=starts[0].name,
        per_row=behind(other, starts[0]) / N,
        name=repr(other.name.split()[0]),
    )


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
