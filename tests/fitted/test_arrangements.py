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


def test_starts_are_compared_after_as_many_rounds():
    assert arrangements.behind(NEAR, WINNER) == 0.5 * CLOSE * N
    assert arrangements.behind(EARLY, WINNER) == 0.5


def test_a_rival_has_another_picture_is_close_and_met_the_table_more_than_once():
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
