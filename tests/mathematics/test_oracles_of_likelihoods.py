"""The oracles of all likelihoods: against SciPy's densities, finite differences, quadrature and Monte Carlo."""

import copy
import itertools

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.optimize import approx_fprime
from scipy.special import logsumexp

from oracles import discrete, gaussians, missing, models
from oracles.models import Array, Likelihood
from oracles.points import Point, points_of
from oracles.quadrature import whole_line

MATRIX = np.array([[2.0, 0.6, 0.1], [0.6, 1.5, -0.3], [0.1, -0.3, 1.2]])
MEAN = np.array([0.5, -1.0, 0.2])
PRODUCT = gaussians.SphericalIndependent(MEAN, 0.4, 2.2, 1.7)
CONJUGATE: dict[str, Likelihood] = {
    "gaussian": models.NormalWishart(MEAN, 0.4, 5.3, MATRIX),
    "zero_mean_gaussian": models.ZeroMeanWishart(4.7, MATRIX),
    "diagonal": gaussians.DiagonalNormalGamma(MEAN, 0.7, 2.2, np.array([1.1, 0.6, 0.9])),
    "spherical": gaussians.SphericalNormalGamma(MEAN, 0.7, 2.2, 1.3),
    "known_covariance": gaussians.KnownCovariance(MATRIX, MEAN, 0.3),
    "known_covariance_general": gaussians.KnownCovarianceGeneral(MATRIX, MEAN, np.diag([0.5, 0.9, 0.2])),
    "multinomial": discrete.Multinomial(np.array([1.5, 1.2, 2.8])),
    "ordered_words": discrete.Multinomial(np.array([1.5, 1.2, 2.8]), coefficient=False),
    "bernoulli": discrete.Bernoulli(np.array([1.6, 1.0, 2.0]), np.array([1.9, 1.0, 1.5])),
    "poisson": discrete.Poisson(np.array([1.5, 1.8, 1.0]), 0.9),
    "negative_binomial": discrete.NegativeBinomial(np.array([4.0, 6.0, 8.0]), np.array([1.5, 1.8, 1.0]), 0.9),
}
COMPLETE: dict[str, Likelihood] = CONJUGATE | {"spherical_product": PRODUCT}
MARGINALISING: dict[str, missing.MissingLikelihood] = {
    "diagonal": missing.MissingDiagonal(MEAN, 0.7, 2.2, np.array([1.1, 0.6, 0.9])),
    "bernoulli": missing.MissingBernoulli(np.array([1.6, 1.0, 2.0]), np.array([1.9, 1.0, 1.5])),
    "poisson": missing.MissingPoisson(np.array([1.5, 1.8, 1.0]), 0.9),
    "negative_binomial": missing.MissingNegativeBinomial(
        np.array([4.0, 6.0, 8.0]), np.array([1.5, 1.8, 1.0]), np.array([0.9, 0.9, 0.9])
    ),
    "spherical": missing.MissingSpherical(MEAN, 0.7, 2.2, 1.3),
    "known_covariance": missing.MissingKnown(MATRIX, MEAN, 0.3),
    "known_covariance_general": missing.MissingKnown(MATRIX, MEAN, np.diag([0.5, 0.9, 0.2])),
}
EXPONENTIAL = CONJUGATE | {f"missing_{name}": likelihood for name, likelihood in MARGINALISING.items()}

of_conjugate = pytest.mark.parametrize("likelihood", CONJUGATE.values(), ids=CONJUGATE.keys())
of_complete = pytest.mark.parametrize("likelihood", COMPLETE.values(), ids=COMPLETE.keys())
of_exponential = pytest.mark.parametrize("likelihood", EXPONENTIAL.values(), ids=EXPONENTIAL.keys())
of_marginalising = pytest.mark.parametrize("name", MARGINALISING)


COUNTS = (
    discrete.Multinomial,
    discrete.Poisson,
    missing.MissingPoisson,
    discrete.NegativeBinomial,
    missing.MissingNegativeBinomial,
)


def rows_for(likelihood: Likelihood, seed: int, n: int) -> Array:
    """Rows of the domain; with missing values where the likelihood allows them."""
    rng = np.random.default_rng(seed)
    if isinstance(likelihood, discrete.Bernoulli | missing.MissingBernoulli):
        rows = (rng.random((n, 3)) < 0.4).astype(float)
    elif isinstance(likelihood, COUNTS):
        rows = rng.poisson(2.0, (n, 3)).astype(float)
    else:
        rows = rng.standard_normal((n, 3)) * [1.0, 2.0, 0.5] + [0.5, -1.0, 0.0]
    if isinstance(likelihood, missing.MissingLikelihood):
        rows[rng.random((n, 3)) < 0.3] = np.nan
    return rows


def posterior(likelihood: Likelihood, seed: int = 1) -> Array:
    """The parameter of a component with fractional counts."""
    rows = rows_for(likelihood, seed, 6)
    weights = np.random.default_rng(seed).random(6)
    return likelihood.posterior(weights @ likelihood.sufficient_statistics(rows))


@of_exponential
def test_expectations_are_gradients_of_the_log_normaliser(likelihood: Likelihood) -> None:
    """E log p = log h + <T, grad c>, KL = <lambda - lambda_0, grad c> - c(lambda) + c(lambda_0); gradients numerically,
    hence 1e-5.
    """
    natural, rows = posterior(likelihood), rows_for(likelihood, 2, 4)
    gradient = sum(approx_fprime(natural, likelihood.log_normaliser, step) for step in (1e-7, -1e-7)) / 2
    expected = likelihood.sufficient_statistics(rows) @ gradient + likelihood.log_base_measure(rows)
    np.testing.assert_allclose(likelihood.expected_log_likelihood(natural, rows), expected, rtol=1e-5, atol=1e-5)
    prior = likelihood.prior_natural
    divergence = (natural - prior) @ gradient - likelihood.log_normaliser(natural) + likelihood.log_normaliser(prior)
    assert likelihood.kl(natural) == pytest.approx(divergence, rel=1e-5, abs=1e-5)
    assert likelihood.kl(prior) == pytest.approx(0.0, abs=1e-12)


@of_exponential
def test_predictive_is_a_difference_of_log_normalisers(likelihood: Likelihood) -> None:
    natural, rows = posterior(likelihood), rows_for(likelihood, 3, 5)
    added = [likelihood.log_normaliser(natural + statistics) for statistics in likelihood.sufficient_statistics(rows)]
    expected = np.array(added) - likelihood.log_normaliser(natural) + likelihood.log_base_measure(rows)
    np.testing.assert_allclose(likelihood.log_predictive(natural, rows), expected, rtol=1e-10, atol=1e-10)


@of_exponential
def test_marginal_is_a_product_of_predictives(likelihood: Likelihood) -> None:
    rows, natural, total = rows_for(likelihood, 4, 7), likelihood.prior_natural, 0.0
    for row in rows:
        total += likelihood.log_predictive(natural, row[None])[0]
        natural = natural + likelihood.sufficient_statistics(row[None])[0]
    assert likelihood.log_marginal(rows) == pytest.approx(total, rel=1e-10)


@of_conjugate
@pytest.mark.parametrize("seed", range(3))
def test_marginal_by_bayes_rule(likelihood: Likelihood, seed: int) -> None:
    """log m(X) = log p(X | phi) + log p(phi) - log p(phi | X) at any phi, all by SciPy's densities."""
    rows, points = rows_for(likelihood, seed, 6), points_of(likelihood)
    point = points.most_likely(rows_for(likelihood, seed + 10, 9), np.ones(9), 0.3)
    after = copy.copy(likelihood)
    after.prior_natural = likelihood.posterior(likelihood.sufficient_statistics(rows).sum(0))
    expected = points.log_density(point, rows).sum() + points.log_prior(point) - points_of(after).log_prior(point)
    assert likelihood.log_marginal(rows) == pytest.approx(expected, rel=1e-9)


def moved(point: Point, rng: np.random.Generator) -> Point:
    """A point nearby: means and rates move, variances stay positive, probabilities sum to one."""
    changed = {}
    for name, value in point.items():
        if name == "mean":
            changed[name] = value + 0.05 * rng.standard_normal(value.shape)
        elif name == "covariance":
            factor = np.eye(len(value)) + 0.05 * rng.standard_normal(value.shape)
            changed[name] = factor @ value @ factor.T
        elif name == "probabilities" and value.sum() == pytest.approx(1.0):
            shares = value * np.exp(0.1 * rng.standard_normal(value.shape))
            changed[name] = shares / shares.sum()
        elif name == "probabilities":
            odds = value / (1 - value) * np.exp(0.1 * rng.standard_normal(value.shape))
            changed[name] = odds / (1 + odds)
        else:
            changed[name] = value * np.exp(0.1 * rng.standard_normal(value.shape))
    return changed


@of_complete
@pytest.mark.parametrize("seed", range(5))
def test_point_estimates_are_the_best_points(likelihood: Likelihood, seed: int) -> None:
    """No point nearby has a larger likelihood, or with the prior a larger density."""
    rows, rng, points = rows_for(likelihood, 20, 12), np.random.default_rng(seed), points_of(likelihood)
    weights = np.random.default_rng(5).random(12)
    for ridge in (0.0, 0.3):
        likely = points.most_likely(rows, weights, ridge)
        other = moved(likely, rng)
        values = [weights @ (points.log_density(point, rows) - points.blur(point, ridge)) for point in (likely, other)]
        assert values[1] <= values[0]
    mode = points.mode(weights @ likelihood.sufficient_statistics(rows))

    def density(point: Point) -> float:
        return float(weights @ points.log_density(point, rows) + points.log_prior(point))

    assert density(moved(mode, rng)) <= density(mode)


@of_complete
def test_plug_in_is_near_the_mode_with_many_rows(likelihood: Likelihood) -> None:
    """Posterior mean, mode and maximum likelihood are one point in the limit; 4000 rows are near it."""
    rows, points = rows_for(likelihood, 30, 4000), points_of(likelihood)
    statistics = likelihood.sufficient_statistics(rows).sum(0)
    likely = points.most_likely(rows, np.ones(len(rows)), 0.0)
    for point in [points.mode(statistics), points.plug_in(likelihood.posterior(statistics))]:
        assert point.keys() == likely.keys()
        for name, value in point.items():
            np.testing.assert_allclose(value, likely[name], rtol=0.01, atol=0.005)


def test_one_column_of_a_diagonal_gaussian_is_a_full_one() -> None:
    rows = rows_for(PRODUCT, 6, 8)[:, :1]
    diagonal = gaussians.DiagonalNormalGamma(MEAN[:1], 0.5, 1.5, np.array([0.7]))
    spherical = gaussians.SphericalNormalGamma(MEAN[:1], 0.5, 1.5, 0.7)
    full = models.NormalWishart(MEAN[:1], 0.5, 3.0, np.array([[1.4]]))
    assert diagonal.log_marginal(rows) == pytest.approx(full.log_marginal(rows), rel=1e-12)
    assert spherical.log_marginal(rows) == pytest.approx(full.log_marginal(rows), rel=1e-12)


def test_both_priors_of_a_known_covariance_agree() -> None:
    rows, precision = rows_for(PRODUCT, 7, 8), np.linalg.inv(MATRIX)
    scaled = gaussians.KnownCovariance(MATRIX, MEAN, 0.3)
    general = gaussians.KnownCovarianceGeneral(MATRIX, MEAN, 0.3 * precision)
    assert scaled.log_marginal(rows) == pytest.approx(general.log_marginal(rows), rel=1e-12)
    statistics = [each.sufficient_statistics(rows).sum(0) for each in (scaled, general)]
    assert scaled.kl(scaled.posterior(statistics[0])) == pytest.approx(general.kl(general.posterior(statistics[1])))


def test_known_covariance_is_one_large_gaussian() -> None:
    """log m(X) of one column is a Gaussian density of all rows at once."""
    rows, variance, scale = rows_for(PRODUCT, 8, 5)[:, :1], 1.7, 0.4
    likelihood = gaussians.KnownCovariance(np.array([[variance]]), np.array([0.3]), scale)
    covariance = variance * (np.eye(5) + np.ones((5, 5)) / scale)
    expected = stats.multivariate_normal.logpdf(rows[:, 0], np.full(5, 0.3), covariance)
    assert likelihood.log_marginal(rows) == pytest.approx(expected, rel=1e-11)


def test_counts_have_probabilities_that_sum_to_one() -> None:
    words = np.array([[i, j, 4 - i - j] for i in range(5) for j in range(5 - i)], float)
    natural = posterior(CONJUGATE["multinomial"])
    assert np.exp(CONJUGATE["multinomial"].log_predictive(natural, words)).sum() == pytest.approx(1.0, rel=1e-12)
    ordered = CONJUGATE["ordered_words"].log_predictive(natural, words)
    orders = np.exp(CONJUGATE["multinomial"].log_base_measure(words))
    assert (np.exp(ordered) * orders).sum() == pytest.approx(1.0, rel=1e-12)
    poisson = discrete.Poisson(np.array([1.3]), 0.7)
    seen = np.exp(poisson.log_predictive(poisson.prior_natural, np.arange(400.0)[:, None]))
    np.testing.assert_allclose(seen, stats.nbinom.pmf(np.arange(400), 1.3, 0.7 / 1.7), rtol=1e-9)
    dispersed = discrete.NegativeBinomial(np.array([3.0]), np.array([1.3]), 4.0)
    seen = np.exp(dispersed.log_predictive(dispersed.prior_natural, np.arange(60.0)[:, None]))
    np.testing.assert_allclose(seen, stats.betanbinom.pmf(np.arange(60), 3, 12.0, 1.3), rtol=1e-9)
    binary = np.array([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)], float)
    natural = posterior(CONJUGATE["bernoulli"])
    assert np.exp(CONJUGATE["bernoulli"].log_predictive(natural, binary)).sum() == pytest.approx(1.0, rel=1e-12)


# The product base measure


def product_problem() -> tuple[Array, Array, Array]:
    rows = rows_for(PRODUCT, 9, 6)
    weights = np.random.default_rng(9).random(6)
    return rows, weights, weights @ PRODUCT.sufficient_statistics(rows)


def test_product_measure_ends_at_a_maximum() -> None:
    rows, weights, statistics = product_problem()
    natural = PRODUCT.posterior(statistics)

    def bound(natural: Array) -> float:
        constants = PRODUCT.log_base_measure(rows)
        return float(weights @ (PRODUCT.expected_log_likelihood(natural, rows) - constants) - PRODUCT.kl(natural))

    best = bound(natural)
    assert PRODUCT.gain(statistics) == pytest.approx(best, rel=1e-12)
    for place in range(len(natural)):
        for factor in (0.98, 1.02):
            other = natural.copy()
            other[place] *= factor
            assert bound(other) < best
    steps = [PRODUCT.prior_natural]
    for _ in range(6):
        steps.append(PRODUCT.sweep(steps[-1], statistics))
    assert (np.diff([bound(step) for step in steps]) >= -1e-12).all()


def test_product_measure_against_monte_carlo() -> None:
    """5 standard errors at 3 rows and a divergence, fixed seed."""
    natural, rng, n_draws = posterior(PRODUCT), np.random.default_rng(10), 60_000
    shape, mean_precision, mean, rate = PRODUCT.decode(natural)
    prior_shape, prior_precision, prior_mean, prior_rate = PRODUCT.decode(PRODUCT.prior_natural)
    means = mean + rng.standard_normal((n_draws, 3)) / np.sqrt(mean_precision)
    precisions = rng.gamma(shape, 1 / rate, n_draws)
    rows = rows_for(PRODUCT, 10, 3)
    densities = stats.norm.logpdf(rows[:, None], means, precisions[:, None] ** -0.5).sum(2)
    expected = PRODUCT.expected_log_likelihood(natural, rows)
    assert (np.abs(densities.mean(1) - expected) < 5 * densities.std(1) / np.sqrt(n_draws)).all()
    values = np.exp(densities)
    predictive = np.exp(PRODUCT.log_predictive(natural, rows))
    assert (np.abs(values.mean(1) - predictive) < 5 * values.std(1) / np.sqrt(n_draws)).all()
    ratio = stats.norm.logpdf(means, mean, mean_precision**-0.5).sum(1)
    ratio -= stats.norm.logpdf(means, prior_mean, prior_precision**-0.5).sum(1)
    ratio += stats.gamma.logpdf(precisions, shape, scale=1 / rate)
    ratio -= stats.gamma.logpdf(precisions, prior_shape, scale=1 / prior_rate)
    assert abs(ratio.mean() - PRODUCT.kl(natural)) < 5 * ratio.std() / np.sqrt(n_draws)


def test_product_measure_bounds_its_marginal() -> None:
    """log m(X) by quadrature over mean and precision of one column; the bound is below it, and near."""
    one = gaussians.SphericalIndependent(np.array([0.3]), 0.4, 2.2, 1.7)
    rows = np.array([[0.4], [-0.3], [1.1]])

    means, log_values = np.meshgrid(np.linspace(-15.0, 15.0, 2001), np.linspace(-12.0, 6.0, 1001), indexing="ij")
    values = np.exp(log_values)
    joint = stats.norm.logpdf(means, 0.3, 0.4**-0.5) + stats.gamma.logpdf(values, 2.2, scale=1 / 1.7) + log_values
    joint += sum(stats.norm.logpdf(row, means, values**-0.5) for row in rows[:, 0])
    exact = float(logsumexp(joint) + np.log(30 / 2000 * 18 / 1000))
    assert one.log_marginal(rows) == pytest.approx(exact, rel=1e-9)
    bound = one.gain(one.sufficient_statistics(rows).sum(0)) + one.log_base_measure(rows).sum()
    assert exact - 0.5 < bound < exact
    density = integrate.quad(lambda x: np.exp(one.log_predictive(one.prior_natural, np.array([[x]]))[0]), -200, 200)
    assert density[0] == pytest.approx(1.0, rel=1e-4)


# Missing entries


@of_marginalising
def test_without_holes_they_are_the_complete_models(name: str) -> None:
    marginal, complete = MARGINALISING[name], CONJUGATE[name]
    rows, others = rows_for(complete, 11, 9), rows_for(complete, 12, 4)
    naturals = [each.posterior(each.sufficient_statistics(rows).sum(0)) for each in (marginal, complete)]
    assert marginal.log_marginal(rows) == pytest.approx(complete.log_marginal(rows), rel=1e-12)
    assert marginal.kl(naturals[0]) == pytest.approx(complete.kl(naturals[1]), rel=1e-12)
    for mine, theirs in [
        (marginal.expected_log_likelihood, complete.expected_log_likelihood),
        (marginal.log_predictive, complete.log_predictive),
    ]:
        np.testing.assert_allclose(mine(naturals[0], others), theirs(naturals[1], others), rtol=1e-11)


@pytest.mark.parametrize("name", ["diagonal", "bernoulli", "poisson", "negative_binomial"])
def test_marginal_is_a_sum_over_columns(name: str) -> None:
    likelihood = MARGINALISING[name]
    rows = rows_for(likelihood, 13, 9)
    parts = 0.0
    for column in range(3):
        alone = np.full_like(rows, np.nan)
        alone[:, column] = rows[:, column]
        parts += likelihood.log_marginal(alone)
    assert likelihood.log_marginal(rows) == pytest.approx(parts, rel=1e-11)


@of_marginalising
def test_an_empty_row_says_nothing(name: str) -> None:
    likelihood, empty = MARGINALISING[name], np.full((1, 3), np.nan)
    natural = posterior(likelihood)
    assert likelihood.expected_log_likelihood(natural, empty)[0] == 0.0
    assert likelihood.log_predictive(natural, empty)[0] == 0.0
    assert likelihood.log_base_measure(empty)[0] == 0.0
    assert not likelihood.sufficient_statistics(empty).any()


@of_marginalising
def test_predictive_moments(name: str) -> None:
    """Mean and variance of the predictive density of one entry, summed or integrated; given one other or none."""
    likelihood = MARGINALISING[name]
    natural = posterior(likelihood, seed=3)
    counts = (np.arange(3000.0), 1.0)
    grids = {"bernoulli": (np.arange(2.0), 1.0), "poisson": counts, "negative_binomial": counts}
    grid, step = grids.get(name, whole_line())
    for column, given in itertools.product(range(3), (np.nan, 1.0)):
        row = np.full(3, np.nan)
        row[(column + 1) % 3] = given
        rows = np.tile(row, (len(grid), 1))
        rows[:, column] = grid
        log_density = likelihood.log_predictive(natural, rows) - likelihood.log_predictive(natural, row[None])
        density = np.exp(log_density) * step
        means, variances = likelihood.conditional(natural, row[None])
        mean = density @ grid
        assert mean == pytest.approx(means[0, column], rel=1e-5, abs=1e-6)
        assert density @ grid**2 - mean**2 == pytest.approx(variances[0, column], rel=1e-6)
