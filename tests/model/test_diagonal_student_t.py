"""Rows with heavy tails and independent columns, whole or with missing values, against their oracle and as users see
them."""

from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from scipy import integrate, stats
from sklearn.metrics import adjusted_rand_score

import stickbreak as sb
from oracles import diagonal_tails, models
from oracles.models import Array
from tailed import heavy, with_holes

MOVES = (sb.Birth(), sb.Merge(), sb.Delete(), sb.Split())
DENSE = {"moves": (), "sparsity": None, "margin": None, "tol": 0}


def likelihood(d: int, tail_dof: float = 3.0) -> sb.StudentT:
    values = {"mean": np.full(d, 0.5), "mean_precision": 0.2, "dof": 3.5, "scale": 2 + np.arange(d) / 4}
    return sb.StudentT(tail_dof, covariance="diagonal", resolution=0, **values)  # type: ignore[arg-type]


def oracle_of(filled: Any) -> diagonal_tails.NormalGamma:
    return diagonal_tails.NormalGamma.of_prior(filled.mean, filled.mean_precision, filled.dof, filled.scale)


def fitted(rows: Array, own: Any, passes: int, k: int, algorithm: Any = sb.Full, **options: Any) -> sb.Fit:
    # The order of components does not matter to a finite prior, whose weight is zero for one component.
    model = sb.Mixture(own, process=sb.FiniteDirichlet(k, concentration=1.3))
    options |= {"missing": "marginalize"} if np.isnan(rows).any() else {}
    return sb.fit(model, rows, algorithm(max_passes=passes, **DENSE), progress=False, **options)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(("d", "tail_dof"), [(1, 1.0), (2, 3.0), (3, 40.0), (9, 2.5)])
def test_passes_are_those_of_the_oracle(d: int, tail_dof: float, *, missing: bool) -> None:
    rows, _ = heavy(0, n=60, d=d, k=3, apart=2.0)
    rows = with_holes(rows, 1) if missing else rows
    labels, half = np.arange(60) % 3, np.full(60, tail_dof / 2)
    own, process = likelihood(d, tail_dof), models.FiniteSymmetricDirichlet(1.3)
    prior = oracle_of(own)
    components = [diagonal_tails.sums(rows, (labels == k) * 1.0, half, half) for k in range(3)]
    for passes in range(4):
        fit = fitted(rows, own, passes, 3, init=labels)
        assert fit.elbo == pytest.approx(diagonal_tails.bound(prior, components, tail_dof, process), rel=1e-10)
        counts = np.array([one.count for one in components])
        np.testing.assert_allclose(fit.counts, counts, rtol=1e-9)
        posteriors = [one.posterior(prior) for one in components]
        predictives = [diagonal_tails.log_predictive(one, rows, tail_dof) for one in posteriors]
        densities = np.exp(np.column_stack(predictives)) @ process.expected_weights(process.update(counts))[:3]
        np.testing.assert_allclose(fit.log_predictive(rows), np.log(densities), rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(fit.components["scale"], [2 * one.rate for one in posteriors], rtol=1e-8)
        components = diagonal_tails.step(prior, components, rows, tail_dof, process)


@given(st.integers(0, 2**32 - 1), st.floats(1.0, 200.0), st.integers(1, 4), st.integers(1, 4), st.booleans())
def test_the_bound_never_falls_while_everything_is_estimated(
    seed: int, tail_dof: float, d: int, k: int, missing: bool
) -> None:
    rows, _ = heavy(seed, n=70, d=d, k=k, apart=3.0, tail_dof=tail_dof)
    rows = with_holes(rows, seed) if missing else rows
    fit = sb.fit(
        sb.Mixture(sb.StudentT(covariance="diagonal")),
        rows,
        sb.Full(max_passes=12, **DENSE),  # type: ignore[arg-type]
        n_components=4,
        seed=1,
        progress=False,
        missing="marginalize" if missing else "error",
    )
    objectives = [record.objective for record in fit.history]
    assert all(after >= before - 1e-9 * (1 + abs(before)) for before, after in pairwise(objectives))
    assert 1.0 <= fit.model.likelihood.tail_dof <= 1000.0


def test_one_column_is_that_of_a_full_covariance() -> None:
    rows, labels = heavy(1, n=300, d=1, k=3)
    given: dict[str, Any] = {"mean": [0.3], "mean_precision": 0.2, "resolution": 0}
    full = fitted(rows, sb.StudentT(3, dof=4, scale=[[1.7]], **given), 20, 3, init=labels)
    diagonal = fitted(rows, sb.StudentT(3, covariance="diagonal", dof=4, scale=[1.7], **given), 20, 3, init=labels)
    assert diagonal.elbo == pytest.approx(full.elbo, rel=1e-12)
    np.testing.assert_allclose(diagonal.log_predictive(rows), full.log_predictive(rows), rtol=1e-9)
    # What is estimated, too.
    ends = [fitted(rows, sb.StudentT(covariance=one), 60, 3, init=labels) for one in ("full", "diagonal")]
    assert ends[0].elbo == pytest.approx(ends[1].elbo, abs=0.05)
    assert ends[0].model.likelihood.tail_dof == pytest.approx(ends[1].model.likelihood.tail_dof, rel=0.02)


@pytest.mark.parametrize("missing", [False, True])
def test_light_tails_are_gaussian(*, missing: bool) -> None:
    """The bound is that of `DiagonalGaussian` plus a term in 1 / f, which two tails cancel."""
    rows, labels = heavy(3, n=90, d=3, k=3, tail_dof=1e6)
    rows = with_holes(rows, 2) if missing else rows
    values = {"mean": [0.5, 0.5, 0.1], "mean_precision": 0.2, "resolution": 0}
    gaussian = sb.DiagonalGaussian(shape=2.5, rate=[1, 2, 3], **values)  # type: ignore[arg-type]
    normal = fitted(rows, gaussian, 30, 3, init=labels)
    tails = (sb.StudentT(f, covariance="diagonal", dof=5, scale=[2, 4, 6], **values) for f in (500.0, 1000.0))  # type: ignore[arg-type]
    near, far = (fitted(rows, own, 30, 3, init=labels) for own in tails)
    assert abs(far.elbo - normal.elbo) < 0.5
    assert 2 * far.elbo - near.elbo == pytest.approx(normal.elbo, abs=4e-3)
    np.testing.assert_allclose(far.log_predictive(rows), normal.log_predictive(rows), atol=0.05)


@pytest.mark.parametrize("missing", [False, True])
def test_batches_and_rows_in_float32_end_alike(*, missing: bool) -> None:
    rows, labels = heavy(4, n=200, d=3, k=3)
    rows = with_holes(rows, 3) if missing else rows
    own = likelihood(3)
    whole = fitted(rows, own, 6, 3, init=labels)
    one, three = (partial(sb.Memoized, batches=batches) for batches in (1, 3))
    assert fitted(rows, own, 6, 3, one, init=labels).elbo == pytest.approx(whole.elbo, rel=1e-12)
    ends = [fitted(rows, own, 80, 3, batches, init=labels).elbo for batches in (one, three)]
    assert ends[0] == pytest.approx(ends[1], rel=1e-7)
    assert fitted(rows.astype(np.float32), own, 6, 3, init=labels).elbo == pytest.approx(whole.elbo, rel=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_clusters_with_tails_stay_whole(seed: int) -> None:
    rows, labels = heavy(seed, d=8, apart=6.0)
    fit = sb.fit(sb.Mixture(sb.StudentT(covariance="diagonal")), rows, progress=False, seed=seed)
    assert fit.n_occupied == 10
    assert adjusted_rand_score(labels, fit.predict(rows)) > 0.95
    # Without tails, clusters break.
    assert sb.fit(sb.Mixture(sb.DiagonalGaussian()), rows, progress=False, seed=seed).n_occupied > 15
    holes = with_holes(rows, seed, share=0.2)
    found = sb.fit(sb.Mixture(sb.StudentT(covariance="diagonal")), holes, progress=False, missing="marginalize")
    assert found.n_occupied == 10
    assert adjusted_rand_score(labels, found.predict(holes)) > 0.95


@pytest.mark.parametrize("missing", [False, True])
def test_moves_gain_at_least_what_they_say(*, missing: bool) -> None:
    rows, _ = heavy(6, n=500, k=6)
    rows = with_holes(rows, 4, share=0.1) if missing else rows
    found = sb.fit(
        sb.Mixture(sb.StudentT(covariance="diagonal")),
        rows,
        sb.Memoized(max_passes=60, moves=MOVES),
        progress=False,
        seed=3,
        missing="marginalize" if missing else "error",
    )
    records = list(found.history)
    assert any(report.accepted for record in records for report in record.moves)
    for before, after in pairwise(records):
        assert after.objective >= before.objective - 1e-7 * abs(before.objective)


def test_predictive_densities_have_mass_one_and_their_quantiles() -> None:
    rows, _ = heavy(5, n=300, k=2, apart=12.0)
    fit = sb.fit(sb.Mixture(sb.StudentT(covariance="diagonal")), rows, progress=False)
    density = fit.marginal([0])
    at = np.sinh(np.linspace(-14, 14, 40_001))
    mass = integrate.cumulative_trapezoid(
        np.exp(density.log_density(at[:, None])) * np.cosh(np.arcsinh(at)), np.arcsinh(at)
    )
    assert mass[-1] == pytest.approx(1.0, abs=1e-4)
    drawn = fit.sample(40_000, seed=1)
    assert stats.kstest(np.interp(drawn[:, 0], at[1:], mass), "uniform").pvalue > 1e-4
    whole = fit.log_predictive(rows)
    np.testing.assert_allclose(fit.marginal([0, 1]).log_density(rows), whole, atol=1e-6)
    first, second = rows[7]
    given_first = fit.conditional({0: first}).log_density([[second]])[0]
    assert density.log_density([[first]])[0] + given_first == pytest.approx(whole[7], abs=1e-6)
    # The columns of a row share its scale: far out in one, the other is wider.
    near, far = (fit.conditional({0: first}).log_density([[second + 30.0]])[0] for first in (first, first + 30.0))
    assert far > near


def test_densities_of_rows_with_holes_are_marginals() -> None:
    rows, _ = heavy(7, n=200, d=3, k=2, apart=12.0)
    own = sb.Mixture(sb.StudentT(3.0, covariance="diagonal"))
    fit = sb.fit(own, with_holes(rows, 5), progress=False, missing="marginalize")
    holes = rows[:20].copy()
    holes[:, 1] = np.nan
    expected = fit.marginal([0, 2]).log_density(rows[:20][:, [0, 2]])
    np.testing.assert_allclose(fit.log_predictive(holes), expected, rtol=1e-7)


def test_a_missing_value_is_less_certain_in_a_row_far_out() -> None:
    rows = with_holes(heavy(7, n=200, d=3, k=1)[0], 5)
    fit = fitted(rows, likelihood(3), 30, 1)
    first, second, third = fit.components["mean"][0]
    asked = [[first, np.nan, third], [first, np.nan, third + 9.0]]
    means, variances = fit.impute(asked, return_variance=True)
    np.testing.assert_allclose(means[:, 1], second, rtol=1e-9)
    assert variances[1, 1] > 5 * variances[0, 1]
    drawn = np.array([fit.sample_missing(asked, seed=seed)[1, 1] for seed in range(300)])
    assert np.abs(drawn - second).mean() > 1.5


def test_weights_are_rows() -> None:
    rows, labels = heavy(8, n=60, k=2)
    rows = with_holes(rows, 6)
    twice = fitted(np.vstack([rows, rows]), likelihood(2), 10, 2, init=np.concatenate([labels, labels]))
    weighted = fitted(rows, likelihood(2), 10, 2, init=labels, sample_weight=np.full(60, 2.0))
    assert weighted.elbo == pytest.approx(twice.elbo, rel=1e-11)


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


def test_the_unit_of_a_column_does_not_matter() -> None:
    rows, labels = heavy(10, n=150, d=3, k=3)
    units = np.array([1e-3, 1.0, 1e4])
    plain, scaled = (
        sb.fit(sb.Mixture(sb.StudentT(covariance="diagonal")), each, progress=False, init=labels)
        for each in (rows, rows * units + [5, -3, 1e5])
    )
    assert scaled.elbo == pytest.approx(plain.elbo - 150 * np.log(units).sum(), abs=1e-3)
    np.testing.assert_allclose(scaled.components["scale"], plain.components["scale"] * units**2, rtol=1e-3)
    np.testing.assert_allclose(
        scaled.point_estimates["variance"], plain.point_estimates["variance"] * units**2, rtol=1e-3
    )


def test_results_are_saved_and_read(tmp_path: Path) -> None:
    rows, _ = heavy(11, n=100, d=3, k=2)
    rows = with_holes(rows, 7)
    fit = sb.fit(sb.Mixture(sb.StudentT(covariance="diagonal")), rows, progress=False, missing="marginalize")
    fit.save(tmp_path / "fit")
    again = sb.load(tmp_path / "fit")
    assert again.model == fit.model
    np.testing.assert_array_equal(again.log_predictive(rows), fit.log_predictive(rows))


@pytest.mark.parametrize("sampler", [sb.BlockedGibbs(truncation=8), sb.Slice()])
def test_conditional_samplers_find_the_clusters(sampler: Any) -> None:
    rows, labels = heavy(12, n=150, d=3, k=3, apart=15.0)
    trace = sb.sample(
        sb.Mixture(sb.StudentT(3.0, covariance="diagonal")),
        rows,
        sampler,
        init="fit",
        draws=40,
        warmup=20,
        chains=1,
        seed=1,
        progress=False,
    )
    assert adjusted_rand_score(labels, trace.point_estimate().labels) > 0.95


def test_what_does_not_go_together_is_refused() -> None:
    for scale in (np.eye(3), 2.0, [1.0, -1.0, 1.0]):
        with pytest.raises(sb.InvalidArgument, match="scale"):
            sb.StudentT(covariance="diagonal", scale=scale)
    with pytest.raises(sb.InvalidArgument, match="scale"):
        sb.StudentT(scale=[1.0, 2.0])
    with pytest.raises(sb.InvalidArgument, match="covariance"):
        sb.StudentT(covariance="spherical")  # type: ignore[arg-type]
