"""float32 data against the same numbers in float64.

Scores are computed in float32, everything that is summed over rows in float64 at the end. float32 rounds at 6e-8.
A score is a sum over D coordinates and is of the size of D nats, so a single row carries an error of some 1e-7 D, of
either sign. Second moments are summed over at most 1024 rows in float32; their errors, relative to the spread of all
data, move log |scale| of a cluster, and so the bound, by some 1e-7 D nats a row. For a few columns both are of the
class of 1e-6 nats a row that the project states. The tolerances below are these sizes times a small factor.
"""

import numpy as np
import pytest

import stickbreak as sb
from cases import LIKELIHOODS, LikelihoodName, clustered_rows


def mean_error(rows: np.ndarray) -> float:
    """Nats that a bound may be off for each row."""
    return 1e-6 + 2e-7 * rows.shape[1]


def row_error(rows: np.ndarray) -> float:
    """Nats that one row may be off."""
    return 1e-5 + 2e-6 * rows.shape[1]


@pytest.fixture(scope="module", params=[2, 16, 64])
def rows(request: pytest.FixtureRequest) -> np.ndarray:
    """float64 rows that float32 holds exactly, so that the data themselves are the same."""
    rows = clustered_rows(np.random.default_rng(request.param), 2500, request.param, 5)
    return rows.astype(np.float32).astype(np.float64)


def both(likelihood: LikelihoodName, rows: np.ndarray, algorithm: object) -> tuple[sb.Fit, sb.Fit]:
    kind = sb.Gaussian if likelihood == "gaussian" else sb.ZeroMeanGaussian
    # What is estimated away from a start between clusters would magnify any difference.
    model = sb.Mixture(likelihood=kind(prior="rule"), process=sb.DirichletProcess())
    start = np.random.default_rng(0).dirichlet(np.full(5, 0.3), len(rows))
    double = sb.fit(model, rows, algorithm, init=start, progress=False)
    single = sb.fit(double.model, rows.astype(np.float32), algorithm, init=start, progress=False)
    return single, double


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_global_step(likelihood: LikelihoodName, rows: np.ndarray) -> None:
    """Statistics are summed in float32 over at most 1024 rows: their relative error is far below 1e-5."""
    single, double = both(likelihood, rows, sb.Full(sparsity=None, max_passes=0))
    assert abs(single.elbo - double.elbo) <= mean_error(rows) * len(rows)
    np.testing.assert_allclose(single.counts, double.counts, rtol=1e-6)
    for name, values in double.components.items():
        np.testing.assert_allclose(single.components[name], values, rtol=1e-5, atol=1e-5 * np.abs(values).max())


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_local_step(likelihood: LikelihoodName, rows: np.ndarray) -> None:
    """At the same globals, float32 rows and float64 rows."""
    _, fit = both(likelihood, rows, sb.Full(sparsity=None, max_passes=0))
    single = rows.astype(np.float32)
    assert abs(fit.evaluate(single) - fit.evaluate(rows)) <= mean_error(rows) * len(rows)
    assert np.abs(fit.log_predictive(single) - fit.log_predictive(rows)).max() <= row_error(rows)
    assert np.abs(fit.predict_proba(single) - fit.predict_proba(rows)).max() <= row_error(rows)
    np.testing.assert_allclose(fit.predict_proba(single).sum(1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_whole_fit(likelihood: LikelihoodName, rows: np.ndarray) -> None:
    """A few passes on, the difference of the bounds is still of the same class."""
    single, double = both(likelihood, rows, sb.Full(sparsity=3, max_passes=5, tol=0.0))
    assert abs(single.elbo - double.elbo) <= 10 * mean_error(rows) * len(rows)
    bounds = [record.elbo for record in single.history]
    assert (np.diff(bounds) >= -mean_error(rows) * len(rows)).all()


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_results_are_double(likelihood: LikelihoodName, rows: np.ndarray) -> None:
    single, _ = both(likelihood, rows, sb.Full(max_passes=1))
    arrays = [single.counts, single.weights, single.predict_proba(rows[:3]), *single.components.values()]
    assert all(array.dtype == np.float64 for array in arrays)
    assert single.predict(rows[:3]).dtype == np.int64
