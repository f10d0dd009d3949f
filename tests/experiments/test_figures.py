"""Figures are drawn from what is in the files of their fits, whatever the fits were."""

from __future__ import annotations

import numpy as np
import pytest

from rflvm.experiments import figure_faces, figure_gaussian, figure_hippocampus, figure_mnist, figure_poisson
from rflvm.experiments.images import Images, quarter
from rflvm.experiments.store import Result


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def some_images(rng, n=30, side=6):
    return Images(rng.poisson(5.0, (n, side * side)).astype(float), rng.integers(0, 2, n), (side, side))


def assert_drawn(paths, folder, name):
    assert paths == [folder / f"{name}.png", folder / f"{name}.pdf"]
    assert all(path.stat().st_size > 1000 for path in paths)


def test_quarter_takes_every_other_pixel(rng):
    images = some_images(rng)
    small = quarter(images, 10)
    assert small.shape == (3, 3)
    assert small.target.shape == (10,)
    np.testing.assert_array_equal(small.data[4].reshape(3, 3), images.data[4].reshape(6, 6)[::2, ::2])


def test_tiles_are_where_rows_are(rng):
    X = np.array([[0.0, 0.0], [0.1, 0.1], [4.0, 1.0]])
    places, means = figure_faces.tiles(X, 4)
    np.testing.assert_allclose(places, [[0.5, 0.5], [3.5, 1.5]])
    np.testing.assert_allclose(means, [[0.05, 0.05], [4.0, 1.0]])
    X = rng.standard_normal((500, 2))
    places, means = figure_faces.tiles(X, 8)
    side = np.ptp(X, axis=0).max() / 8
    nearest = np.abs(X[:, None] - places).max(axis=2).min(axis=0)
    assert len(places) == len(np.unique(places, axis=0)) > 8
    assert (nearest <= side / 2 + 1e-9).all()
    assert (np.abs(means - places) <= side / 2 + 1e-9).all()


def test_figure_faces(monkeypatch, tmp_path, rng):
    images = some_images(rng)
    monkeypatch.setattr(figure_faces, "LOADERS", dict.fromkeys(figure_faces.LOADERS, lambda: images))
    X = rng.standard_normal((30, 2))
    places, _ = figure_faces.tiles(X, 5)
    arrays = {"X": X, "tiles": places, "generated": rng.random((len(places), 36)) * 100}
    results = [Result({"dataset": name}, arrays) for name in figure_faces.LOADERS]
    assert [task.name for task in figure_faces.tasks(quick=True)] == list(figure_faces.LOADERS)
    assert_drawn(figure_faces.draw(results, tmp_path, quick=False), tmp_path, "figure-faces")


def test_figure_mnist(monkeypatch, tmp_path, rng):
    monkeypatch.setattr(figure_mnist, "load", lambda quick: some_images(np.random.default_rng(0)))
    X = rng.standard_normal((30, 2))
    counts, edges_x, edges_y = np.histogram2d(*(X + 0.1).T, bins=10)
    drawn = {"X": X, "counts": counts, "edges_x": edges_x, "edges_y": edges_y}
    results = [
        Result({"method": method, "accuracy": 0.5}, arrays)
        for method, arrays in zip(figure_mnist.METHODS, ({"X": X}, drawn), strict=True)
    ]
    assert_drawn(figure_mnist.draw(results, tmp_path, quick=False), tmp_path, "figure-mnist")


def test_figure_poisson(tmp_path, rng):
    N, _ = figure_poisson.QUICK_SHAPE
    results = [
        Result({"method": method, "run": 0, "R2": 0.9, "mse_F": 0.1}, {"X": rng.random((N, 2)), "F": rng.random(N)})
        for method in figure_poisson.METHODS
    ]
    assert_drawn(figure_poisson.draw(results, tmp_path, quick=True), tmp_path, "figure-poisson")


def test_figure_hippocampus(monkeypatch, tmp_path, rng):
    """One fit of DLA-GPLVM, which has no seed, serves all runs."""

    def fit(method, runs, quick):
        values = {"accuracy": [0.8] * len(runs), "R2": [0.5] * len(runs)}
        return {"method": method, "runs": list(runs), **values}, {"X": rng.random((20, 3))}

    monkeypatch.setattr(figure_hippocampus, "load", lambda quick: (None, rng.random((20, 2)), rng.integers(0, 3, 20)))
    monkeypatch.setattr(figure_hippocampus, "fit", fit)
    results = [Result(*task.run()) for task in figure_hippocampus.tasks(quick=False)]
    runs = [result.values["runs"] for result in results]
    assert runs == [[0, 1, 2, 3, 4], *([[run] for run in range(5)] * 2)]
    assert_drawn(figure_hippocampus.draw(results, tmp_path, quick=False), tmp_path, "figure-hippocampus")


def test_figure_gaussian(tmp_path, rng):
    N, _ = figure_gaussian.QUICK_SHAPE
    results = [
        Result(
            {"method": method, "M": M, "run": 0, "R2": 0.9, "mse_Y": 0.1},
            {"X": rng.random((N, 2)), "F": rng.random(N), "K": rng.random((20, 20))},
        )
        for method in figure_gaussian.METHODS
        for M in figure_gaussian.QUICK_SIZES
    ]
    assert_drawn(figure_gaussian.draw(results, tmp_path, quick=True), tmp_path, "figure-gaussian")
