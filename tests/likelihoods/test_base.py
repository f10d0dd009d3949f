"""What all families share: densities against SciPy, moments, draws, gradients, and the form of Eq. 7."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from rflvm import likelihoods
from rflvm.likelihoods import base

F = np.array([[-2.0, 0.3], [0.0, 1.1], [-0.7, 1.6]])
TRIALS = np.array([[5.0, 1.0], [12.0, 3.0], [0.0, 40.0]])
SIGMA2 = np.array([0.5, 2.0])
R = np.array([0.6, 4.0])

ODDS = np.array([0.4, 1.5])
GAPS = np.array([[0.4, 1.1], [2.5, 0.05]])  # of 4 categories


class Discrete:
    """A law on 0, 1, 2, ..., K - 1 from its probabilities (K, N, J), with the methods of SciPy's laws."""

    def __init__(self, p):
        self.p, self.k = p, np.arange(len(p), dtype=float)[:, None, None]

    def pmf(self, y):
        return np.take_along_axis(self.p, np.asarray(y, int)[None], axis=0)[0]

    def logpmf(self, y):
        return np.log(self.pmf(y))

    def rvs(self, random_state):
        return (random_state.random(self.p.shape[1:]) > np.cumsum(self.p, axis=0)).sum(axis=0)

    def mean(self):
        return (self.k * self.p).sum(axis=0)

    def var(self):
        return ((self.k - self.mean()) ** 2 * self.p).sum(axis=0)

    def stats(self, moments):
        return ((self.k - self.mean()) ** 4 * self.p).sum(axis=0) / self.var() ** 2 - 3


def ordered(gaps):
    """Probabilities of the categories between the cut points 0, gap_1, gap_1 + gap_2, ..."""
    cuts = np.concatenate([np.zeros((1, 2)), np.cumsum(gaps, axis=0)])[:, None]
    below = np.concatenate([np.zeros((1, *F.shape)), expit(cuts - F), np.ones((1, *F.shape))])
    return Discrete(np.diff(below, axis=0))


def inflated(law, n=600):
    """So many zeros more."""
    k = np.arange(n)[:, None, None]
    return Discrete((law.pmf(k) + ODDS * (k == 0)) / (1 + ODDS))


CASES = {
    "gaussian": (likelihoods.Gaussian(), {"sigma2": SIGMA2}, None, stats.norm(F, np.sqrt(SIGMA2))),
    "poisson": (likelihoods.Poisson(), {}, None, stats.poisson(np.exp(F))),
    "bernoulli": (likelihoods.Bernoulli(), {}, None, stats.bernoulli(expit(F))),
    "binomial": (likelihoods.Binomial(trials=1), {}, TRIALS, stats.binom(TRIALS.astype(int), expit(F))),
    "multinomial": (likelihoods.Multinomial(), {}, TRIALS, stats.binom(TRIALS.astype(int), expit(F))),
    "negative_binomial": (
        likelihoods.NegativeBinomial(),
        {"r": R, "h": np.array(1.0)},
        None,
        stats.nbinom(R, 1 - expit(F)),
    ),
    "student_t": (
        likelihoods.StudentT(),
        {"sigma2": SIGMA2, "nu": np.array([7.0, 4.5])},
        None,
        stats.t([7.0, 4.5], F, np.sqrt(SIGMA2)),
    ),
    "student_t, given": (
        likelihoods.StudentT(freedom=5.0),
        {"sigma2": SIGMA2},
        None,
        stats.t(5.0, F, np.sqrt(SIGMA2)),
    ),
    "ordinal": (likelihoods.Ordinal(low=0, high=3), {"gaps": GAPS}, None, ordered(GAPS)),
    "zero_inflated_poisson": (
        likelihoods.ZeroInflatedPoisson(),
        {"odds": ODDS},
        None,
        inflated(stats.poisson(np.exp(F))),
    ),
    "zero_inflated_negative_binomial": (
        likelihoods.ZeroInflatedNegativeBinomial(),
        {"odds": ODDS, "r": R, "h": np.array(1.0)},
        None,
        inflated(stats.nbinom(R, 1 - expit(F))),
    ),
}
REAL = ("gaussian", "student_t")
LOGISTIC = [name for name, case in CASES.items() if isinstance(case[0], likelihoods.Logistic)]


@pytest.fixture(params=CASES)
def case(request, x64):
    family, theta, trials, law = CASES[request.param]
    theta = {name: jnp.asarray(value) for name, value in theta.items()}
    return family, theta, None if trials is None else jnp.asarray(trials), law


def test_log_prob_equals_scipy(case):
    family, theta, trials, law = case
    y = np.asarray(law.rvs(random_state=np.random.default_rng(0)), float)
    actual = jax.jit(family.log_prob)(jnp.asarray(y), jnp.asarray(F), theta, trials)
    expected = law.logpdf(y) if family.name in REAL else law.logpmf(y)
    np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-12)


def test_density_sums_to_one(case):
    family, theta, trials, _ = case
    if family.name in REAL:
        grid, weight = (np.arange(-2000, 2000) * 0.01, 0.01) if family.name == "gaussian" else student_grid()
    else:
        grid, weight = np.arange({"bernoulli": 2.0, "ordinal": 4.0}.get(family.name, 600.0)), 1.0
    log_prob = jax.jit(jax.vmap(lambda y: family.log_prob(jnp.full(F.shape, y), jnp.asarray(F), theta, trials)))
    p = np.asarray(jnp.exp(log_prob(jnp.asarray(grid))))
    if trials is not None:
        p = np.where(grid[:, None, None] <= np.asarray(trials), p, 0)
    np.testing.assert_allclose((p * np.reshape(weight, (-1, 1, 1))).sum(0), 1, rtol=1e-9)


def student_grid():
    """Points and weights of the real line, y = sinh u: far enough out for heavy tails."""
    u = np.linspace(-14, 14, 4001)
    return np.sinh(u), np.cosh(u) * (u[1] - u[0])


def test_the_slope_is_the_derivative_and_the_curvature_is_not_negative(case):
    family, theta, trials, law = case
    y = jnp.asarray(np.asarray(law.rvs(random_state=np.random.default_rng(2)), float))
    cells, slope, curvature = family.slope_and_curvature(y, jnp.asarray(F), theta, trials)
    factor = lambda f: family.log_factor(y, f, theta, trials)  # noqa: E731
    np.testing.assert_allclose(cells, factor(jnp.asarray(F)), rtol=1e-13)
    np.testing.assert_allclose(slope, jax.grad(lambda f: factor(f).sum())(jnp.asarray(F)), rtol=1e-11, atol=1e-13)
    assert (np.asarray(curvature) >= 0).all()


def test_factor_and_base_make_the_density(case):
    family, theta, trials, law = case
    y = jnp.asarray(np.asarray(law.rvs(random_state=np.random.default_rng(1)), float))
    split = family.log_factor(y, jnp.asarray(F), theta, trials) + family.log_base(y, theta, trials)
    np.testing.assert_allclose(split, family.log_prob(y, jnp.asarray(F), theta, trials), rtol=1e-13)


def test_mean_and_variance_equal_scipy(case):
    family, theta, trials, law = case
    np.testing.assert_allclose(family.mean(jnp.asarray(F), theta, trials), law.mean(), rtol=1e-12)
    np.testing.assert_allclose(family.variance(jnp.asarray(F), theta, trials), law.var(), rtol=1e-12)


def test_draws_have_the_moments_of_the_law(case):
    """At most 12 z-scores, with exact standard errors: a correct sampler exceeds 5 with probability 1e-5."""
    family, theta, trials, law = case
    size = 10_000
    draw = jax.jit(jax.vmap(lambda key: family.sample(key, jnp.asarray(F), theta, trials)))
    y = np.asarray(draw(jax.random.split(jax.random.key(0), size)))
    with np.errstate(divide="ignore", invalid="ignore"):  # cells without trials have no kurtosis
        mean, variance, kurtosis = law.mean(), law.var(), law.stats(moments="k")
    fourth = np.where(variance > 0, kurtosis + 2, 0) * variance**2
    for values, expected, spread in [(y, mean, variance), ((y - mean) ** 2, variance, fourth)]:
        constant = spread < 1e-12  # no trials, or the squares of a fair coin
        z = (values.mean(0) - expected)[~constant] / np.sqrt(spread[~constant] / size)
        assert np.abs(z).max() < 5
        np.testing.assert_allclose(values[:, constant], np.tile(expected[constant], (size, 1)))


def test_gradient_of_the_factor_equals_central_differences(case):
    family, theta, trials, law = case
    y = jnp.asarray(np.asarray(law.rvs(random_state=np.random.default_rng(2)), float))
    factor = jax.jit(lambda f: family.log_factor(y, f, theta, trials))
    gradient = jax.jit(jax.grad(lambda f: factor(f).sum()))(jnp.asarray(F))
    difference = (factor(jnp.asarray(F + 1e-6)) - factor(jnp.asarray(F - 1e-6))) / 2e-6
    np.testing.assert_allclose(gradient, difference, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", LOGISTIC)
def test_exponents_reproduce_the_factor(x64, name):
    family, theta, trials, law = CASES[name]
    y = jnp.asarray(np.asarray(law.rvs(random_state=np.random.default_rng(3)), float))
    theta = {key: jnp.asarray(value) for key, value in theta.items()}
    trials = None if trials is None else jnp.asarray(trials)
    a, b = family.exponents(y, theta, trials)
    expected = np.log(np.exp(F) ** np.asarray(a) / (1 + np.exp(F)) ** np.asarray(b))
    np.testing.assert_allclose(family.log_factor(y, jnp.asarray(F), theta, trials), expected, rtol=1e-10, atol=1e-14)
    if family.unit_shape:
        np.testing.assert_array_equal(b, 1)


@pytest.mark.parametrize("name", LOGISTIC)
def test_logistic_factor_and_slope_are_finite_for_huge_predictors(x64, name):
    family, theta, trials, law = CASES[name]
    theta = {key: jnp.asarray(value) for key, value in theta.items()}
    y = jnp.asarray(np.asarray(law.rvs(random_state=np.random.default_rng(4)), float))
    trials = None if trials is None else jnp.asarray(trials)
    value_and_slope = jax.jit(jax.value_and_grad(lambda f: family.log_factor(y, f, theta, trials).sum()))
    for f in (-800.0, 800.0):
        value, slope = value_and_slope(jnp.full(F.shape, f))
        assert np.isfinite(value)
        assert np.isfinite(slope).all()


def test_softplus_equals_logaddexp_and_its_derivatives_those_of_the_sigmoid(x64):
    """Zero included: it is where the predictors of a balanced column start."""
    f = np.linspace(-50, 50, 101)
    slope = jax.grad(base.softplus)
    np.testing.assert_allclose(base.softplus(jnp.asarray(f)), np.logaddexp(0, f), rtol=1e-14)
    np.testing.assert_allclose(jax.jit(jax.vmap(slope))(jnp.asarray(f)), expit(f), rtol=1e-12)
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(slope)))(jnp.asarray(f)), expit(f) * expit(-f), atol=1e-15)


def test_sum_observed_ignores_what_the_mask_hides(x64):
    values, mask = np.array([[1.0, np.nan], [3.0, 4.0]]), np.array([[True, False], [True, True]])
    assert float(base.sum_observed(jnp.asarray(values), jnp.asarray(mask))) == 8
    np.testing.assert_array_equal(base.sum_observed(jnp.asarray(values), jnp.asarray(mask), axis=0), [4, 4])


def test_get_finds_families_by_name_and_passes_objects_through():
    assert isinstance(likelihoods.get("poisson"), likelihoods.Poisson)
    family = likelihoods.Binomial(trials=3)
    assert likelihoods.get(family) is family


def test_a_family_without_its_methods_says_what_is_missing():
    class Empty(likelihoods.Likelihood):
        pass

    with pytest.raises(NotImplementedError, match="Empty does not define mean"):
        Empty().mean(jnp.zeros((1, 1)), {})


@pytest.mark.parametrize(
    "make",
    [
        likelihoods.Poisson,
        likelihoods.Multinomial,
        lambda: likelihoods.Gaussian(a0=2.0),
        lambda: likelihoods.Binomial(trials=4),
        lambda: likelihoods.Binomial(trials=np.array([[1, 2], [3, 4]])),
        lambda: likelihoods.Custom(jnp.add),
    ],
)
def test_equal_families_are_equal_and_hash_alike(make):
    """So that a program compiled for one serves the other."""
    assert make() == make()
    assert hash(make()) == hash(make())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (likelihoods.Binomial(trials=4), likelihoods.Binomial(trials=5)),
        (likelihoods.Binomial(trials=np.array([4, 4])), likelihoods.Binomial(trials=4)),
        (likelihoods.Gaussian(), likelihoods.Gaussian(marginal=False)),
        (likelihoods.Multinomial(), likelihoods.Poisson()),
        (likelihoods.Custom(jnp.add), likelihoods.Custom(jnp.subtract)),
    ],
)
def test_families_that_differ_are_not_equal(one, other):
    assert one != other
