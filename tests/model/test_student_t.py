"""Rows with heavy tails against their oracle, and what users would see."""

from itertools import pairwise
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from scipy import integrate, stats
from sklearn.metrics import adjusted_rand_score

import stickbreak as sb
from oracles import models, tails
from oracles.models import Array
from tailed import heavy

MOVES = (sb.Birth(), sb.Merge(), sb.Delete(), sb.Split())
DENSE = {"moves": (), "sparsity": None, "margin": None, "tol": 0}


def likelihood(d: int, tail_dof: float = 3.0) -> sb.StudentT:
    scale = np.eye(d) * 2 + 0.3
    return sb.StudentT(tail_dof, mean=np.full(d, 0.5), mean_precision=0.2, dof=d + 2.5, scale=scale, resolution=0)


def oracle_of(filled: Any) -> models.NormalWishart:
    return models.NormalWishart(filled.mean, filled.mean_precision, filled.dof, filled.scale)


def fitted(rows: Array, own: Any, passes: int, k: int, **options: Any) -> sb.Fit:
    # The order of components does not matter to a finite prior, whose weight is zero for one component.
    model = sb.Mixture(own, process=sb.FiniteDirichlet(k, concentration=1.3))
    return sb.fit(model, rows, sb.Full(max_passes=passes, **DENSE), progress=False, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("d", "tail_dof"), [(1, 1.0), (2, 3.0), (3, 40.0), (9, 2.5)])
def test_passes_are_those_of_the_oracle(d: int, tail_dof: float) -> None:
    rows, _ = heavy(0, n=60, d=d, k=3, apart=2.0)
    labels = np.arange(60) % 3
    own, process = likelihood(d, tail_dof), models.FiniteSymmetricDirichlet(1.3)
    prior = oracle_of(own)
    components = [tails.sums(prior, rows, (labels == k) * 1.0, *tails.before(tail_dof, 60)) for k in range(3)]
    fits = [fitted(rows, own, passes, 3, init=labels) for passes in range(4)]
    for fit in fits:
        assert fit.elbo == pytest.approx(tails.bound(prior, components, tail_dof, process), rel=1e-10)
        np.testing.assert_allclose(fit.counts, [one.count for one in components], rtol=1e-9)
        predictives = [
            tails.log_predictive(prior, prior.prior_natural + one.natural, rows, tail_dof) for one in components
        ]
        counts = np.array([one.count for one in components])
        densities = np.exp(np.column_stack(predictives)) @ process.expected_weights(process.update(counts))[:3]
        np.testing.assert_allclose(fit.log_predictive(rows), np.log(densities), rtol=1e-7, atol=1e-7)
        components, _ = tails.step(prior, components, rows, tail_dof, process)


@given(st.integers(0, 2**32 - 1), st.floats(1.0, 200.0), st.integers(1, 4), st.integers(1, 4))
def test_the_bound_never_falls_while_everything_is_estimated(seed: int, tail_dof: float, d: int, k: int) -> None:
    rows, _ = heavy(seed, n=70, d=d, k=k, apart=3.0, tail_dof=max(tail_dof, 1.0))
    fit = sb.fit(
        sb.Mixture(sb.StudentT()),
        rows,
        sb.Full(max_passes=12, **DENSE),
        n_components=4,
        seed=1,
        progress=False,  # type: ignore[arg-type]
    )
    objectives = [record.objective for record in fit.history]
    assert all(after >= before - 1e-9 * (1 + abs(before)) for before, after in pairwise(objectives))
    assert 1.0 <= fit.model.likelihood.tail_dof <= 1000.0


@pytest.mark.parametrize("tail_dof", [1.5, 4.0, 20.0])
def test_the_tail_is_found(tail_dof: float) -> None:
    rows, _ = heavy(1, n=6000, k=1, tail_dof=tail_dof)
    found = sb.fit(sb.Mixture(sb.StudentT()), rows, sb.Memoized(moves=()), n_components=1, progress=False)
    assert found.model.likelihood.tail_dof == pytest.approx(tail_dof, rel=0.15)


def test_an_estimate_is_the_best_tail_of_the_sums() -> None:
    rows, labels = heavy(2, n=200, k=3)
    own = sb.StudentT(mean=[0, 0], mean_precision=0.2, dof=5, scale=np.eye(2), resolution=0)
    one, two = (fitted(rows, own, passes, 3, init=labels) for passes in (1, 60))
    # Estimates settle where the oracle's best tail for the sums of the last pass is the tail itself.
    prior, f = oracle_of(two.model.likelihood), two.model.likelihood.tail_dof
    parameters = [{name: values[k] for name, values in two.components.items()} for k in range(3)]
    statistics = [prior.natural(**each) - prior.prior_natural for each in parameters]
    components = [tails.Sums(natural[0], natural, 0.0, 0.0, 0.0) for natural in statistics]
    again, _ = tails.step(prior, components, rows, f, models.FiniteSymmetricDirichlet(1.3))
    assert tails.best_tail(again) == pytest.approx(f, rel=2e-3)
    assert one.model.likelihood.tail_dof != f


def test_light_tails_are_gaussian() -> None:
    """The bound is that of `Gaussian` plus a term in 1 / f, which two tails cancel."""
    rows, labels = heavy(3, n=90, k=3, tail_dof=1e6)
    values = {"mean": [0.5, 0.5], "mean_precision": 0.2, "dof": 5.0, "scale": np.eye(2), "resolution": 0}
    normal = fitted(rows, sb.Gaussian(**values), 30, 3, init=labels)  # type: ignore[arg-type]
    near, far = (
        fitted(rows, sb.StudentT(f, **values), 30, 3, init=labels)  # type: ignore[arg-type]
        for f in (500.0, 1000.0)
    )
    assert abs(far.elbo - normal.elbo) < 0.3
    assert 2 * far.elbo - near.elbo == pytest.approx(normal.elbo, abs=2e-3)
    np.testing.assert_allclose(far.log_predictive(rows), normal.log_predictive(rows), atol=0.02)


@pytest.mark.parametrize("d", [2, 8])
@pytest.mark.parametrize("seed", range(3))
def test_clusters_with_tails_stay_whole(seed: int, d: int) -> None:
    rows, labels = heavy(seed, d=d)
    fit = sb.fit(sb.Mixture(sb.StudentT()), rows, progress=False, seed=seed)
    assert fit.n_occupied == 10
    assert adjusted_rand_score(labels, fit.predict(rows)) > 0.95
    # Without tails, clusters break.
    assert sb.fit(sb.Mixture(sb.Gaussian()), rows, progress=False, seed=seed).n_occupied > 11


def test_normal_clusters_are_those_of_a_gaussian() -> None:
    rows, labels = heavy(4, d=4, tail_dof=1e9)
    ours, theirs = (sb.fit(sb.Mixture(kind()), rows, progress=False) for kind in (sb.StudentT, sb.Gaussian))
    assert ours.n_occupied == theirs.n_occupied == 10
    assert ours.model.likelihood.tail_dof > 50
    assert adjusted_rand_score(labels, ours.predict(rows)) > 0.99


def test_predictive_densities_have_mass_one_and_their_quantiles() -> None:
    rows, _ = heavy(5, n=300, k=2, apart=12.0)
    fit = sb.fit(sb.Mixture(sb.StudentT()), rows, progress=False)
    density = fit.marginal([0])
    at = np.sinh(np.linspace(-14, 14, 40_001))
    mass = integrate.cumulative_trapezoid(
        np.exp(density.log_density(at[:, None])) * np.cosh(np.arcsinh(at)), np.arcsinh(at)
    )
    assert mass[-1] == pytest.approx(1.0, abs=1e-4)
    drawn = fit.sample(40_000, seed=1)[:, 0]
    share = np.interp(drawn, at[1:], mass)
    assert stats.kstest(share, "uniform").pvalue > 1e-4
    whole = fit.log_predictive(rows)
    np.testing.assert_allclose(fit.marginal([0, 1]).log_density(rows), whole, atol=1e-6)
    first, second = rows[7]
    of_first = density.log_density([[first]])[0]
    given_first = fit.conditional({0: first}).log_density([[second]])[0]
    assert of_first + given_first == pytest.approx(whole[7], abs=1e-6)


@pytest.mark.parametrize("algorithm", [sb.Full, sb.Memoized])
def test_moves_gain_at_least_what_they_say(algorithm: Any) -> None:
    """Sums of merged components are a lower bound, so the next pass finds at least the bound that a pass ended with."""
    rows, _ = heavy(6, n=500, k=6)
    found = sb.fit(sb.Mixture(sb.StudentT()), rows, algorithm(max_passes=60, moves=MOVES), progress=False, seed=3)
    records = list(found.history)
    assert any(report.accepted for record in records for report in record.moves)
    for before, after in pairwise(records):
        assert after.objective >= before.objective - 1e-7 * abs(before.objective)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_a_row_given_to_a_component_that_it_was_under_loses_entropy(covariance: Any) -> None:
    rows = np.random.default_rng(0).standard_t(3, (80, 2))
    model = sb.Mixture(sb.StudentT(3.0, covariance=covariance))
    halves = np.arange(80) % 2
    fit = sb.fit(model, rows, sb.Full(max_passes=6, moves=(sb.Delete(),)), init=halves, progress=False)
    plain = sb.fit(model, rows, sb.Full(max_passes=1, moves=()), init=halves, progress=False)
    # Every row was under both halves, nearly in equal parts.
    assert np.all(plain.predict_proba(rows).max(axis=1) < 0.9)
    assert fit.n_components == 1
    assert fit.history[0].moves[0].accepted == 1
    values = [record.objective for record in fit.history]
    assert all(after >= before - 1e-9 * abs(before) for before, after in pairwise(values))


def test_sequential_and_other_starts_run() -> None:
    rows, labels = heavy(7, n=120, k=3)
    for init in ("kmeans++", "random", "sequential", labels):
        fit = sb.fit(sb.Mixture(sb.StudentT()), rows, n_components=4, init=init, progress=False)
        assert np.isfinite(fit.elbo)


def test_weights_are_rows() -> None:
    rows, labels = heavy(8, n=60, k=2)
    own = likelihood(2)
    twice = fitted(np.vstack([rows, rows]), own, 10, 2, init=np.concatenate([labels, labels]))
    weighted = fitted(rows, own, 10, 2, init=labels, sample_weight=np.full(60, 2.0))
    assert weighted.elbo == pytest.approx(twice.elbo, rel=1e-11)


def test_columns_sum_their_blocks() -> None:
    """Blocks of which one has tails: the bound of one component is the sum of theirs, also where rows lack a block."""
    rows, _ = heavy(9, n=150, d=3, k=1)
    rows[::7, 2] = np.nan
    tail, normal = likelihood(2), sb.Gaussian(mean=[0], mean_precision=0.1, dof=3, scale=[[2.0]], resolution=0)
    both = sb.Columns({(0, 1): tail, (2,): normal})
    options: dict[str, Any] = {"missing": "marginalize"}
    together = fitted(rows, both, 8, 1, **options).elbo
    alone = fitted(rows[:, :2], tail, 8, 1).elbo + fitted(rows[:, 2:][~np.isnan(rows[:, 2])], normal, 8, 1).elbo
    assert together == pytest.approx(alone, rel=1e-10)


@pytest.mark.parametrize("sampler", [sb.CollapsedGibbs(), sb.SplitMerge(), sb.TreeGuided()])
def test_samplers_that_need_a_closed_marginal_refuse(sampler: Any) -> None:
    with pytest.raises(
        sb.NotSupported, match=r"StudentT .*no closed marginal likelihood; use BlockedGibbs\(\) or Slice\(\)"
    ):
        sb.sample(sb.Mixture(sb.StudentT()), np.zeros((9, 2)), sampler)


def test_what_needs_whole_rows_is_refused() -> None:
    rows, model = heavy(10, n=50, k=2)[0], sb.Mixture(sb.StudentT())
    with pytest.raises(sb.NotSupported, match="no closed marginal likelihood"):
        sb.hierarchy(model, rows)
    with pytest.raises(sb.NotSupported, match="a tree over StudentT"):
        sb.fit(model, rows, sb.Memoized(units=sb.KdTree()))
    for objective in ("map", "ml"):
        with pytest.raises(sb.NotSupported, match=f'objective="{objective}" with StudentT'):
            sb.fit(model, rows, sb.Full(objective=objective), n_components=2)  # type: ignore[arg-type]
    rows[0, 0] = np.nan
    with pytest.raises(sb.InvalidArgument, match=r'only fit takes missing values, with missing="marginalize"$'):
        sb.sample(model, rows, sb.BlockedGibbs())
    with pytest.raises(sb.InvalidArgument, match="tail_dof"):
        sb.StudentT(tail_dof=np.nan)
    for value in (0.5, 1001.0, 0.0, -3.0):
        with pytest.raises(sb.InvalidArgument, match="tail_dof must be a number from 1 to 1000"):
            sb.StudentT(tail_dof=value)
    with pytest.raises(sb.InvalidArgument, match="prior must be 'rule' or None, but it is 'x'"):
        sb.StudentT(prior="x")  # type: ignore[arg-type]


def test_a_trace_says_what_it_cannot_predict() -> None:
    rows = heavy(11, n=40, k=2)[0]
    trace = sb.sample(sb.Mixture(sb.StudentT()), rows, sb.BlockedGibbs(), draws=5, warmup=5, progress=False)
    for method in ("predict", "log_predictive"):
        with pytest.raises(sb.NotSupported) as caught:
            getattr(trace, method)(rows)
        expected = (
            f"Trace.{method} with StudentT is not supported: it has no closed marginal likelihood; use Trace.density"
        )
        assert str(caught.value) == expected
    assert np.isfinite(trace.density(rows).mean).all()


def test_advice_names_the_likelihood() -> None:
    rows = np.round(5 * heavy(12, n=80, k=1)[0])
    fit = sb.fit(sb.Mixture(sb.StudentT()), rows)
    (found,) = (each for each in fit.advice() if each.kind == "whole_numbers")
    assert "hold whole numbers, which StudentT takes for values rounded to their steps" in found.text
