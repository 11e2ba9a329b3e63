"""`ZeroMeanGaussian` against SciPy and NumPy only: nothing here uses the oracle or its formulas."""

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import betaln, logsumexp, multigammaln

import stickbreak as sb

DIMENSION, DOF = 3, 4.5
SCALE = np.array([[2.0, 0.3, 0.0], [0.3, 1.5, -0.2], [0.0, -0.2, 1.0]])
START = sb.Full(sparsity=None, max_passes=0)


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.standard_normal((80, DIMENSION)) * rng.choice([0.2, 3.0], (80, 1)) + 0.5


@pytest.fixture(scope="module")
def labels(rows: np.ndarray) -> np.ndarray:
    return (np.linalg.norm(rows, axis=1) > 1.5).astype(int)


def fit_labels(process: object, rows: np.ndarray, labels: np.ndarray) -> sb.Fit:
    model = sb.Mixture(likelihood=sb.ZeroMeanGaussian(dof=DOF, scale=SCALE), process=process)
    return sb.fit(model, rows, START, init=labels, progress=False)


def student(dof: float, scale: np.ndarray) -> object:
    own_dof = dof - len(scale) + 1
    return stats.multivariate_t(np.zeros(len(scale)), scale / own_dof, own_dof)


def log_marginal(rows: np.ndarray) -> float:
    """log p(X) of rows that share one zero-mean Gaussian, from the normalising constants of the Wishart."""
    n, dimension = rows.shape
    dof, scale = DOF + n, SCALE + rows.T @ rows
    return float(
        -n * dimension / 2 * np.log(np.pi)
        + multigammaln(dof / 2, dimension)
        - multigammaln(DOF / 2, dimension)
        + DOF / 2 * np.linalg.slogdet(SCALE)[1]
        - dof / 2 * np.linalg.slogdet(scale)[1]
    )


def test_posterior_from_second_moments(rows: np.ndarray, labels: np.ndarray) -> None:
    fit = fit_labels(sb.DirichletProcess(), rows, labels)
    assert set(fit.components) == {"dof", "scale"}
    for k in range(2):
        members = rows[labels == k]
        np.testing.assert_allclose(fit.components["dof"][k], DOF + len(members), rtol=1e-12)
        np.testing.assert_allclose(fit.components["scale"][k], SCALE + members.T @ members, rtol=1e-11)


def test_one_component_predicts_a_student(rows: np.ndarray) -> None:
    fit = fit_labels(sb.FiniteDirichlet(n_components=1), rows, np.zeros(len(rows), int))
    expected = student(fit.components["dof"][0], fit.components["scale"][0])
    np.testing.assert_allclose(fit.log_predictive(rows), expected.logpdf(rows), rtol=1e-11)


def test_mixture_predicts_a_mixture_of_students(rows: np.ndarray, labels: np.ndarray) -> None:
    fit = fit_labels(sb.DirichletProcess(concentration=0.8), rows, labels)
    parts = fit.components
    densities = [student(parts["dof"][k], parts["scale"][k]).logpdf(rows) for k in range(2)]
    densities.append(student(DOF, SCALE).logpdf(rows))
    weights = np.append(fit.weights, fit.leftover_weight)
    assert weights.sum() == pytest.approx(1.0, rel=1e-12)
    expected = logsumexp(np.column_stack(densities) + np.log(weights), axis=1)
    np.testing.assert_allclose(fit.log_predictive(rows), expected, rtol=1e-11)


def test_elbo_of_one_component_is_the_log_marginal_likelihood(rows: np.ndarray) -> None:
    zeros = np.zeros(len(rows), int)
    assert fit_labels(sb.FiniteDirichlet(n_components=1), rows, zeros).elbo == pytest.approx(
        log_marginal(rows), rel=1e-11
    )
    stick = betaln(1 + len(rows), 2.5) - betaln(1, 2.5)
    fit = fit_labels(sb.DirichletProcess(concentration=2.5), rows, zeros)
    assert fit.elbo == pytest.approx(log_marginal(rows) + stick, rel=1e-11)


def test_elbo_of_one_component_by_quadrature() -> None:
    """In one dimension the evidence is an integral over the precision."""
    rows, dof, scale = np.array([0.4, -0.3, 1.1]), 1.4, 1.3

    def joint(value: float) -> float:
        prior = stats.gamma.pdf(value, dof / 2, scale=2 / scale)
        return float(prior * np.prod(stats.norm.pdf(rows, 0.0, value**-0.5)))

    evidence = integrate.quad(joint, 0, np.inf, epsabs=0, epsrel=1e-10)[0]
    model = sb.Mixture(
        likelihood=sb.ZeroMeanGaussian(dof=dof, scale=[[scale]]), process=sb.FiniteDirichlet(n_components=1)
    )
    fit = sb.fit(model, rows[:, None], START, init=np.zeros(3, int), progress=False)
    assert fit.elbo == pytest.approx(np.log(evidence), rel=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
def test_default_hyper_parameters_follow_the_data(rows: np.ndarray, weighted: bool) -> None:
    """Second moments about zero, as the model has them."""
    weights = np.random.default_rng(1).uniform(0.0, 3.0, len(rows)) if weighted else None
    model = sb.Mixture(likelihood=sb.ZeroMeanGaussian(), process=sb.DirichletProcess())
    fit = sb.fit(model, rows, START, n_components=2, sample_weight=weights, progress=False)
    masses = np.ones(len(rows)) if weights is None else weights
    second = (rows * masses[:, None]).T @ rows / masses.sum()
    ridge = 1e-3 * np.diag(np.diag(second))
    assert fit.model.likelihood.dof == DIMENSION + 2
    np.testing.assert_allclose(fit.model.likelihood.scale, second + ridge, rtol=1e-11, atol=1e-12)


def test_singular_patches_have_a_usable_default() -> None:
    """Rows whose own mean was removed have a singular covariance: the last column follows from the others."""
    patches = np.random.default_rng(2).standard_normal((50, 6))
    patches -= patches.mean(1, keepdims=True)
    model = sb.Mixture(likelihood=sb.ZeroMeanGaussian(), process=sb.DirichletProcess())
    with pytest.warns(sb.SupportWarning, match="column 5 follows from the others"):
        fit = sb.fit(model, patches, sb.Full(max_passes=5), n_components=3, progress=False)
    assert np.linalg.eigvalsh(fit.model.likelihood.scale).min() > 0
    assert np.isfinite(fit.elbo)
