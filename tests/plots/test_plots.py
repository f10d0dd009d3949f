"""Every figure: what is on it, that it leaves no trace elsewhere, and what it refuses."""

from __future__ import annotations

import importlib
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import EllipseCollection
from sklearn.exceptions import NotFittedError

import small_models
from rflvm import RFLVM, plots
from rflvm.fitted import prediction
from rflvm.fitted.summaries import row_covariances
from rflvm.plots.colours import MOST_CLASSES, read_colours
from rflvm.plots.latent import without_overlap

FIGURES: dict[str, Any] = {
    "latent": lambda **kw: plots.latent(small_models.poisson(), **kw),
    "density": lambda **kw: plots.density(small_models.poisson(), **kw),
    "images": lambda **kw: plots.images(small_models.poisson(), (4, 5), **kw),
    "tuning": lambda **kw: plots.tuning(small_models.poisson(), "gene 3", **kw),
    "predictor": lambda **kw: plots.tuning(small_models.poisson(), 3, scale="predictor", **kw),
    "tuning of three": lambda **kw: plots.tuning(small_models.small("multinomial"), 3, dimensions=(0, 2), **kw),
    "tuning of one": lambda **kw: plots.tuning(small_models.small("gaussian"), 3, **kw),
    "strip": lambda **kw: plots.latent(small_models.small("gaussian"), np.arange(12) % 2 == 0, **kw),
    "kernel": lambda **kw: plots.kernel(small_models.poisson(), **kw),
    "spectrum": lambda **kw: plots.spectrum(small_models.chains(), **kw),
    "trace": lambda **kw: plots.trace(small_models.chains(), **kw),
    "ranks": lambda **kw: plots.ranks(small_models.chains(), **kw),
}
LABELS = {
    "strip": ("$x_{1}$", ""),
    "kernel": ("distance in latent space", "kernel"),
    "spectrum": ("frequency along $x_{1}$", "spectral density"),
    "trace": ("sweep after burn-in", "log joint density"),
    "ranks": ("rank of the log joint density", "draws"),
    "tuning of one": ("$x_{1}$", "E[y | x], 3"),
    "tuning of three": ("$x_{1}$", "$x_{3}$"),
}


@pytest.fixture(autouse=True)
def _headless():
    before = mpl.get_backend()
    plt.switch_backend("agg")
    yield
    plt.close("all")
    plt.switch_backend(before)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_labels_and_leaves_no_trace(name):
    settings, figure = dict(mpl.rcParams), plt.figure()
    given = figure.add_subplot()
    ax = FIGURES[name](ax=given)
    assert ax is given
    assert plt.get_fignums() == [figure.number]
    assert dict(mpl.rcParams) == settings
    expected = LABELS.get(name, ("$x_{1}$", "$x_{2}$"))
    assert (ax.get_xlabel(), ax.get_ylabel()) == expected
    figure.canvas.draw()


def test_rows_on_which_chains_do_not_agree_have_a_diamond_unless_they_are_most():
    model = small_models.disagreeing(3, 5)
    diamonds = plots.latent(model).collections[-1]
    np.testing.assert_allclose(diamonds.get_offsets(), model.embedding_[[3, 5]])
    assert len(diamonds.get_facecolor()) == 0
    everywhere = small_models.disagreeing(*range(12))
    assert len(plots.latent(everywhere).collections) == len(plots.latent(model).collections) - 1


def test_a_figure_makes_its_own_axes_and_shows_nothing(monkeypatch):
    monkeypatch.setattr(plt, "show", lambda *args, **kwargs: pytest.fail("a figure was shown"))
    assert FIGURES["kernel"]() is not FIGURES["kernel"]()


def test_names_that_a_user_gives_are_no_mathematics():
    N = small_models.N
    names: Any = np.array(["$a_", "b\\frac{$", "\x00\n$$"], object)[np.arange(N) % 3]
    figure, ax = plt.subplots()
    plots.latent(small_models.poisson(), names, label="$" + "x" * 1_000_000, ax=ax)
    figure.canvas.draw()
    legend: Any = ax.get_legend()
    assert len(legend.get_title().get_text()) < 40


def test_classes_have_a_legend_and_numbers_a_bar():
    N = small_models.N
    classes: Any = np.array(["a", "b", "c"], object)[np.arange(N) % 3]
    classes[:2] = None, np.nan
    ax = plots.latent(small_models.poisson(), classes, label="kind")
    legend = ax.get_legend()
    assert legend.get_title().get_text() == "kind"
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b", "c", "missing"]
    numbers = np.linspace(0, 1, N)
    numbers[5] = np.nan
    ax = plots.latent(small_models.poisson(), numbers, label="time")
    assert ax.figure.axes[1].get_ylabel() == "time"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["missing"]


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ([2, 10, 1], ["1", "2", "10"]),
        ([True, False, True], ["False", "True"]),
        (["day 10", "a", "day 9"], ["a", "day 9", "day 10"]),
        ([1.5, 2.0, np.inf], None),
        (np.arange(30), None),
        (["x", None, float("nan")], ["x"]),
    ],
)
def test_what_is_a_class_and_what_a_number(values, names):
    assert read_colours(values, len(values)).names == names


def test_of_many_classes_the_rarest_are_one():
    values = [f"{i:03}" for i in range(100) for _ in range(1 + (i < 30))]
    codes, names = read_colours(values, len(values))
    assert names is not None
    assert len(names) == MOST_CLASSES
    assert names[-1] == "77 others"
    assert codes.max() == MOST_CLASSES - 1
    plots.latent(small_models.poisson(), [f"{i % 40}" for i in range(small_models.N)])


def test_rows_with_two_modes_get_a_ring(monkeypatch):
    module = importlib.import_module("rflvm.plots.latent")  # `plots.latent` is the function
    monkeypatch.setattr(module, "two_modes", lambda fitted: np.arange(small_models.N) < 4)
    plain, ringed = (plots.latent(small_models.poisson(), ambiguous=flag) for flag in (False, True))
    assert len(ringed.collections) == len(plain.collections) + 1
    np.testing.assert_array_equal(ringed.collections[-1].get_offsets(), small_models.poisson().embedding_[:4])


def test_an_ellipse_holds_the_draws_it_should():
    model = small_models.poisson()
    ax = plots.latent(model, n_ellipses=7, level=0.9)
    assert sum(isinstance(part, EllipseCollection) for part in ax.collections) == 1
    covariance = row_covariances(model.fitted_)
    np.testing.assert_allclose(np.sqrt(np.diagonal(covariance, axis1=1, axis2=2)), model.embedding_std_)
    away = model.draws_["X"][0] - model.embedding_
    squares = np.einsum("snd,nde,sne->sn", away, np.linalg.inv(covariance), away)
    assert 0.85 < np.mean(squares < -2 * np.log(0.1)) < 0.95


def test_images_do_not_overlap_and_no_more_would_fit():
    points = np.random.default_rng(0).normal(size=(200, 2))
    kept = without_overlap(points, 0.3, 0.2, seed=1)
    away = np.abs(points[kept][:, None] - points[kept])
    apart = (away[..., 0] >= 0.3) | (away[..., 1] >= 0.2) | np.eye(len(kept), dtype=bool)
    assert apart.all()
    for n in set(range(200)) - set(kept):
        away = np.abs(points[kept] - points[n])
        assert ((away[:, 0] < 0.3) & (away[:, 1] < 0.2)).any()


def test_the_share_within_intervals_is_counted(monkeypatch):
    monkeypatch.setattr(prediction, "BLOCK_CELLS", 1300)  # no more rows than there are
    ax = plots.predictions(small_models.poisson(), n_cells=100)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("predicted", "observed")
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    shares = [int(label.split()[1].rstrip("%")) for label in labels]
    assert 99 <= sum(shares) <= 101
    assert shares[0] > 75


@pytest.mark.parametrize(
    ("draw", "match"),
    [
        (lambda: plots.trace(small_models.poisson()), "needs chains"),
        (lambda: plots.ranks(small_models.poisson()), "needs chains"),
        (lambda: plots.density(small_models.small("gaussian")), "two latent dimensions"),
        (lambda: plots.images(small_models.small("gaussian"), (2, 2)), "two latent dimensions"),
        (lambda: plots.latent(small_models.poisson(), dimensions=(0, 0)), "two different numbers from 0 to 1"),
        (lambda: plots.latent(small_models.poisson(), dimensions=(0, 2)), "two different numbers from 0 to 1"),
        (lambda: plots.latent(small_models.poisson(), [1, 2]), r"one value per row, 60 of them, got shape \(2,\)"),
        (lambda: plots.latent(small_models.poisson(), level=90), "level must be between 0 and 1"),
        (lambda: plots.tuning(small_models.poisson(), "gene 99"), "no column is called 'gene 99'"),
        (lambda: plots.tuning(small_models.poisson(), 20), "from 0 to 19, got 20"),
        (lambda: plots.tuning(small_models.small("multinomial"), 3, scale="predictor"), "has no predictor"),
        (lambda: plots.spectrum(small_models.poisson(), dimension=2), "from 0 to 1, got 2"),
        (lambda: plots.images(small_models.poisson(), (4, 4)), "with a product of 20"),
        (lambda: plots.images(small_models.poisson(), (4, 5), images=np.zeros((3, 20))), "the shape of the table"),
        (lambda: plots.images(small_models.poisson(), (4, 5), size=2.0), "size must be between 0 and 1"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, match):
    with pytest.raises(ValueError, match=match):
        draw()
    assert not plt.get_fignums()


def test_an_unfitted_model_is_refused():
    for draw in (plots.latent, plots.density, plots.kernel, plots.spectrum, plots.trace, plots.predictions):
        with pytest.raises(NotFittedError):
            draw(RFLVM())
