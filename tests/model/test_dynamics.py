"""The prior over time against dense Gaussian processes: every recursion is a matrix that can be written down."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from rflvm.model import dynamics
from rflvm.model.dynamics import Chronology, Matern

LENGTHSCALES = np.array([0.7, 3.0])
GAPS = np.array([0.0, 0.4, 1.3, 0.01, 2.0, 0.0, 0.5, 30.0, 0.2, 0.0])  # sessions of 5, 4 and 1 rows
FIRST = GAPS == 0
pytestmark = pytest.mark.usefixtures("x64")


def dense(nu, lengthscale, gaps=GAPS, first=FIRST):
    """The covariance matrix of one dimension."""
    session, time = np.cumsum(first), np.cumsum(gaps)
    r = np.abs(time[:, None] - time) / lengthscale * (1 if nu == 0.5 else np.sqrt(3))
    return np.where(session[:, None] == session, np.exp(-r) * (1 if nu == 0.5 else 1 + r), 0)


def chronology(gaps=GAPS, first=FIRST, dtype=float):
    return Chronology(jnp.asarray(gaps, dtype), jnp.asarray(first), jnp.asarray(1.0, dtype))


@pytest.fixture(params=[0.5, 1.5])
def process(request):
    """The smoothness, the dense covariance matrices, steps and innovations."""
    prior, lengthscales = Matern(request.param), jnp.asarray(LENGTHSCALES)
    K = [dense(request.param, lengthscale) for lengthscale in LENGTHSCALES]
    steps = dynamics.transitions(prior, lengthscales, chronology())
    return request.param, K, steps, dynamics.innovations(prior, lengthscales, chronology())


def information(rng):
    """Of each row about two dimensions: of full rank, singular and none at all."""
    roots = rng.normal(size=(len(GAPS), 2, 2))
    roots[2, :, 1] = 0
    roots[6] = 0
    return roots @ np.swapaxes(roots, 1, 2)


def dense_posterior(K, row_information, h):
    """Mean and covariance of x in the order (row, dimension)."""
    N = len(GAPS)
    prior = np.zeros((N, 2, N, 2))
    precision = np.zeros((N, 2, N, 2))
    for d in range(2):
        prior[:, d, :, d] = K[d]
    for n in range(N):
        precision[n, :, n] = row_information[n]
    prior, precision = prior.reshape(2 * N, -1), precision.reshape(2 * N, -1)
    covariance = np.linalg.inv(np.linalg.inv(prior) + precision)
    return (covariance @ h.ravel()).reshape(N, 2), covariance


def test_whitening_is_the_inverse_of_the_cholesky_factor(process):
    _, K, _, recursion = process
    X = np.random.default_rng(0).normal(size=(len(GAPS), 2))
    U = np.stack([np.linalg.solve(np.linalg.cholesky(K[d]), X[:, d]) for d in range(2)], axis=1)
    np.testing.assert_allclose(dynamics.whiten(jnp.asarray(X), recursion), U, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(dynamics.colour(jnp.asarray(U), recursion), X, rtol=1e-8, atol=1e-8)


def test_the_density_and_the_precision_are_those_of_the_dense_process(process):
    _, K, _, recursion = process
    X = np.random.default_rng(1).normal(size=(len(GAPS), 2))
    expected = sum(multivariate_normal.logpdf(X[:, d], cov=K[d]) for d in range(2))
    assert float(dynamics.log_density(jnp.asarray(X), recursion)) == pytest.approx(expected)
    solved = np.stack([np.linalg.solve(K[d], X[:, d]) for d in range(2)], axis=1)
    np.testing.assert_allclose(dynamics.times_precision(jnp.asarray(X), recursion), solved, rtol=1e-6, atol=1e-7)


def test_the_log_determinant(process):
    _, K, steps, _ = process
    g = np.random.default_rng(2).gamma(1.0, 3.0, (len(GAPS), 2))
    g[3] = 0
    expected = sum(np.linalg.slogdet(np.eye(len(g)) + g[:, [d]] * K[d])[1] for d in range(2))
    assert float(dynamics.log_determinant(jnp.asarray(g), steps)) == pytest.approx(expected)


def test_the_smoother_is_the_dense_posterior(process):
    _, K, steps, _ = process
    rng = np.random.default_rng(3)
    known, h = information(rng), rng.normal(size=(len(GAPS), 2))
    mean, covariance = dynamics.smoothed(dynamics.filtered(jnp.asarray(known), jnp.asarray(h), steps))
    expected, full = dense_posterior(K, known, h)
    np.testing.assert_allclose(mean, expected, rtol=1e-7, atol=1e-8)
    blocks = full.reshape(len(GAPS), 2, len(GAPS), 2)
    for n in range(len(GAPS)):
        np.testing.assert_allclose(covariance[n], blocks[n, :, n], rtol=1e-7, atol=1e-8)


def test_backward_sampling_has_the_covariance_of_the_dense_posterior(process):
    _, K, steps, _ = process
    rng = np.random.default_rng(4)
    each, N = information(rng), len(GAPS)
    known = dynamics.filtered(jnp.asarray(each), jnp.zeros((N, 2)), steps)
    T = dynamics.factor(known)
    columns = jax.vmap(lambda e: dynamics.multiply(T, e))(jnp.eye(N * 4).reshape(-1, N, 4)).reshape(N * 4, -1)
    full = dense_posterior(K, each, np.zeros((N, 2)))[1]
    np.testing.assert_allclose(columns.T @ columns, full, rtol=1e-5, atol=1e-6)
    x = jnp.asarray(rng.normal(size=(N, 2)))
    transposed = dynamics.multiply_transposed(T, x).ravel()
    np.testing.assert_allclose(transposed, columns @ x.ravel(), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("nu", [0.5, 1.5])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gaps_far_below_the_lengthscale_keep_their_digits(nu, dtype):
    """The variance of a step is near (2 r)^3 / 6 (r times a half of it) and would be rounding error by subtraction."""
    r = np.array([1e-4, 1e-2, 0.4999, 0.5001, 3.0])
    times = chronology(np.r_[0.0, r / (1 if nu == 0.5 else np.sqrt(3))], np.arange(6) == 0, dtype)
    step = dynamics.transitions(Matern(nu), jnp.ones(1, dtype), times)
    t = [2 * value for value in map(float, r)]
    exact = [_incomplete_gamma(value) if nu == 1.5 else -np.expm1(-value) for value in t]
    np.testing.assert_allclose(step.Q_xx[1:, 0], exact, rtol=2e-5 if dtype == "float32" else 1e-11)
    assert step.Q_xx.dtype == dtype


def _incomplete_gamma(t):
    return float(jax.scipy.special.gammainc(3.0, t))


def test_single_precision_whitens_long_lengthscales():
    N = 200
    times = chronology(np.r_[0.0, np.ones(N - 1)], np.arange(N) == 0)
    exact = dynamics.innovations(Matern(), jnp.asarray([100.0]), times)
    U = jax.random.normal(jax.random.key(0), (N, 1))
    X = dynamics.colour(U, exact)
    single = jax.tree.map(lambda part: part if part.dtype == bool else part.astype(jnp.float32), times)
    rounded = dynamics.innovations(Matern(), jnp.asarray([100.0], jnp.float32), single)
    np.testing.assert_allclose(dynamics.whiten(X.astype(jnp.float32), rounded), U, atol=0.02)


def test_some_rows_have_the_chronology_that_they_have_among_all():
    rows = np.array([1, 3, 4, 6, 7, 9])
    part = dynamics.take(chronology(), rows)
    whole = dense(1.5, 2.0)[np.ix_(rows, rows)]
    np.testing.assert_allclose(dense(1.5, 2.0, np.asarray(part.gap), np.asarray(part.first)), whole)


def test_derivatives_in_the_lengthscale_are_finite_and_right(process):
    nu, _, _, _ = process
    X = jnp.asarray(np.random.default_rng(5).normal(size=(len(GAPS), 2)))

    def value(log_lengthscale):
        recursion = dynamics.innovations(Matern(nu), jnp.exp(log_lengthscale), chronology())
        g = jnp.full((len(GAPS), 2), 2.0)
        return dynamics.log_density(X, recursion) - dynamics.log_determinant(g, recursion.step)

    at, ahead = jnp.log(jnp.asarray(LENGTHSCALES)), 1e-6
    slope = jax.grad(value)(at)
    for d in range(2):
        by_differences = (value(at.at[d].add(ahead)) - value(at.at[d].add(-ahead))) / (2 * ahead)
        assert float(slope[d]) == pytest.approx(float(by_differences), rel=1e-4)


def test_names_and_bad_settings():
    assert dynamics.get(None, 2) is None
    assert dynamics.get("ou", 2) == Matern(0.5)
    assert hash(Matern(1.5, [1.0, 2.0])) == hash(Matern(1.5, (1.0, 2.0)))
    with pytest.raises(ValueError, match="dynamics must be None, 'matern32', 'ou' or"):
        dynamics.get("rbf", 2)
    with pytest.raises(TypeError, match="dynamics must be"):
        dynamics.get(1.5, 2)
    with pytest.raises(ValueError, match="2 lengthscales for 3 latent dimensions"):
        dynamics.get(Matern(lengthscale=(1, 2)), 3)
    with pytest.raises(ValueError, match=r"nu must be 0\.5 or 1\.5"):
        Matern(2.5)
    with pytest.raises(ValueError, match="lengthscale"):
        Matern(lengthscale=-1.0)
    with pytest.raises(ValueError, match='lengthscale must be "learn"'):
        Matern(lengthscale="learned")


def test_which_priors_know_no_rotation():
    assert Matern(per_dimension=False).exchangeable
    assert not Matern().exchangeable
    assert Matern(lengthscale=2.0).exchangeable
    assert Matern(lengthscale=(2.0, 2.0)).exchangeable
    assert not Matern(lengthscale=(2.0, 3.0)).exchangeable


def states(nu):
    """The covariance of (x, v) of all rows of one dimension, from its recursion."""
    lengthscale = jnp.asarray(LENGTHSCALES[:1])
    step = dynamics.transitions(Matern(nu), lengthscale, chronology())
    N = len(GAPS)
    full = np.zeros((N, 2, N, 2))
    entry = lambda part, n: float(part[n, 0])  # noqa: E731
    for n in range(N):
        A = np.array([[entry(step.xx, n), entry(step.xv, n)], [entry(step.vx, n), entry(step.vv, n)]])
        Q = np.array([[entry(step.Q_xx, n), entry(step.Q_xv, n)], [entry(step.Q_xv, n), entry(step.Q_vv, n)]])
        for m in range(n):
            full[n, :, m] = A @ full[n - 1, :, m]
            full[m, :, n] = full[n, :, m].T
        full[n, :, n] = Q if n == 0 else A @ full[n - 1, :, n - 1] @ A.T + Q
    return step, full.reshape(2 * N, 2 * N)


def conditioned(full, on, values):
    """Mean and covariance of the other entries of a Gaussian given some."""
    rest = np.setdiff1d(np.arange(len(full)), on)
    slope = full[np.ix_(rest, on)] @ np.linalg.inv(full[np.ix_(on, on)])
    return slope @ values, full[np.ix_(rest, rest)] - slope @ full[np.ix_(on, rest)], rest


@pytest.mark.parametrize("nu", [0.5, 1.5])
def test_velocities_given_positions_are_those_of_the_dense_gaussian(nu):
    """Draws are linear in the noise: their mean and covariance follow exactly."""
    step, full = states(nu)
    N = len(GAPS)
    x = np.random.default_rng(0).normal(size=N)
    mean, covariance, _ = conditioned(full, np.arange(0, 2 * N, 2), x)
    draw = lambda e: dynamics.draw_velocities(e[:, None], jnp.asarray(x)[:, None], step)[:, 0]  # noqa: E731
    at_zero = np.asarray(draw(jnp.zeros(N)))
    root = np.stack([np.asarray(draw(jnp.eye(N)[n])) - at_zero for n in range(N)], axis=1)
    np.testing.assert_allclose(at_zero, mean, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(root @ root.T, covariance, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("nu", [0.5, 1.5])
def test_rows_between_their_neighbours_are_those_of_the_dense_gaussian(nu):
    """Given the states of all other rows; v integrated out of x, and v given x."""
    step, full = states(nu)
    N = len(GAPS)
    s = np.random.default_rng(1).normal(size=2 * N)
    found = dynamics.between_neighbours(jnp.asarray(s[::2])[:, None], jnp.asarray(s[1::2])[:, None], step)
    for n in range(N):
        others = np.setdiff1d(np.arange(2 * N), [2 * n, 2 * n + 1])
        mean, covariance, _ = conditioned(full, others, s[others])
        assert float(found.mean[n, 0]) == pytest.approx(mean[0], rel=1e-6, abs=1e-8)
        assert float(found.precision[n, 0]) == pytest.approx(1 / covariance[0, 0], rel=1e-6)
        slope = covariance[1, 0] / covariance[0, 0]
        left = covariance[1, 1] - slope * covariance[0, 1]
        assert float(found.v_precision[n, 0]) == pytest.approx(1 / left, rel=1e-6)
        v_mean = float(found.v_mean[n, 0] + found.v_slope[n, 0] * 0.7)
        assert v_mean == pytest.approx(mean[1] + slope * (0.7 - mean[0]), rel=1e-6, abs=1e-7)
