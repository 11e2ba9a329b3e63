"""Missing values under `Gaussian`, which are imputed, against their oracle."""

import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from scipy.special import digamma
from sklearn.metrics import adjusted_rand_score

import stickbreak as sb
from oracles import holes, models
from oracles.models import Array

DENSE: dict[str, Any] = {"moves": (), "sparsity": None, "margin": None, "tol": 0}
MISSING: dict[str, Any] = {"missing": "marginalize", "progress": False}


def correlated(seed: int, n: int, d: int, k: int, share: float, apart: float = 4.0) -> tuple[Array, Any]:
    """Return clusters with correlated columns and a share of missing values, and their labels."""
    rng = np.random.default_rng(seed)
    labels, factors = rng.integers(k, size=n), rng.normal(size=(k, d, d)) / np.sqrt(d)
    rows = apart * rng.normal(size=(k, d))[labels] + np.einsum("nij,nj->ni", factors[labels], rng.normal(size=(n, d)))
    rows += 0.3 * rng.normal(size=(n, d))
    absent = rng.random((n, d)) < share
    absent[np.arange(n), rng.integers(d, size=n)] = False
    return np.where(absent, np.nan, rows), labels


def likelihood(d: int) -> sb.Gaussian:
    scale = np.eye(d) * 2 + 0.7
    return sb.Gaussian(mean=np.full(d, 0.5), mean_precision=0.2, dof=d + 2.5, scale=scale, resolution=0)


def fitted(rows: Array, own: Any, passes: int, k: int, **options: Any) -> sb.Fit:
    model = sb.Mixture(own, process=sb.FiniteDirichlet(k, concentration=1.3))
    return sb.fit(model, rows, sb.Full(max_passes=passes, **DENSE), **MISSING, **options)


@pytest.mark.parametrize(("d", "share"), [(2, 0.3), (3, 0.6), (9, 0.4)])
def test_passes_are_those_of_the_oracle(d: int, share: float) -> None:
    rows, _ = correlated(0, n=50, d=d, k=3, share=share)
    own, process = likelihood(d), models.FiniteSymmetricDirichlet(1.3)
    prior = holes.Imputing(own.mean, own.mean_precision, own.dof, own.scale)
    r = np.eye(3)[np.arange(50) % 3]
    # Rows without a component are filled under the base measure.
    components = [prior.sums(prior.prior_natural, rows, r[:, k]) for k in range(3)]
    for passes in range(4):
        fit = fitted(rows, own, passes, 3, init=np.arange(50) % 3)
        assert fit.elbo == pytest.approx(holes.bound(prior, components, r, process), rel=1e-10)
        np.testing.assert_allclose(fit.counts, r.sum(0), rtol=1e-9)
        naturals = [prior.prior_natural + s for s, _ in components]
        densities = [[prior.log_predictive_of_present(one, row) for one in naturals] for row in rows]
        weights = process.expected_weights(process.update(r.sum(0)))[:3]
        np.testing.assert_allclose(fit.log_predictive(rows), np.log(np.exp(densities) @ weights), rtol=1e-9)
        r = holes.step(prior, components, rows, process, r.sum(0))
        components = [prior.sums(one, rows, r[:, k]) for k, one in enumerate(naturals)]


@given(st.integers(0, 2**32 - 1), st.floats(0.05, 0.7), st.integers(1, 5), st.booleans())
def test_the_bound_never_falls_while_everything_is_estimated(seed: int, share: float, d: int, rounded: bool) -> None:
    rows, _ = correlated(seed, n=60, d=d, k=2, share=share)
    rows = np.round(rows) if rounded else rows
    model = sb.Mixture(sb.Gaussian(resolution=1 if rounded else 0))
    fit = sb.fit(model, rows, sb.Full(max_passes=12, **DENSE), n_components=3, seed=1, **MISSING)
    objectives = [record.objective for record in fit.history]
    assert all(after >= before - 1e-9 * (1 + abs(before)) for before, after in pairwise(objectives))
    assert fit.evaluate(rows) >= fit.elbo - 1e-9 * abs(fit.elbo)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_without_holes_it_is_the_complete_model(seed: int, batches: int) -> None:
    rows, labels = correlated(seed, n=40, d=3, k=2, share=0.0)
    model = sb.Mixture(likelihood(3), process=sb.FiniteDirichlet(2, concentration=1.0))
    algorithm = sb.Memoized(batches=batches, max_passes=5, shuffle=False, **DENSE)
    options: dict[str, Any] = {"n_components": 2, "init": labels % 2, "progress": False}
    plain, holed = (sb.fit(model, rows, algorithm, **options, **more) for more in ({}, {"missing": "marginalize"}))
    assert holed.elbo == pytest.approx(plain.elbo, rel=1e-11)
    np.testing.assert_allclose(holed.counts, plain.counts, rtol=1e-9)
    np.testing.assert_allclose(holed.log_predictive(rows), plain.log_predictive(rows), rtol=1e-9)


def test_rounded_columns_count_only_values_that_are_there() -> None:
    """A column without values among the rows of the only component is as if it had no resolution."""
    rows, _ = correlated(1, n=40, d=2, k=1, share=0.0)
    rows[:, 1] = np.nan
    rows[0, 1] = 0.3
    fine = {"mean": [0, 0], "mean_precision": 0.3, "dof": 5.0, "scale": np.eye(2)}
    coarse, none = (
        fitted(rows[1:], sb.Gaussian(**fine, resolution=[0.5, width]), 3, 1)  # type: ignore[arg-type]
        for width in (9.0, 0.0)
    )
    assert coarse.elbo == pytest.approx(none.elbo, rel=1e-12)


def test_clusters_are_found_where_columns_are_correlated() -> None:
    rows, labels = correlated(2, n=1500, d=6, k=5, share=0.3, apart=3.0)
    fit = sb.fit(sb.Mixture(sb.Gaussian()), rows, **MISSING)
    assert fit.n_occupied == 5
    assert adjusted_rand_score(labels, fit.predict(rows)) > 0.9
    # Independent columns need more components for one correlation.
    assert sb.fit(sb.Mixture(sb.DiagonalGaussian()), rows, **MISSING).n_occupied > 5


def test_imputed_values_follow_from_the_others() -> None:
    rng = np.random.default_rng(3)
    first = rng.normal(size=(800, 1))
    rows = np.hstack([first, 2 * first + 0.1 * rng.normal(size=(800, 1))])
    holed = rows.copy()
    holed[::3, 1] = np.nan
    fit = sb.fit(sb.Mixture(sb.Gaussian()), holed, **MISSING)
    filled = fit.impute(holed)
    assert fit.n_occupied == 1
    error = np.abs(filled[::3, 1] - rows[::3, 1])
    assert np.sqrt((error**2).mean()) < 0.12
    np.testing.assert_array_equal(filled[1::3], holed[1::3])
    drawn = np.array([fit.sample_missing(holed, seed=seed)[::3, 1] for seed in range(60)])
    assert drawn.std(0).mean() == pytest.approx(0.1, rel=0.15)
    density = fit.conditional({0: float(rows[0, 0])})
    assert density.log_density([[rows[0, 1]]])[0] > 0


@pytest.mark.parametrize(
    ("algorithm", "options"),
    [
        (sb.Full(), {}),
        (sb.Memoized(batches=3), {}),
        (sb.Stochastic(batch_size=7), {}),
        (sb.Full(), {"init": "random"}),
        (sb.Full(), {"init": "sequential"}),
        (sb.Full(), {"init": np.arange(60) % 3}),
        (sb.Full(), {"labels": np.where(np.arange(60) < 9, np.arange(60) % 2, -1)}),
    ],
)
@pytest.mark.parametrize("d", [1, 3])
def test_rows_without_values_have_no_part(algorithm: Any, options: dict[str, Any], d: int) -> None:
    rows, _ = correlated(8, n=60, d=d, k=2, share=0.2)
    rows[[0, 30]] = np.nan
    with pytest.warns(sb.EmptyRowsWarning, match="2 rows have no value at all and no part in the fit"):
        fit = sb.fit(sb.Mixture(sb.Gaussian()), rows, algorithm, **MISSING, **options)
    assert fit.counts.sum() == pytest.approx(58)
    np.testing.assert_allclose(fit.log_predictive(rows[:1]), 0, atol=1e-12)


def test_rows_without_values_follow_from_the_weights() -> None:
    rows, labels = correlated(9, n=90, d=3, k=2, share=0.2)
    fit = fitted(rows, likelihood(3), 5, 2, init=labels)
    # The expected log weights of a Dirichlet posterior.
    weights = np.exp(digamma(fit.counts + 1.3 / 2))
    empty = np.full((2, 3), np.nan)
    mixed = np.vstack([empty[:1], rows[:3]])
    np.testing.assert_allclose(fit.predict_proba(empty), np.tile(weights / weights.sum(), (2, 1)), rtol=1e-9)
    np.testing.assert_array_equal(fit.predict_proba(mixed)[1:], fit.predict_proba(rows[:3]))
    assert fit.predict(empty).tolist() == [weights.argmax()] * 2
    for plug_in in (False, True):
        np.testing.assert_allclose(fit.log_predictive(empty, plug_in=plug_in), 0, atol=1e-12)
    np.testing.assert_allclose(fit.impute(empty)[0], fit.weights @ fit.point_estimates["mean"], rtol=1e-9)
    assert np.isfinite(fit.sample_missing(empty, seed=0)).all()
    assert np.isfinite(fit.outlier_scores(mixed)).all()
    with pytest.warns(sb.EmptyRowsWarning, match="1 row has no value at all"):
        assert fit.evaluate(mixed) == pytest.approx(fit.evaluate(rows[:3]), rel=1e-12)
    with pytest.warns(sb.EmptyRowsWarning, match="1 row has no value at all"):
        more = fit.update(mixed)
    assert more.counts.sum() == pytest.approx(93)


@pytest.mark.parametrize("n_holes", [1, 15])
def test_a_far_row_beside_holes_leaves_a_fit(n_holes: int) -> None:
    rows = np.random.default_rng(0).normal(size=(50, 3))
    rows[:n_holes, 0], rows[-1, 1] = np.nan, 1e3
    fit = sb.fit(sb.Mixture(sb.Gaussian()), rows, **MISSING)
    labels = fit.predict(rows)
    assert (labels == labels[-1]).sum() == 1
    # The scale follows from the other rows.
    assert np.sqrt(fit.point_estimates["covariance"][labels[0]].diagonal()).max() < 2


@pytest.mark.parametrize("own", [sb.Gaussian, sb.DiagonalGaussian])
def test_columns_without_values_have_no_effect(own: Any, tmp_path: Path) -> None:
    """A warning names them, as it names constant columns. `impute` leaves NaN, and a later value is not off support."""
    rows, _ = correlated(10, n=120, d=2, k=2, share=0.2)
    wide = np.hstack([np.full((120, 1), np.nan), rows[:, :1], np.full((120, 2), np.nan), rows[:, 1:]])
    plain = sb.fit(sb.Mixture(own()), rows, **MISSING)
    with pytest.warns(sb.SupportWarning, match="columns 0, 2, 3 are constant or have no value; the model ignores"):
        fit = sb.fit(sb.Mixture(own()), wide, **MISSING)
    assert fit.elbo == pytest.approx(plain.elbo, rel=1e-11)
    assert (fit.support.rank, fit.support.constant) == (2, (0, 2, 3))
    fit.save(tmp_path / "fit.sb")
    later = np.where(np.arange(5) == 2, 7.0, wide)
    for each in (fit, sb.load(tmp_path / "fit.sb")):
        np.testing.assert_allclose(each.log_predictive(later), plain.log_predictive(rows), rtol=1e-9)
        filled, variances = each.impute(later, return_variance=True)
        np.testing.assert_allclose(filled[:, [1, 4]], plain.impute(rows), rtol=1e-9)
        for found in (filled, variances, each.sample_missing(later, seed=0)):
            assert np.isnan(found[:, [0, 3]]).all()
            assert not np.isnan(found[:, [1, 2, 4]]).any()


def test_columns_without_values_stay_where_the_scale_speaks_of_them() -> None:
    rows, _ = correlated(11, n=60, d=2, k=1, share=0.1)
    wide = np.hstack([rows, np.full((60, 1), np.nan)])
    fit = fitted(wide, likelihood(3), 3, 1)
    assert (fit.support.rank, fit.support.constant) == (3, ())
    assert np.isfinite(fit.impute(wide)).all()


@given(st.integers(0, 2**32 - 1), st.floats(0.1, 0.5), st.booleans())
def test_rows_with_a_value_in_a_constant_column_alone(seed: int, share: float, is_gaussian: bool) -> None:
    """The model sees no value of theirs, so their log predictive is 0, and the bound still never falls."""
    rows, _ = correlated(seed, n=40, d=3, k=2, share=0.1)
    rows[np.random.default_rng(seed).random(40) < share] = np.nan
    rows[:8] = np.arange(24).reshape(8, 3) ** 2 % 17
    rows = np.hstack([rows, np.full((40, 1), 2.0)])
    model = sb.Mixture(sb.Gaussian() if is_gaussian else sb.DiagonalGaussian())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sb.SupportWarning)
        fit = sb.fit(model, rows, sb.Full(max_passes=8, **DENSE), n_components=3, seed=1, **MISSING)
    objectives = [record.objective for record in fit.history]
    assert all(after >= before - 1e-9 * (1 + abs(before)) for before, after in pairwise(objectives))
    assert fit.evaluate(rows) >= fit.elbo - 1e-9 * abs(fit.elbo)
    np.testing.assert_allclose(fit.log_predictive([[np.nan, np.nan, np.nan, 2.0]]), 0, atol=1e-12)


def test_variances_of_a_constant_column_are_zero() -> None:
    rows, _ = correlated(12, n=200, d=2, k=3, share=0.1)
    rows = np.hstack([rows, np.full((200, 1), 3.1)])
    rows[::3, 2] = np.nan
    with pytest.warns(sb.SupportWarning):
        fit = sb.fit(sb.Mixture(sb.Gaussian()), rows, **MISSING)
    assert fit.n_occupied > 1
    assert fit.impute(rows, return_variance=True)[1].min() >= 0.0


def test_columns_impute_within_a_block_and_drop_rows_without_it() -> None:
    rows, _ = correlated(4, n=200, d=3, k=1, share=0.3)
    rows[::9, :2], rows[::9, 2] = np.nan, np.linspace(-1, 1, len(rows[::9]))
    pair, single = likelihood(2), sb.DiagonalGaussian(mean=[0], mean_precision=0.1, shape=2, rate=1, resolution=0)
    together = fitted(rows, sb.Columns({(0, 1): pair, (2,): single}), 6, 1).elbo
    has_pair, has_single = ~np.isnan(rows[:, :2]).all(1), ~np.isnan(rows[:, 2])
    alone = fitted(rows[has_pair, :2], pair, 6, 1).elbo + fitted(rows[has_single, 2:], single, 6, 1).elbo
    assert together == pytest.approx(alone, rel=1e-10)


@pytest.mark.parametrize("algorithm", [sb.Full, sb.Memoized])
def test_moves_keep_their_word(algorithm: Any) -> None:
    rows, _ = correlated(5, n=400, d=4, k=5, share=0.3)
    moves = (sb.Birth(), sb.Merge(), sb.Delete(), sb.Split())
    fit = sb.fit(sb.Mixture(sb.Gaussian()), rows, algorithm(max_passes=50, moves=moves), seed=2, **MISSING)
    assert any(report.accepted for record in fit.history for report in record.moves)
    for before, after in pairwise(fit.history):
        assert after.objective >= before.objective - 1e-7 * abs(before.objective)


def test_threads_and_batches_change_no_bit() -> None:
    rows, _ = correlated(6, n=600, d=5, k=3, share=0.4)
    one, two = (sb.fit(sb.Mixture(sb.Gaussian()), rows, threads=threads, seed=1, **MISSING) for threads in (1, 2))
    assert one.elbo == two.elbo
    np.testing.assert_array_equal(one.log_predictive(rows), two.log_predictive(rows))


def test_what_does_not_impute_is_refused() -> None:
    rows, _ = correlated(7, n=60, d=2, k=2, share=0.3)
    model = sb.Mixture(sb.Gaussian())
    with pytest.raises(sb.InvalidArgument, match="data must be finite"):
        sb.sample(model, rows)
    with pytest.raises(sb.NotSupported, match='objective="map" with Gaussian and missing values'):
        sb.fit(model, rows, sb.Full(objective="map"), n_components=2, **MISSING)
    with pytest.raises(sb.InvalidArgument, match="data must be finite"):
        sb.fit(model, rows)
