"""`Gaussian` against SciPy and NumPy only: nothing here uses the oracle or its formulas."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import betaln, gammaln, logsumexp, multigammaln

import stickbreak as sb

DIMENSION = 3
MEAN = np.array([0.3, -0.2, 1.0])
PRECISION, DOF = 0.4, 5.5
SCALE = np.array([[2.0, 0.3, 0.0], [0.3, 1.5, -0.2], [0.0, -0.2, 1.0]])
START = sb.Full(sparsity=None, max_passes=0)


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.standard_normal((80, DIMENSION)) * [1.0, 2.0, 0.5] + rng.choice([-3.0, 0.0, 3.0], (80, 1))


@pytest.fixture(scope="module")
def labels(rows: np.ndarray) -> np.ndarray:
    return np.digitize(rows.mean(1), [-1.5, 1.5])


def gaussian() -> sb.Gaussian:
    return sb.Gaussian(mean=MEAN, mean_precision=PRECISION, dof=DOF, scale=SCALE)


def fit_labels(process: object, rows: np.ndarray, labels: np.ndarray) -> sb.Fit:
    model = sb.Mixture(likelihood=gaussian(), process=process)
    return sb.fit(model, rows, START, init=labels, progress=False)


def student(mean: np.ndarray, precision: float, dof: float, scale: np.ndarray) -> object:
    own_dof = dof - len(mean) + 1
    return stats.multivariate_t(mean, scale * (precision + 1) / (precision * own_dof), own_dof)


def log_marginal(rows: np.ndarray) -> float:
    """log p(X) of rows that share one Gaussian, from the normalising constants of the Normal-Wishart."""
    n, dimension = rows.shape
    shift, centred = rows.mean(0) - MEAN, rows - rows.mean(0)
    precision, dof = PRECISION + n, DOF + n
    scale = SCALE + centred.T @ centred + PRECISION * n / precision * np.outer(shift, shift)
    return float(
        -n * dimension / 2 * np.log(np.pi)
        + multigammaln(dof / 2, dimension)
        - multigammaln(DOF / 2, dimension)
        + DOF / 2 * np.linalg.slogdet(SCALE)[1]
        - dof / 2 * np.linalg.slogdet(scale)[1]
        + dimension / 2 * np.log(PRECISION / precision)
    )


def test_posterior_from_numpy_moments(rows: np.ndarray, labels: np.ndarray) -> None:
    fit = fit_labels(sb.DirichletProcess(), rows, labels)
    for k in range(3):
        members = rows[labels == k]
        n, mean, shift = len(members), members.mean(0), members.mean(0) - MEAN
        scatter = np.cov(members.T, bias=True) * n
        np.testing.assert_allclose(fit.components["mean_precision"][k], PRECISION + n, rtol=1e-12)
        np.testing.assert_allclose(fit.components["dof"][k], DOF + n, rtol=1e-12)
        np.testing.assert_allclose(
            fit.components["mean"][k], (PRECISION * MEAN + n * mean) / (PRECISION + n), rtol=1e-11
        )
        expected = SCALE + scatter + PRECISION * n / (PRECISION + n) * np.outer(shift, shift)
        np.testing.assert_allclose(fit.components["scale"][k], expected, rtol=1e-10, atol=1e-10)
        assert fit.counts[k] == pytest.approx(n, rel=1e-13)


def test_one_component_predicts_a_student(rows: np.ndarray) -> None:
    fit = fit_labels(sb.FiniteDirichlet(n_components=1), rows, np.zeros(len(rows), int))
    parts = {name: values[0] for name, values in fit.components.items()}
    expected = student(parts["mean"], parts["mean_precision"], parts["dof"], parts["scale"])
    np.testing.assert_allclose(fit.log_predictive(rows), expected.logpdf(rows), rtol=1e-11)


def test_mixture_predicts_a_mixture_of_students(rows: np.ndarray, labels: np.ndarray) -> None:
    """Under a Dirichlet process the left-over mass belongs to the prior's own predictive density."""
    concentration = 1.7
    fit = fit_labels(sb.DirichletProcess(concentration=concentration), rows, labels)
    counts = np.bincount(labels).astype(float)
    behind = counts[::-1].cumsum()[::-1] - counts
    sticks = (1 + counts) / (1 + counts + concentration + behind)
    rest = np.concatenate([[1.0], np.cumprod(1 - sticks)])
    weights = np.append(sticks * rest[:-1], rest[-1])
    np.testing.assert_allclose(fit.weights, weights[:-1], rtol=1e-12)
    assert fit.leftover_weight == pytest.approx(weights[-1], rel=1e-12)
    parts = fit.components
    densities = [
        student(parts["mean"][k], parts["mean_precision"][k], parts["dof"][k], parts["scale"][k]).logpdf(rows)
        for k in range(3)
    ]
    densities.append(student(MEAN, PRECISION, DOF, SCALE).logpdf(rows))
    expected = logsumexp(np.column_stack(densities) + np.log(weights), axis=1)
    np.testing.assert_allclose(fit.log_predictive(rows), expected, rtol=1e-11)


def test_elbo_of_one_component_is_the_log_marginal_likelihood(rows: np.ndarray) -> None:
    zeros = np.zeros(len(rows), int)
    exact = fit_labels(sb.FiniteDirichlet(n_components=1), rows, zeros)
    assert exact.elbo == pytest.approx(log_marginal(rows), rel=1e-11)
    concentration = 2.5
    fit = fit_labels(sb.DirichletProcess(concentration=concentration), rows, zeros)
    stick = betaln(1 + len(rows), concentration) - betaln(1, concentration)
    assert fit.elbo == pytest.approx(log_marginal(rows) + stick, rel=1e-11)


def test_elbo_of_hard_labels_is_a_sum_of_marginals(rows: np.ndarray, labels: np.ndarray) -> None:
    """With one-hot responsibilities nothing is lost but the prior of the labels."""
    fit = fit_labels(sb.FiniteDirichlet(n_components=3, concentration=2.0), rows, labels)
    counts = np.bincount(labels)
    prior = gammaln(2.0) - gammaln(2.0 + len(rows)) + (gammaln(2 / 3 + counts) - gammaln(2 / 3)).sum()
    expected = prior + sum(log_marginal(rows[labels == k]) for k in range(3))
    assert fit.elbo == pytest.approx(expected, rel=1e-11)


def test_elbo_of_one_component_by_quadrature() -> None:
    """In one dimension the evidence is a two-dimensional integral over mean and precision."""
    rows, mean, precision, dof, scale = np.array([0.4, -0.3, 1.1]), 0.2, 0.6, 2.4, 1.3
    # The integrand vanishes smoothly at both ends of each axis, where equidistant points are very accurate.
    log_value, mu = np.meshgrid(np.linspace(-25.0, 6.0, 1000), np.linspace(-60.0, 60.0, 4000), indexing="ij")
    value = np.exp(log_value)
    log_joint = stats.gamma.logpdf(value, dof / 2, scale=2 / scale) + log_value
    log_joint += stats.norm.logpdf(mu, mean, (precision * value) ** -0.5)
    for row in rows:
        log_joint += stats.norm.logpdf(row, mu, value**-0.5)
    evidence = np.exp(log_joint).sum() * (31.0 / 999) * (120.0 / 3999)
    likelihood = sb.Gaussian(mean=[mean], mean_precision=precision, dof=dof, scale=[[scale]])
    model = sb.Mixture(likelihood=likelihood, process=sb.FiniteDirichlet(n_components=1))
    fit = sb.fit(model, rows[:, None], START, init=np.zeros(3, int), progress=False)
    assert fit.elbo == pytest.approx(np.log(evidence), rel=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_default_hyper_parameters_follow_the_data(rows: np.ndarray, weighted: bool) -> None:
    weights = np.random.default_rng(1).uniform(0.0, 3.0, len(rows)) if weighted else None
    model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())
    fit = sb.fit(model, rows, START, n_components=2, sample_weight=weights, progress=False)
    covariance = np.cov(rows.T, aweights=weights, ddof=0)
    filled = fit.model.likelihood
    assert filled.dof == DIMENSION + 2
    assert filled.mean_precision == pytest.approx(0.1)
    np.testing.assert_allclose(filled.mean, np.average(rows, axis=0, weights=weights), rtol=1e-12, atol=1e-13)
    ridge = 1e-3 * np.diag(np.diag(covariance))
    np.testing.assert_allclose(filled.scale, covariance + ridge, rtol=1e-11, atol=1e-12)


def test_given_hyper_parameters_are_kept_and_the_rest_filled(rows: np.ndarray) -> None:
    model = sb.Mixture(likelihood=sb.Gaussian(mean_precision=0.7, scale=SCALE), process=sb.DirichletProcess())
    filled = sb.fit(model, rows, START, n_components=2, progress=False).model.likelihood
    assert filled.mean_precision == 0.7
    np.testing.assert_array_equal(filled.scale, SCALE)
    np.testing.assert_allclose(filled.mean, rows.mean(0), rtol=1e-12, atol=1e-13)
    assert model.likelihood.mean is None
