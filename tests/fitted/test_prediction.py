"""Rows placed in a fitted model: against integration on a grid, for every family, with missing cells and offsets."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rflvm import likelihoods
from rflvm.data import checks
from rflvm.fitted import prediction
from rflvm.fitted.members import Members, choose_members, held, known_ranges
from rflvm.model.features import features
from rflvm.model.joint import Data, Model, sample_prior

J, H, S = 8, 5, 6
FAMILIES = {
    "gaussian": likelihoods.Gaussian(),
    "poisson": likelihoods.Poisson(),
    "bernoulli": likelihoods.Bernoulli(),
    "binomial": likelihoods.Binomial(trials=4),
    "negative-binomial": likelihoods.NegativeBinomial(),
    "multinomial": likelihoods.Multinomial(),
}
ALSO_IN_OTHERS = ("bernoulli", "binomial")  # multinomial rows are binomial cells
GRID = np.stack(np.meshgrid(*[np.linspace(-4.5, 4.5, 61)] * 2), axis=-1).reshape(-1, 2)
AREA = 0.15**2

pytestmark = pytest.mark.usefixtures("x64")


def fitted(family: likelihoods.Likelihood, spread: float = 0.1):
    """A model, and members that differ a little from one draw of the prior, as the draws of a chain do.

    They are not held to the ranges of their functions; the tests of ranges do that.
    """
    model = Model(family, 2, H)
    state = sample_prior(jax.random.key(1), model, 40, J - isinstance(family, likelihoods.Multinomial), jnp.float64)
    rng = np.random.default_rng(0)
    scale = np.append(np.ones(2 * H), 0.1)[:, None]
    beta = scale * (np.asarray(state.beta) + spread * rng.standard_normal((S, *state.beta.shape)))
    repeated = lambda part: np.repeat(np.asarray(part)[None], S, axis=0)  # noqa: E731
    theta = {name: repeated(np.full_like(value, 1.5)) for name, value in state.theta.items()}
    observed = np.ones((40, beta.shape[2]), bool)
    chosen = choose_members(repeated(state.X), repeated(state.W), beta, theta, observed, seed=0)
    return model, jax.tree.map(jnp.asarray, chosen.free())


def rows(model: Model, members: Members, n: int = 8) -> Data:
    """New rows from the model itself, with gaps and offsets; the last has no observed cell."""
    rng = np.random.default_rng(2)
    offset = rng.normal(scale=0.3, size=n)
    trials = np.full((n, J), 4.0) if model.likelihood.name == "binomial" else None
    _, drawn = prediction.generate(jax.random.key(3), offset, trials, None, np.full(n, 20.0), members, model)
    Y = np.where(rng.random((n, J)) < 0.2, np.nan, drawn)
    Y[-1] = np.nan
    return checks.to_device(checks.check_rows(Y, model.likelihood, offset, None), "float64")


def on_grid(data: Data, members: Members, model: Model) -> tuple[np.ndarray, np.ndarray]:
    """log p(y*, x | member) over the grid (S, n, G), and E[y | x] there (S, n, G, K)."""
    log_density, response = [], []
    for s in range(S):
        theta = {name: value[s] for name, value in members.theta.items()}
        flat = features(jnp.asarray(GRID), members.W[s]) @ members.beta[s]
        per_row, expected = [], []
        for i in range(len(data.Y)):
            F = flat + data.offset[i]
            whole = lambda part, F=F, i=i: jnp.broadcast_to(part[i], F.shape)  # noqa: E731
            trials = None if data.trials is None else whole(data.trials)
            cells = model.likelihood.log_prob(whole(data.Y), F, theta, trials)
            cells = cells if data.mask is None else jnp.where(data.mask[i], cells, 0)
            per_row.append(cells.sum(axis=1) - 0.5 * np.sum(GRID**2, axis=1) - np.log(2 * np.pi))
            expected.append(model.likelihood.respond(F, theta, trials))
        log_density.append(per_row)
        response.append(expected)
    return np.array(log_density), np.array(response)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.long if n in ALSO_IN_OTHERS else ()) for n in FAMILIES]
)
def test_rows_are_placed_as_integration_on_a_grid_places_them(name):
    """Mean and spread of x*, density of y*, the expectation of every cell; and replicates have that expectation."""
    model, members = fitted(FAMILIES[name])
    data = rows(model, members)
    log_density, response = on_grid(data, members, model)
    p = np.exp(log_density) * AREA
    within = p / p.sum(axis=2, keepdims=True)
    mean = np.einsum("sng,gd->nd", within, GRID) / S
    second = np.einsum("sng,gd,ge->nde", within, GRID, GRID) / S
    std = np.sqrt(np.diagonal(second, axis1=1, axis2=2) - mean**2)
    expected = np.einsum("sng,sngk->nk", within, response) / S

    block, n = next(prediction.blocks(data))
    placed = prediction.place(block, members, model)
    found = prediction.moments(placed)
    found_std = np.sqrt(np.diagonal(found.covariance, axis1=1, axis2=2))[:n]
    # Some of the posteriors have more modes than the two places that are looked up, which shows in the worst row.
    error = np.abs((found.mean[:n] - mean) / std)
    assert np.median(error) < 0.07
    assert error.max() < 0.4
    assert abs(np.median(found_std / std) - 1) < 0.05
    log_evidence = np.log(p.sum(axis=2).mean(axis=0))
    np.testing.assert_allclose(found.log_density[:n], log_evidence, atol=0.25)
    assert np.median(np.abs(found.log_density[:n] - log_evidence)) < 0.06
    found_expected = np.asarray(prediction.expected(placed, block, members, model))[:n]
    assert np.median(np.abs(found_expected - expected)) < 0.05 * expected.std()

    totals = jnp.full(len(block.Y), 20.0)
    drawn = np.asarray(prediction.replicates(jax.random.key(0), placed, block, totals, members, model))[:, :n]
    expected = 20 * found_expected if name == "multinomial" else found_expected
    assert drawn.shape == (S * prediction.N_DRAWS, n, J)
    standard_error = drawn.std(axis=0) / np.sqrt(len(drawn))
    assert np.abs(drawn.mean(axis=0) - expected).max() < 5 * standard_error.max() + 0.02


def test_the_answer_for_a_row_does_not_depend_on_its_neighbours():
    model, members = fitted(FAMILIES["poisson"])
    Y = np.random.default_rng(0).poisson(2, (300, J)).astype(float)
    Y[np.random.default_rng(1).random(Y.shape) < 0.2] = np.nan

    def answers(Y):
        data = checks.to_device(checks.check_rows(Y, model.likelihood, None, None), "float64")
        parts = []
        for block, n in prediction.blocks(data):
            placed = prediction.place(block, members, model)
            both = *prediction.moments(placed), prediction.medians(placed, block, members, model)
            parts.append(jax.tree.map(lambda part, n=n: part[:n], both))
        return jax.tree.map(lambda *parts: np.concatenate(parts), *parts)

    together = answers(Y)
    order = np.random.default_rng(0).permutation(len(Y))
    for other, which in ((answers(Y[order]), order), (answers(Y[7:8]), [7]), (answers(Y[290:]), range(290, 300))):
        for a, b in zip(together, other, strict=True):
            np.testing.assert_array_equal(a[np.asarray(which)], b)


def values_and_weights(placed, block, n, members, model):
    """E[y | f] of every cell of n rows under every member at every point (S Q, n, K), and the weights (S Q, n)."""
    values = []
    for s in range(S):
        theta = {name: value[s] for name, value in members.theta.items()}
        for X in placed.X[s]:
            F = features(X, members.W[s]) @ members.beta[s] + block.offset[:, None]
            values.append(np.asarray(model.likelihood.respond(F, theta, block.trials))[:n])
    return np.array(values), np.asarray(prediction.weights(placed)).reshape(len(values), -1)[:, :n]


@pytest.mark.parametrize("name", ["gaussian", "poisson", "multinomial"])
def test_cells_are_summarised_by_the_weighted_median_or_mean_over_members_and_points(name):
    model, members = fitted(FAMILIES[name])
    block, n = next(prediction.blocks(rows(model, members)))
    placed = prediction.place(block, members, model)
    values, w = values_and_weights(placed, block, n, members, model)
    order = np.argsort(values, axis=0)
    below = np.cumsum(np.take_along_axis(np.broadcast_to(w[..., None], values.shape), order, axis=0), axis=0)
    median = np.take_along_axis(values, np.take_along_axis(order, (below < 0.5).sum(axis=0)[None], axis=0), axis=0)[0]
    if name == "multinomial":
        assert np.abs(median.sum(axis=1) - 1).max() > 1e-4
        median /= median.sum(axis=1, keepdims=True)
    found = np.asarray(prediction.medians(placed, block, members, model))[:n]
    # Weights are added in single precision, which may decide for the neighbour of a value.
    assert np.mean(np.isclose(found, median, rtol=1e-9)) > 0.95
    np.testing.assert_allclose(found, median, rtol=1e-2, atol=1e-4)
    found = np.asarray(prediction.expected(placed, block, members, model))[:n]
    np.testing.assert_allclose(found, np.einsum("vn,vnk->nk", w, values), rtol=1e-9)


def test_a_few_extreme_draws_move_the_mean_and_not_the_median():
    model, members = fitted(FAMILIES["poisson"])
    block, n = next(prediction.blocks(rows(model, members)))
    extreme = members._replace(beta=members.beta.at[0, -1, 0].add(30))
    # The row without observed cells, which no member is at odds with.
    for at, factor in (("median", 2), ("mean", 1e9)):
        summarised = {"median": prediction.medians, "mean": prediction.expected}[at]
        usual, moved = (
            np.asarray(summarised(prediction.place(block, some, model), block, some, model))[n - 1, 0]
            for some in (members, extreme)
        )
        decoded, decoded_moved = (
            np.asarray(prediction.decode(jnp.zeros((1, 2)), jnp.zeros(1), None, None, some, model, at))[0, 0]
            for some in (members, extreme)
        )
        for ratio in (moved / usual, decoded_moved / decoded):
            assert ratio < factor if at == "median" else ratio > factor


def test_new_rows_follow_the_prior_and_the_members():
    model, members = fitted(FAMILIES["poisson"])
    n = 4000
    X, Y = prediction.generate(jax.random.key(0), np.zeros(n), None, None, np.zeros(n), members, model)
    assert np.abs(np.cov(X.T) - np.eye(2)).max() < 0.1
    expected = prediction.decode(jnp.asarray(X), jnp.zeros(n), None, None, members, model, "mean")
    assert np.abs((Y - expected).mean(axis=0) / (Y.std(axis=0) / np.sqrt(n))).max() < 4


def test_the_known_range_is_that_at_the_observed_rows_and_a_share_of_it(monkeypatch):
    monkeypatch.setattr("rflvm.fitted.members.RANGE_CELLS", 3 * J)  # several blocks of rows
    rng = np.random.default_rng(0)
    X, W, beta = rng.normal(size=(S, 20, 2)), rng.normal(size=(S, H, 2)), rng.normal(size=(S, 2 * H + 1, J))
    mask = rng.random((20, J)) < 0.5
    mask[:, 0], mask[:, 1] = np.arange(20) == 4, False
    lowest, highest = known_ranges(X, W, beta, mask)
    for s in range(S):
        F = np.asarray(features(jnp.asarray(X[s]), jnp.asarray(W[s])) @ beta[s])
        for j in range(2, J):
            known = F[mask[:, j], j]
            beyond = (known.max() - known.min()) / (len(known) - 1)
            np.testing.assert_allclose([lowest[s, j], highest[s, j]], [known.min() - beyond, known.max() + beyond])
    assert (lowest[:, :2] == -np.inf).all()
    assert (highest[:, :2] == np.inf).all()


def test_what_is_predicted_stays_within_the_known_range():
    """Expectations by either summary, replicates and new rows; positions and densities are those of f as it is."""
    model, free = fitted(FAMILIES["poisson"])
    lowest, highest = jnp.full((S, J), -0.2), jnp.full((S, J), 0.1)
    bound = free._replace(lowest=lowest, highest=highest)
    block, n = next(prediction.blocks(rows(model, free)))
    placed = prediction.place(block, free, model)
    for a, b in zip(placed, prediction.place(block, bound, model), strict=True):
        np.testing.assert_array_equal(a, b)
    F = np.asarray(held(jnp.asarray(GRID), jax.tree.map(lambda part: part[0], bound.functions)))
    np.testing.assert_array_equal(F, np.clip(features(jnp.asarray(GRID), free.W[0]) @ free.beta[0], -0.2, 0.1))

    offset = np.asarray(block.offset)[:n, None]

    def rates(members):
        for summarised in (prediction.medians, prediction.expected):
            yield np.asarray(summarised(placed, block, members, model))[:n] / np.exp(offset)
        for summary in prediction.SUMMARIES:
            none = jnp.zeros(len(GRID))
            yield np.asarray(prediction.decode(jnp.asarray(GRID), none, None, None, members, model, summary))

    for found, unbound in zip(rates(bound), rates(free), strict=True):
        assert np.log(found).min() > -0.2 - 1e-9
        assert np.log(found).max() < 0.1 + 1e-9
        assert np.ptp(np.log(unbound)) > 1
    # Rows have the same random numbers, so that there are S N_DRAWS = 96 draws of a cell of mean 0.8 to 1.1, whose mean
    # is within 0.5 of that unless it is five standard errors off.
    for members, is_held in ((bound, True), (free, False)):
        drawn = prediction.replicates(jax.random.key(0), placed, block, jnp.zeros(len(block.Y)), members, model)
        means = (np.asarray(drawn)[:, :n] / np.exp(offset)).mean(axis=(0, 1))
        assert ((means > 0.3) & (means < 1.6)).all() == is_held
    _, Y = prediction.generate(jax.random.key(0), np.zeros(4000), None, None, np.zeros(4000), bound, model)
    assert (np.abs(np.log(Y.mean(axis=0))) < 0.3).all()
