"""How starts fared, as a reader sees it, and when two arrangements explain a table about equally well."""

from __future__ import annotations

from rflvm.fitted import arrangements
from rflvm.maximum.competition import CLOSE, Start

N = 100
WINNER = Start("pca", 60, (-520.0, -505.0, -500.0), False, True, 1.0)
ALIKE = Start("kernel 1 shaped", 50, (-521.0, -505.5), False, True, 0.99)
NEAR = Start("tsne", 50, (-530.0, -505.0 - 0.5 * CLOSE * N), False, False, 0.42)
FAR = Start("kernel 1", 50, (-530.0, -505.0 - 1.5 * CLOSE * N), False, False, 0.31)
EARLY = Start("isomap shaped", 25, (-520.5,), False, False, 0.2)
AHEAD = Start("isomap", 25, (-510.0, -504.0), False, False, 0.2)


def test_starts_are_compared_after_as_many_rounds():
    assert arrangements.behind(NEAR, (WINNER, NEAR)) == 0.5 * CLOSE * N
    assert arrangements.behind(EARLY, (WINNER, EARLY)) == 0.5


def test_a_start_dropped_ahead_of_the_winner_is_not_at_a_negative_distance():
    """It is compared with the highest of its last round, from which it was too far."""
    assert arrangements.behind(AHEAD, (WINNER, AHEAD)) == 0
    higher = Start("tsne", 25, (-510.0, -501.0), False, False, 0.3)
    assert arrangements.behind(AHEAD, (WINNER, AHEAD, higher)) == 3.0
    text = arrangements.caution((WINNER, AHEAD, FAR), N)
    for part in ("isomap", "0.0 nats below the highest when it was dropped after 25 iterations", "0.000 per row"):
        assert part in text


def test_starts_dropped_after_the_first_round_are_counted_by_themselves():
    sampled = [Start(s.name, s.n_iterations, (-9.0, *s.heights), True, s.same_picture, s.r2) for s in (WINNER, FAR)]
    early = Start("pca", 10, (-9.5,), True, False, 0.1)
    for starts, where in (((WINNER, ALIKE, FAR, EARLY), ""), ((sampled[0], ALIKE, sampled[1], early), "sample")):
        text = arrangements.compared(starts)
        assert text.startswith("of 3 other starts 1 led to this picture; 1 led to another that is more than 0.1 nats")
        assert "1 with another picture was dropped after a first round" in text
        assert where in text
    assert arrangements.compared((WINNER, ALIKE)) == "of 1 other start 1 led to this picture"
    assert not arrangements.compared((WINNER,))


def test_a_rival_has_another_picture_is_close_and_met_the_whole_table_twice():
    once = Start("pca", 35, (-20.0, -505.0), True, False, 0.3)
    first = Start("tsne", 60, (-20.0, -505.0, -500.0), True, True, 1.0)
    assert arrangements.rival((first, once), N) is None
    assert arrangements.rival((WINNER, ALIKE, FAR, EARLY), N) is None
    assert arrangements.rival((WINNER, ALIKE, FAR, NEAR), N) is NEAR
    assert arrangements.rival((), N) is None


def test_caution_names_both_starts_and_how_to_see_the_other():
    text = arrangements.caution((WINNER, NEAR), N)
    for part in ("tsne", "pca", "R^2 0.42", "5.0 nats", "0.050 per row", "init='tsne'"):
        assert part in text
    assert not arrangements.caution((WINNER, FAR), N)


def test_the_table_has_a_line_for_each_start():
    lines = arrangements.table((WINNER, ALIKE, EARLY))
    assert len(lines) == 4
    assert "this one" in lines[2]
    assert "another, R^2 0.20" in lines[3]
    assert arrangements.table((WINNER,)) == []
    sampled = tuple(Start(s.name, s.n_iterations, s.heights, True, s.same_picture, s.r2) for s in (WINNER, NEAR))
    assert "sample" in arrangements.table(sampled)[-1]
