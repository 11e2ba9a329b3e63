"""Draws of parameters and their intervals, against moments of the posterior in closed form."""

from typing import Any

import numpy as np
import pytest
import scipy.stats

import stickbreak as sb

N = 20_000
# Allowed deviation of a mean of N draws, in standard errors: one false alarm in a hundred thousand numbers.
Z = 4.5


def rows(d: int = 2, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(80, d)) + np.repeat([[0.0], [10.0]], 40, axis=0) + np.arange(d)


def fitted(likelihood: Any, X: Any, process: Any = None, n_components: int | None = 2, **options: Any) -> sb.Fit:
    model = sb.Mixture(likelihood=likelihood, process=sb.DirichletProcess() if process is None else process)
    return sb.fit(model, X, sb.Full(max_passes=6, tol=0), n_components=n_components, progress=False, **options)


def assert_mean(draws: np.ndarray, expected: np.ndarray) -> None:
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (abs(draws.mean(axis=0) - expected) <= Z * error + 1e-12 * abs(expected)).all()


PROCESSES = [
    (sb.DirichletProcess(2.0), 4),
    (sb.DirichletProcess(2.0, truncation="stick"), 4),
    (sb.DirichletProcess(sb.Gamma(1.0, 1.0)), 4),
    (sb.PitmanYor(0.4, concentration=1.0), 4),
    (sb.FiniteDirichlet(4, concentration=3.0), None),
]


@pytest.mark.parametrize(("process", "n_components"), PROCESSES, ids=lambda value: type(value).__name__)
def test_weights_have_the_mean_of_the_fit(process: Any, n_components: int | None) -> None:
    fit = fitted(sb.Gaussian(), rows(), process, n_components)
    weights = fit.sample_parameters(N, seed=1)["weights"]
    assert_mean(weights, fit.weights)
    assert (weights.sum(axis=1) <= 1 + 1e-9).all()


def test_weights_against_their_beta_marginals() -> None:
    """The first stick of a Dirichlet process, and every weight of a finite Dirichlet distribution, are Beta."""
    fit = fitted(sb.Gaussian(), rows(), sb.DirichletProcess(2.0), 3)
    first = scipy.stats.beta(1 + fit.counts[0], 2.0 + fit.counts[1:].sum())
    assert scipy.stats.kstest(fit.sample_parameters(N, seed=7)["weights"][:, 0], first.cdf).pvalue > 1e-5
    fit = fitted(sb.Gaussian(), rows(), sb.FiniteDirichlet(3, concentration=0.3), None)
    weights, own = fit.sample_parameters(N, seed=7)["weights"], fit.counts + 0.1
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-12)
    for k in range(3):
        # Draws of tiny weights underflow, where the distribution function has lost its digits.
        if own[k] > 1:
            marginal = scipy.stats.beta(own[k], own.sum() - own[k])
            assert scipy.stats.kstest(weights[:, k], marginal.cdf).pvalue > 1e-5


def test_weights_under_a_tail() -> None:
    fit = fitted(sb.Gaussian(prior="rule"), rows(), sb.DirichletProcess(2.0, truncation="tail"), 3)
    assert_mean(fit.sample_parameters(N, seed=1)["weights"], fit.weights)


def test_gaussian_against_its_marginals() -> None:
    """Means are Student t, variances inverse gamma; the whole distributions are compared."""
    fit = fitted(sb.Gaussian(), rows(3))
    drawn, found = fit.sample_parameters(N, seed=2), fit.components
    for k in range(2):
        dof, scale = found["dof"][k], found["scale"][k]
        free = dof - 2
        for d in range(3):
            spread = (scale[d, d] / (found["mean_precision"][k] * free)) ** 0.5
            student = scipy.stats.t(free, found["mean"][k, d], spread)
            assert scipy.stats.kstest(drawn["mean"][:, k, d], student.cdf).pvalue > 1e-5
            inverse = scipy.stats.invgamma(free / 2, scale=scale[d, d] / 2)
            assert scipy.stats.kstest(drawn["covariance"][:, k, d, d], inverse.cdf).pvalue > 1e-5
        assert_mean(drawn["covariance"][:, k], scale / (dof - 4))
        # Entries off the diagonal have no simple marginal; SciPy draws them by itself.
        other = scipy.stats.invwishart(dof, scale).rvs(N, random_state=k)
        for i, j in [(0, 1), (0, 2), (1, 2)]:
            own = [
                each[:, i, j] / (each[:, i, i] * each[:, j, j]) ** 0.5 for each in (drawn["covariance"][:, k], other)
            ]
            assert scipy.stats.ks_2samp(*own).pvalue > 1e-5
        # Given the covariance, the mean is normal.
        root = np.linalg.cholesky(drawn["covariance"][:, k] / found["mean_precision"][k])
        whitened = np.linalg.solve(root, (drawn["mean"][:, k] - found["mean"][k])[..., None])[..., 0]
        assert all(scipy.stats.kstest(column, "norm").pvalue > 1e-5 for column in whitened.T)


def test_zero_mean_gaussian() -> None:
    fit = fitted(sb.ZeroMeanGaussian(), rows(2))
    drawn = fit.sample_parameters(N, seed=2)
    assert set(drawn) == {"weights", "covariance"}
    precisions = np.linalg.inv(drawn["covariance"])
    expected = np.linalg.inv(fit.components["scale"]) * fit.components["dof"][:, None, None]
    assert_mean(precisions, expected)


@pytest.mark.parametrize("missing", [False, True])
def test_diagonal_gaussian(missing: bool) -> None:
    X = rows(3)
    if missing:
        X[::7, 1] = np.nan
    fit = fitted(sb.DiagonalGaussian(), X, missing="marginalize" if missing else "error")
    drawn, found = fit.sample_parameters(N, seed=3), fit.components
    shape, precision = (np.broadcast_to(found[name].T, (3, 2)).T for name in ("shape", "mean_precision"))
    for k, d in np.ndindex(2, 3):
        inverse = scipy.stats.invgamma(shape[k, d], scale=found["rate"][k, d])
        assert scipy.stats.kstest(drawn["variance"][:, k, d], inverse.cdf).pvalue > 1e-5
        spread = (found["rate"][k, d] / shape[k, d] / precision[k, d]) ** 0.5
        student = scipy.stats.t(2 * shape[k, d], found["mean"][k, d], spread)
        assert scipy.stats.kstest(drawn["mean"][:, k, d], student.cdf).pvalue > 1e-5


@pytest.mark.parametrize("base", ["conjugate", "product"])
def test_spherical_gaussian(base: Any) -> None:
    fit = fitted(sb.SphericalGaussian(base=base), rows(3))
    drawn, found = fit.sample_parameters(N, seed=4), fit.components
    for k in range(2):
        inverse = scipy.stats.invgamma(found["shape"][k], scale=found["rate"][k])
        assert scipy.stats.kstest(drawn["variance"][:, k], inverse.cdf).pvalue > 1e-5
        if base == "conjugate":
            spread = (found["rate"][k] / found["shape"][k] / found["mean_precision"][k]) ** 0.5
            marginal: Any = scipy.stats.t(2 * found["shape"][k], found["mean"][k, 0], spread)
        else:
            marginal = scipy.stats.norm(found["mean"][k, 0], found["mean_precision"][k] ** -0.5)
        assert scipy.stats.kstest(drawn["mean"][:, k, 0], marginal.cdf).pvalue > 1e-5


@pytest.mark.parametrize("missing", [False, True])
def test_known_covariance(missing: bool) -> None:
    X, covariance = rows(2), np.array([[1.0, 0.6], [0.6, 2.0]])
    if missing:
        X[::7, 1] = np.nan
    fit = fitted(sb.KnownCovarianceGaussian(covariance), X, missing="marginalize" if missing else "error")
    drawn, precision = fit.sample_parameters(N, seed=5)["mean"], fit.components["mean_precision"]
    for k in range(2):
        expected = np.linalg.inv(precision[k]) if missing else covariance / precision[k]
        assert_mean(drawn[:, k], fit.components["mean"][k])
        centred = drawn[:, k] - fit.components["mean"][k]
        assert_mean(centred[:, :, None] * centred[:, None, :], expected)


def test_counts_flags_and_codes() -> None:
    rng = np.random.default_rng(0)
    counts, flags = rng.poisson(4.0, size=(80, 3)).astype(float), rng.integers(2, size=(80, 3)).astype(float)
    codes = np.column_stack([rng.integers(2, size=80), rng.integers(4, size=80)]).astype(float)
    fit = fitted(sb.Poisson(), counts)
    drawn, found = fit.sample_parameters(N, seed=6), fit.components
    assert set(drawn) == {"weights", "rate"}
    for k, d in np.ndindex(2, 3):
        marginal = scipy.stats.gamma(found["shape"][k, d], scale=1 / found["rate"][k])
        assert scipy.stats.kstest(drawn["rate"][:, k, d], marginal.cdf).pvalue > 1e-5
    fit = fitted(sb.Bernoulli(), flags)
    flag, found = fit.sample_parameters(N, seed=6)["probabilities"], fit.components
    for k, d in np.ndindex(2, 3):
        marginal = scipy.stats.beta(found["successes"][k, d], found["failures"][k, d])
        assert scipy.stats.kstest(flag[:, k, d], marginal.cdf).pvalue > 1e-5
    for likelihood, X in [(sb.Multinomial(), counts), (sb.Categorical(), codes)]:
        fit = fitted(likelihood, X)
        simplex, own = fit.sample_parameters(N, seed=6)["probabilities"], fit.components["pseudo_counts"]
        np.testing.assert_allclose(simplex.sum(axis=-1), 1.0, rtol=1e-12)
        assert (simplex[:, own == 0] == 0).all()
        for place in np.argwhere(own > 0):
            at = tuple(place)
            marginal = scipy.stats.beta(own[at], own[at[:-1]].sum() - own[at])
            assert scipy.stats.kstest(simplex[(slice(None), *at)], marginal.cdf).pvalue > 1e-5


@pytest.mark.parametrize("likelihood", [sb.Gaussian(), sb.ZeroMeanGaussian(), sb.DiagonalGaussian()])
def test_draws_follow_the_units_of_the_data(likelihood: Any) -> None:
    X = rows(2)
    units = np.array([2.0**20, 2.0**-9])
    one, other = (fitted(likelihood, each).sample_parameters(50, seed=1) for each in (X, X * units))
    powers = {"mean": units, "variance": units**2, "covariance": np.outer(units, units), "weights": np.ones(2)}
    for name, drawn in one.items():
        np.testing.assert_allclose(other[name], drawn * powers[name], rtol=1e-9)


def test_the_units_of_a_common_variance() -> None:
    X = rows(2)
    one, other = (fitted(sb.SphericalGaussian(), each).sample_parameters(50, seed=1) for each in (X, X * 1024.0))
    np.testing.assert_allclose(other["mean"], one["mean"] * 1024.0, rtol=1e-9)
    np.testing.assert_allclose(other["variance"], one["variance"] * 1024.0**2, rtol=1e-9)


def test_directions_without_variance_have_none() -> None:
    X = rows(2)
    X = np.column_stack([X, X[:, 0] + X[:, 1], np.ones(80)])
    with pytest.warns(sb.SupportWarning):
        fit = fitted(sb.Gaussian(), X)
    drawn = fit.sample_parameters(100)
    np.testing.assert_allclose(drawn["mean"][..., 0] + drawn["mean"][..., 1], drawn["mean"][..., 2], atol=1e-8)
    np.testing.assert_allclose(drawn["mean"][..., 3], 1.0, atol=1e-8)
    np.testing.assert_allclose(drawn["covariance"][..., 3, :], 0.0, atol=1e-8)


def test_covariances_within_a_subspace_against_scipy() -> None:
    """Draws in the directions that vary, and their units, are those of the posterior there."""
    X = rows(2) * [1.0, 1000.0]
    with pytest.warns(sb.SupportWarning):
        fit = fitted(sb.Gaussian(), np.column_stack([X, np.ones(80), X[:, 0] - X[:, 1]]))
    drawn, found, basis = fit.sample_parameters(N, seed=3), fit.components, fit.support.basis
    for k in range(2):
        scale = basis.T @ found["scale"][k] @ basis
        other = scipy.stats.invwishart(found["dof"][k], scale).rvs(N, random_state=k)
        own = basis.T @ drawn["covariance"][:, k] @ basis
        for i, j in [(0, 0), (0, 1), (1, 1)]:
            assert scipy.stats.ks_2samp(own[:, i, j], other[:, i, j]).pvalue > 1e-5


def test_intervals_are_quantiles_of_the_draws() -> None:
    fit = fitted(sb.DiagonalGaussian(), rows())
    drawn = fit.sample_parameters(101, seed=2)
    for name, ends in fit.intervals(0.75, n=101, seed=2).items():
        np.testing.assert_allclose(ends, np.quantile(drawn[name], [0.125, 0.875], axis=0), rtol=1e-12)


def test_intervals_are_those_of_the_marginals() -> None:
    fit = fitted(sb.Gaussian(), rows())
    intervals = fit.intervals(0.8, n=20_000, seed=1)
    found = fit.components
    free = found["dof"] - 1
    spread = (np.diagonal(found["scale"], axis1=1, axis2=2) / (found["mean_precision"] * free)[:, None]) ** 0.5
    for place, end in enumerate((0.1, 0.9)):
        exact = scipy.stats.t(free[:, None], found["mean"], spread).ppf(end)
        np.testing.assert_allclose(intervals["mean"][place], exact, atol=0.03 * spread.max())
    drawn = fit.sample_parameters(4000, seed=9)
    for name, (low, high) in intervals.items():
        share = ((drawn[name] >= low) & (drawn[name] <= high)).mean(axis=0)
        assert (abs(share - 0.8) < 0.04).all(), name


def test_the_seed_decides() -> None:
    fit = fitted(sb.Gaussian(), rows())
    one, same, other = (fit.sample_parameters(5, seed=seed)["mean"] for seed in (3, 3, 4))
    assert (one == same).all()
    assert (one != other).all()
    # Every draw has its own random numbers.
    assert (fit.sample_parameters(9, seed=3)["mean"][:5] == one).all()


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, float("nan"), "0.9", None, True, 10**400, -(10**400)])
def test_refused_levels(level: Any) -> None:
    with pytest.raises((sb.InvalidArgument, sb.InvalidType)) as caught:
        fitted(sb.Gaussian(), rows()).intervals(level)
    assert caught.value.argument == "level"


def test_point_estimates_have_no_posterior() -> None:
    model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.FiniteDirichlet(2, concentration=2.0))
    fit = sb.fit(model, rows(), sb.Full(objective="map", max_passes=3, tol=0), progress=False)
    with pytest.raises(sb.NotSupported, match="point estimates have no posterior"):
        fit.sample_parameters(1)
    with pytest.raises(sb.InvalidArgument):
        fitted(sb.Gaussian(), rows()).sample_parameters(0)
