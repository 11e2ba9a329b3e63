"""When a fit counts as converged, and its warning otherwise."""

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import stickbreak as sb
from cases import clustered_rows

ROWS = clustered_rows(np.random.default_rng(3), 600, 3, 5)
MODEL = sb.Mixture(likelihood=sb.Gaussian())


def fit(algorithm: Any = None, **options: Any) -> sb.Fit:
    return sb.fit(MODEL, ROWS, algorithm, **{"progress": False} | options)


def test_a_fit_whose_passes_run_out_says_so_once() -> None:
    with pytest.warns(sb.ConvergenceWarning) as caught:
        found = fit(sb.Full(max_passes=3), n_components=8)
    (warning,) = caught
    gain = found.history[-1].objective - found.history[-2].objective
    assert f"not converged after 3 passes: the last one still raised the objective by {gain:.3g} nats" in str(
        warning.message
    )
    assert "max_passes=" in str(warning.message)
    assert "init=fit" in str(warning.message)
    assert warning.filename == __file__
    # The advice works.
    fit(sb.Full(max_passes=2000), init=found)


def test_moves_that_are_left_are_named() -> None:
    with pytest.warns(sb.ConvergenceWarning, match="after 1 pass"):
        fit(sb.Memoized(moves=(sb.Birth(), sb.Merge()), max_passes=1))


@pytest.mark.parametrize(
    ("algorithm", "options"),
    [
        (sb.Full(max_passes=2000), {"n_components": 5}),
        (sb.Full(max_passes=3, tol=0.0), {"n_components": 5}),
        (sb.Full(max_passes=0), {"n_components": 5}),
        (sb.Stochastic(100, max_passes=2), {"n_components": 5}),
        (sb.Full(max_passes=50), {"n_components": 5, "callbacks": [lambda record: True]}),
    ],
)
def test_nothing_is_said_of_other_ends(algorithm: Any, options: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(algorithm, **options)


def test_a_bound_that_falls_by_rounding_is_no_bug() -> None:
    """Second moments about zero of rows far out lose their digits: 2e-4 of a log determinant here."""
    for seed, offset in itertools.product(range(6), (3e5, 1e6)):
        rng = np.random.default_rng(seed)
        d = (1, 2, 3, 5)[seed % 4]
        wide = rng.normal(size=(300, d)) * 3 + rng.normal(size=d) * 6
        rows = np.concatenate([rng.normal(size=(300, d)), wide]) + offset
        model = sb.Mixture(likelihood=sb.ZeroMeanGaussian(scale=np.eye(d)))
        found = sb.fit(model, rows, sb.Full(max_passes=30, tol=0.0), n_components=4, seed=seed, progress=False)
        bounds = np.array([record.objective for record in found.history])
        # Rounding of the squares relative to the smallest variance, for every degree of freedom.
        room = 2.0**-52 * offset**2 * d * (600 + 4 * (d + 2))
        assert np.diff(bounds).min() > -room


@pytest.mark.parametrize(
    ("likelihood", "rows"),
    [
        (sb.Categorical(), np.array([[0], [1]] * 20)),
        (sb.Categorical(), np.random.default_rng(3).integers(2, size=(100, 1))),
        (sb.Poisson(), np.random.default_rng(0).poisson(2.0, size=(80, 1))),
    ],
)
def test_small_tables_converge(likelihood: Any, rows: np.ndarray) -> None:
    """A search ends with its best state, cut short or not; gains of less than a thousandth of a nat are nothing."""
    found = sb.fit(sb.Mixture(likelihood), rows, progress=False)
    assert found.stop_reason is sb.StopReason.CONVERGED
    assert len(found.history) < 300
