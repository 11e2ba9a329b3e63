"""Likelihoods without a file of their own against distributions of SciPy, without the oracle or its formulas."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.special import logsumexp

import stickbreak as sb
from oracles.quadrature import gauss_legendre

Array = NDArray[np.float64]
Density = Callable[[dict[str, Any], Array], Array]
RNG = np.random.default_rng(7)
REAL = RNG.normal(size=(40, 3)) + RNG.integers(3, size=(40, 1)) * 4.0
# SciPy takes whole numbers only.
DISPERSION = np.array([3.0, 2.0, 5.0])
COUNTS = RNG.poisson([1.0, 4.0, 9.0], size=(40, 3)).astype(float)
FLAGS = RNG.integers(2, size=(40, 3)).astype(float)
CODES = np.random.default_rng(8).integers([2, 3, 5], size=(40, 3)).astype(float)
COVARIANCE = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, 0.1], [0.0, 0.1, 1.5]])
PRECISION = np.array([[1.0, 0.2, 0.1], [0.2, 0.7, 0.0], [0.1, 0.0, 0.5]])


def diagonal(parameters: dict[str, Any], rows: Array) -> Array:
    kappa, a, b = parameters["mean_precision"], parameters["shape"], parameters["rate"]
    return np.asarray(stats.t.logpdf(rows, 2 * a, parameters["mean"], np.sqrt(b * (kappa + 1) / (a * kappa))).sum(1))


def spherical(parameters: dict[str, Any], rows: Array) -> Array:
    kappa, a, b = parameters["mean_precision"], parameters["shape"], parameters["rate"]
    return np.asarray(
        stats.multivariate_t.logpdf(rows, parameters["mean"], np.eye(3) * b * (kappa + 1) / (a * kappa), 2 * a)
    )


def spherical_product(parameters: dict[str, Any], rows: Array) -> Array:
    """An integral over the precision: its gamma distribution, and the normal one of mean and row together."""
    prior = stats.gamma(parameters["shape"], scale=1 / parameters["rate"])
    logs, widths = gauss_legendre(*np.log(prior.ppf([1e-13, 1 - 1e-13])), 40)
    precisions = np.exp(logs)
    deviations = np.sqrt(1 / precisions + 1 / parameters["mean_precision"])[:, None]
    densities = stats.norm.logpdf(rows[:, None], parameters["mean"], deviations).sum(2)
    return np.asarray(logsumexp(densities + prior.logpdf(precisions) + logs, b=widths, axis=1))


def known(parameters: dict[str, Any], rows: Array) -> Array:
    spread = COVARIANCE * (1 + 1 / parameters["mean_precision"])
    return np.asarray(stats.multivariate_normal.logpdf(rows, parameters["mean"], spread))


def known_general(parameters: dict[str, Any], rows: Array) -> Array:
    spread = COVARIANCE + np.linalg.inv(parameters["mean_precision"])
    return np.asarray(stats.multivariate_normal.logpdf(rows, parameters["mean"], spread))


def multinomial(parameters: dict[str, Any], rows: Array) -> Array:
    return np.array(
        [stats.dirichlet_multinomial.logpmf(row, parameters["pseudo_counts"], row.sum()) for row in rows.astype(int)]
    )


def bernoulli(parameters: dict[str, Any], rows: Array) -> Array:
    return np.asarray(stats.betabinom.logpmf(rows, 1, parameters["successes"], parameters["failures"]).sum(1))


def categorical(parameters: dict[str, Any], rows: Array) -> Array:
    """One trial for each column."""
    columns = [
        stats.dirichlet_multinomial.logpmf(np.eye(5, dtype=int)[codes, :levels], counts[:levels], 1)
        for codes, counts, levels in zip(rows.astype(int).T, parameters["pseudo_counts"], (2, 3, 5), strict=True)
    ]
    return np.asarray(np.sum(columns, axis=0))


def poisson(parameters: dict[str, Any], rows: Array) -> Array:
    return np.asarray(
        stats.nbinom.logpmf(rows, parameters["shape"], parameters["rate"] / (parameters["rate"] + 1)).sum(1)
    )


def negative_binomial(parameters: dict[str, Any], rows: Array) -> Array:
    return np.asarray(
        stats.betanbinom.logpmf(rows, DISPERSION, DISPERSION * parameters["rate"], parameters["shape"]).sum(1)
    )


CASES: dict[str, tuple[Any, Array, Density]] = {
    "diagonal": (sb.DiagonalGaussian([0.1, 0, 1], mean_precision=0.3, shape=2, rate=[1, 2, 0.5]), REAL, diagonal),
    "spherical": (sb.SphericalGaussian([0.1, 0, 1], mean_precision=0.3, shape=2, rate=1.5), REAL, spherical),
    "spherical_product": (
        sb.SphericalGaussian([0.1, 0, 1], mean_precision=0.3, shape=2, rate=1.5, base="product"),
        REAL,
        spherical_product,
    ),
    "known": (sb.KnownCovarianceGaussian(COVARIANCE, mean=[0.1, 0, 1], mean_precision=0.3), REAL, known),
    "known_general": (
        sb.KnownCovarianceGaussian(COVARIANCE, mean=[0.1, 0, 1], mean_precision=PRECISION),
        REAL,
        known_general,
    ),
    "multinomial": (sb.Multinomial([0.5, 1.0, 2.0]), COUNTS, multinomial),
    "bernoulli": (sb.Bernoulli([0.5, 1.0, 2.0], failures=[1.0, 0.7, 3.0]), FLAGS, bernoulli),
    "categorical": (sb.Categorical([0.5, 1.0, 2.0], levels=[2, 3, 5]), CODES, categorical),
    "poisson": (sb.Poisson([0.5, 1.0, 2.0], rate=0.4), COUNTS, poisson),
    "negative_binomial": (
        sb.NegativeBinomial(DISPERSION, shape=[0.5, 1.0, 2.0], rate=1.4),
        COUNTS,
        negative_binomial,
    ),
}
cases = pytest.mark.parametrize("name", CASES)


def fitted(likelihood: Any, rows: Array, n_components: int) -> sb.Fit:
    model = sb.Mixture(likelihood=likelihood, process=sb.FiniteDirichlet(n_components=n_components))
    labels = np.arange(len(rows)) % n_components
    return sb.fit(model, rows, sb.Full(sparsity=None, margin=None, max_passes=0), init=labels, progress=False)


@cases
def test_the_predictive_is_that_of_scipy(name: str) -> None:
    likelihood, rows, density = CASES[name]
    fit = fitted(likelihood, rows, 3)
    parts = [density({key: value[k] for key, value in fit.components.items()}, rows) for k in range(3)]
    expected = logsumexp(np.column_stack(parts), b=fit.weights, axis=1)
    np.testing.assert_allclose(fit.log_predictive(rows), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", [name for name in CASES if name != "spherical_product"])
def test_the_bound_of_one_component_is_the_evidence_by_the_chain_rule(name: str) -> None:
    """With one component and a conjugate base measure nothing is approximated."""
    likelihood, rows, density = CASES[name]
    first = fitted(likelihood, rows[:2], 1)
    gains = []
    for n in range(2, 12):
        before = fitted(likelihood, rows[:n], 1)
        parameters = {key: value[0] for key, value in before.components.items()}
        gains.append(np.ravel(density(parameters, rows[n : n + 1]))[0])
    whole = fitted(likelihood, rows[:12], 1)
    assert whole.elbo - first.elbo == pytest.approx(np.sum(gains), rel=1e-9)


@cases
def test_draws_have_the_moments_of_the_predictive(name: str) -> None:
    likelihood, rows, _ = CASES[name]
    fit = fitted(likelihood, rows, 2)
    draws = fit.sample(40_000, seed=3)
    assert draws.shape == (40_000, 3)
    if name == "multinomial":
        # Of the average length, by expected probabilities.
        assert (draws.sum(1) == round(rows.sum(1).mean())).all()
        expected = fit.weights @ fit.point_estimates["probabilities"] * draws.sum(1)[0]
    elif name == "bernoulli":
        expected = fit.weights @ fit.point_estimates["probabilities"]
    elif name == "categorical":
        expected = fit.weights @ (fit.point_estimates["probabilities"] @ np.arange(5))
    elif name == "poisson":
        expected = fit.weights @ fit.point_estimates["rate"]
    elif name == "negative_binomial":
        expected = fit.weights @ fit.point_estimates["mean"]
    else:
        expected = fit.weights @ fit.components["mean"]
    # Five standard errors.
    np.testing.assert_allclose(draws.mean(0), expected, atol=5 * draws.std(0).max() / 200)
