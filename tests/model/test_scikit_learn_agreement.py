"""Fits against `BayesianGaussianMixture` with the same hyper-parameters; nothing here uses the oracle.

scikit-learn's stick-breaking has the same free sticks as the nested truncation, and its covariance prior is the
`scale` here. A mean precision of 1e12 at mean zero turns its Gaussian into the zero-mean one.
"""

import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture

import stickbreak as sb

K, DIMENSION = 4, 3
SCALE = np.array([[1.2, 0.2, 0.0], [0.2, 0.9, 0.1], [0.0, 0.1, 1.1]])
MEAN, PRECISION, DOF, CONCENTRATION = np.array([0.1, -0.2, 0.3]), 0.3, 4.5, 1.9

PRIORS = pytest.mark.parametrize("process", ["dirichlet_process", "dirichlet_distribution"])


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Silence the warning that one iteration of scikit-learn has not converged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    rng = np.random.default_rng(5)
    return rng.standard_normal((300, DIMENSION)) + 2.0 * rng.standard_normal((K, DIMENSION))[rng.integers(K, size=300)]


def reference(process: str, *, zero_mean: bool = False, **options: object) -> BayesianGaussianMixture:
    concentration = CONCENTRATION if process == "dirichlet_process" else CONCENTRATION / K
    return BayesianGaussianMixture(
        n_components=K,
        covariance_type="full",
        reg_covar=0.0,
        weight_concentration_prior_type=process,
        weight_concentration_prior=concentration,
        mean_prior=np.zeros(DIMENSION) if zero_mean else MEAN,
        mean_precision_prior=1e12 if zero_mean else PRECISION,
        degrees_of_freedom_prior=DOF,
        covariance_prior=SCALE,
        random_state=0,
        **options,
    )


def own_model(process: str, *, zero_mean: bool = False) -> sb.Mixture:
    if zero_mean:
        likelihood = sb.ZeroMeanGaussian(dof=DOF, scale=SCALE)
    else:
        likelihood = sb.Gaussian(mean=MEAN, mean_precision=PRECISION, dof=DOF, scale=SCALE)
    if process == "dirichlet_process":
        return sb.Mixture(likelihood=likelihood, process=sb.DirichletProcess(concentration=CONCENTRATION))
    return sb.Mixture(likelihood=likelihood, process=sb.FiniteDirichlet(n_components=K, concentration=CONCENTRATION))


def own_fit(model: sb.Mixture, rows: np.ndarray, start: np.ndarray, steps: int) -> sb.Fit:
    """Make one global step, and then `steps` local and global steps. Passes would reorder components."""
    fit = sb.fit(model, rows, sb.Full(max_passes=0), init=start, progress=False)
    for _ in range(steps):
        fit = sb.fit(model, rows, sb.Full(max_passes=0), init=fit.predict_proba(rows), progress=False)
    return fit


@PRIORS
def test_global_step(rows: np.ndarray, process: str) -> None:
    """The same responsibilities give the same posterior of every component."""
    other = reference(process, max_iter=1, warm_start=True).fit(rows)
    start = other.predict_proba(rows)
    other.fit(rows)  # one more E-step, which repeats `start`, and one M-step
    fit = own_fit(own_model(process), rows, start, 0)
    np.testing.assert_allclose(fit.components["mean"], other.means_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(fit.components["mean_precision"], other.mean_precision_, rtol=1e-9)
    np.testing.assert_allclose(fit.components["dof"], other.degrees_of_freedom_, rtol=1e-9)
    dof = other.degrees_of_freedom_[:, None, None]
    np.testing.assert_allclose(fit.components["scale"], other.covariances_ * dof, rtol=1e-8, atol=1e-10)


@PRIORS
def test_local_step(rows: np.ndarray, process: str) -> None:
    """The same posterior gives the same responsibilities."""
    other = reference(process, max_iter=1, warm_start=True).fit(rows)
    start = other.predict_proba(rows)
    other.fit(rows)
    fit = own_fit(own_model(process), rows, start, 0)
    np.testing.assert_allclose(fit.predict_proba(rows), other.predict_proba(rows), rtol=1e-7, atol=1e-10)
    np.testing.assert_array_equal(fit.predict(rows), other.predict(rows))


@PRIORS
@pytest.mark.parametrize("zero_mean", [False, True])
def test_trajectory(rows: np.ndarray, process: str, zero_mean: bool) -> None:
    """Ten steps from the same start give the same result."""
    other = reference(process, zero_mean=zero_mean, max_iter=1, warm_start=True).fit(rows)
    start = other.predict_proba(rows)
    for _ in range(11):
        other.fit(rows)
    fit = own_fit(own_model(process, zero_mean=zero_mean), rows, start, 10)
    np.testing.assert_allclose(fit.predict_proba(rows), other.predict_proba(rows), rtol=1e-5, atol=1e-7)
    dof = other.degrees_of_freedom_[:, None, None]
    np.testing.assert_allclose(fit.components["scale"], other.covariances_ * dof, rtol=1e-5, atol=1e-6)


@PRIORS
def test_fixed_point(rows: np.ndarray, process: str) -> None:
    """At scikit-learn's converged state, steps of this package change nothing."""
    other = reference(process, max_iter=3000, tol=1e-13).fit(rows)
    start = other.predict_proba(rows)
    fit = own_fit(own_model(process), rows, start, 5)
    np.testing.assert_allclose(fit.predict_proba(rows), start, atol=1e-5)
    assert abs(fit.elbo - own_fit(own_model(process), rows, start, 0).elbo) < 1e-6 * len(rows)
