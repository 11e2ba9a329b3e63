"""Missing values under `StudentT` with a full covariance, which are imputed, against their oracle."""

from functools import partial
from itertools import pairwise
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from scipy.special import logsumexp, xlogy
from sklearn.metrics import adjusted_rand_score

import stickbreak as sb
from oracles import models
from oracles.models import Array
from oracles.tails_with_holes import ImputingTails, bound
from tailed import heavy, with_holes

MOVES = (sb.Birth(), sb.Merge(), sb.Delete(), sb.Split())
DENSE: dict[str, Any] = {"moves": (), "sparsity": None, "margin": None, "tol": 0}
MISSING: dict[str, Any] = {"missing": "marginalize", "progress": False}


def likelihood(d: int, tail_dof: float = 3.0, resolution: Any = 0) -> sb.StudentT:
    values: dict[str, Any] = {"mean": np.full(d, 0.5), "mean_precision": 0.2, "dof": d + 2.5}
    return sb.StudentT(tail_dof, **values, scale=np.eye(d) * 2 + 0.7, resolution=resolution)


def fitted(rows: Array, own: Any, passes: int, k: int, algorithm: Any = sb.Full, **options: Any) -> sb.Fit:
    model = sb.Mixture(own, process=sb.FiniteDirichlet(k, concentration=1.3))
    return sb.fit(model, rows, algorithm(max_passes=passes, **DENSE), **MISSING, **options)


@pytest.mark.parametrize("width", [0.0, 1.5])
@pytest.mark.parametrize(("d", "share", "tail_dof"), [(2, 0.3, 1.5), (3, 0.6, 4.0), (6, 0.4, 30.0)])
def test_passes_are_those_of_the_oracle(d: int, share: float, tail_dof: float, width: float) -> None:
    """Also where columns are rounded to cells of different widths."""
    rows = with_holes(heavy(0, n=50, d=d, k=3, apart=2.0)[0], 1, share)
    widths = width * np.arange(1.0, d + 1)
    own, process = likelihood(d, tail_dof, widths), models.FiniteSymmetricDirichlet(1.3)
    prior = ImputingTails(own.mean, own.mean_precision, own.dof, own.scale, widths**2 / 12)
    r, labels = np.eye(3)[np.arange(50) % 3], np.arange(50) % 3
    start = prior.prior_natural
    components = [prior.sums_of_tails(start, rows, r[:, k], tail_dof, before=True) for k in range(3)]
    for passes in range(4):
        fit = fitted(rows, own, passes, 3, init=labels)
        expected = bound(prior, components, tail_dof, -xlogy(r, r).sum(), process)
        assert fit.elbo == pytest.approx(expected, rel=1e-10)
        np.testing.assert_allclose(fit.counts, r.sum(0), rtol=1e-9)
        naturals = [start + one.natural for one in components]
        densities = [[prior.log_predictive_of_tails(one, row, tail_dof) for one in naturals] for row in rows]
        eta = process.update(r.sum(0))
        weights = process.expected_weights(eta)[:3]
        np.testing.assert_allclose(fit.log_predictive(rows), np.log(np.exp(densities) @ weights), rtol=1e-6)
        scores = np.array([[prior.scale(one, row, tail_dof)[0] for one in naturals] for row in rows])
        scores = scores + process.expected_log_weights(eta)
        r = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
        components = [prior.sums_of_tails(one, rows, r[:, k], tail_dof) for k, one in enumerate(naturals)]


@given(st.integers(0, 2**32 - 1), st.floats(0.05, 0.7), st.integers(1, 5), st.booleans())
def test_the_bound_never_falls_while_everything_is_estimated(seed: int, share: float, d: int, rounded: bool) -> None:
    rows = with_holes(heavy(seed, n=60, d=d, k=2, apart=3.0)[0], seed, share)
    rows = np.round(rows) if rounded else rows
    model = sb.Mixture(sb.StudentT(resolution=1 if rounded else 0))
    fit = sb.fit(model, rows, sb.Full(max_passes=12, **DENSE), n_components=3, seed=1, **MISSING)
    objectives = [record.objective for record in fit.history]
    assert all(after >= before - 1e-9 * (1 + abs(before)) for before, after in pairwise(objectives))
    assert fit.evaluate(rows) >= fit.elbo - 1e-9 * abs(fit.elbo)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_without_holes_it_is_the_complete_model(seed: int, batches: int) -> None:
    rows, labels = heavy(seed, n=40, d=3, k=2, apart=3.0)
    model = sb.Mixture(likelihood(3), process=sb.FiniteDirichlet(2, concentration=1.0))
    algorithm = sb.Memoized(batches=batches, max_passes=5, shuffle=False, **DENSE)
    options: dict[str, Any] = {"n_components": 2, "init": labels, "progress": False}
    plain, holed = (sb.fit(model, rows, algorithm, **options, **more) for more in ({}, {"missing": "marginalize"}))
    assert holed.elbo == pytest.approx(plain.elbo, rel=1e-11)
    np.testing.assert_allclose(holed.counts, plain.counts, rtol=1e-9)


def test_light_tails_are_gaussian() -> None:
    rows, labels = heavy(3, n=90, d=3, k=3, tail_dof=1e6)
    rows = with_holes(rows, 2)
    values: dict[str, Any] = {"mean": [0.5, 0.5, 0.1], "mean_precision": 0.2, "dof": 6, "scale": np.eye(3)}
    values |= {"resolution": 0}
    normal = fitted(rows, sb.Gaussian(**values), 30, 3, init=labels)
    near, far = (fitted(rows, sb.StudentT(f, **values), 30, 3, init=labels) for f in (500.0, 1000.0))
    assert abs(far.elbo - normal.elbo) < 0.5
    assert 2 * far.elbo - near.elbo == pytest.approx(normal.elbo, abs=4e-3)


def test_batches_end_alike() -> None:
    rows, labels = heavy(4, n=200, d=3, k=3)
    rows, own = with_holes(rows, 3), likelihood(3)
    one, three = (partial(sb.Memoized, batches=batches) for batches in (1, 3))
    whole = fitted(rows, own, 6, 3, init=labels)
    assert fitted(rows, own, 6, 3, one, init=labels).elbo == pytest.approx(whole.elbo, rel=1e-12)
    ends = [fitted(rows, own, 80, 3, batches, init=labels).elbo for batches in (one, three)]
    assert ends[0] == pytest.approx(ends[1], rel=1e-7)


@pytest.mark.parametrize("seed", range(2))
def test_clusters_with_tails_and_holes_stay_whole(seed: int) -> None:
    rows, labels = heavy(seed, d=8, apart=6.0)
    holes = with_holes(rows, seed, share=0.1)
    found = sb.fit(sb.Mixture(sb.StudentT()), holes, seed=seed, **MISSING)
    assert found.n_occupied == 10
    assert adjusted_rand_score(labels, found.predict(holes)) > 0.95
    assert found.model.likelihood.tail_dof == pytest.approx(3, abs=0.8)


def test_moves_gain_at_least_what_they_say() -> None:
    rows = with_holes(heavy(6, n=400, k=6)[0], 4, share=0.1)
    algorithm = sb.Memoized(max_passes=60, moves=MOVES)
    found = sb.fit(sb.Mixture(sb.StudentT()), rows, algorithm, seed=3, **MISSING)
    records = list(found.history)
    assert any(report.accepted for record in records for report in record.moves)
    for before, after in pairwise(records):
        assert after.objective >= before.objective - 1e-7 * abs(before.objective)


def test_missing_values_follow_from_the_others() -> None:
    rng = np.random.default_rng(0)
    rows = rng.multivariate_normal([1, 2, 3], [[1, 0.9, 0], [0.9, 1, 0], [0, 0, 1]], size=400)
    rows /= np.sqrt(rng.chisquare(4, 400) / 4)[:, None]
    fit = fitted(with_holes(rows, 5), sb.StudentT(), 60, 1)
    holes = rows[:20].copy()
    holes[:, 1] = np.nan
    expected = fit.marginal([0, 2]).log_density(holes[:, [0, 2]])
    np.testing.assert_allclose(fit.log_predictive(holes), expected, rtol=1e-6)
    filled, variances = fit.impute(holes, return_variance=True)
    assert np.corrcoef(filled[:, 1], rows[:20, 1])[0, 1] > 0.8
    assert variances[:, 1].max() > 1.5 * variances[:, 1].min()


def test_the_unit_of_a_column_does_not_matter() -> None:
    rows, labels = heavy(10, n=150, d=3, k=3)
    rows, units = with_holes(rows, 7, share=0.2), np.array([1e-3, 1.0, 1e4])
    seen = ~np.isnan(rows)
    plain, scaled = (
        sb.fit(sb.Mixture(sb.StudentT()), each, init=labels, **MISSING) for each in (rows, rows * units + [5, -3, 1e5])
    )
    assert scaled.elbo == pytest.approx(plain.elbo - (seen * np.log(units)).sum(), abs=0.05)


def test_columns_sum_their_blocks() -> None:
    """Two blocks with scales of their own, one of which rows may lack."""
    rows, _ = heavy(9, n=150, d=4, k=1)
    rows[::7, 2:] = np.nan
    rows[::5, 0] = np.nan
    one, other = likelihood(2), likelihood(2, 5.0)
    together = fitted(rows, sb.Columns({(0, 1): one, (2, 3): other}), 8, 1).elbo
    present = rows[:, 2:][~np.isnan(rows[:, 2])]
    alone = fitted(rows[:, :2], one, 8, 1).elbo + fitted(present, other, 8, 1).elbo
    assert together == pytest.approx(alone, rel=1e-10)
