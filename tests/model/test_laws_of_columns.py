"""Laws of blocks of columns in rows that lack whole blocks and single values: mathematics 7 and 7.1.

The laws of complete rows and of single missing values are in `laws` and in `run/test_missing_values`, where blocks of
columns are two of the kinds.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_columns import whole_case

import stickbreak as sb
from cases import START, Case, fit_from, flat, passes, replaced, visible_bits
from oracles.models import Array
from stickbreak.testing.local_step import summary_of

# Likelihoods of the other block that leave out single values.
SECOND = ["negative_binomial", "poisson", "categorical", "bernoulli", "diagonal", "known_covariance"]

seeds = st.integers(0, 2**32 - 1)
seconds = st.sampled_from(SECOND)


def fit_holes(case: Case, algorithm: Any = None, **options: Any) -> sb.Fit:
    return fit_from(case, START if algorithm is None else algorithm, missing="marginalize", **options)


def weighted(case: Case, seed: int) -> Case:
    weights = np.random.default_rng(seed).choice([0.5, 1.0, 2.0, 3.25], size=len(case.rows))
    return replaced(case, weights=weights)


def assert_same(one: sb.Fit, other: sb.Fit) -> None:
    """Equal up to the order of sums."""
    assert other.elbo == pytest.approx(one.elbo, rel=1e-9)
    np.testing.assert_allclose(other.counts, one.counts, rtol=1e-7, atol=1e-9)
    for name, values in of_blocks(one).items():
        np.testing.assert_allclose(of_blocks(other)[name], values, rtol=1e-6, atol=1e-7)


def of_blocks(fit: sb.Fit) -> dict[str, Any]:
    return flat(fit.components)


@given(seeds, seconds, st.booleans())
@settings(max_examples=12)
def test_one_batch_is_full(seed: int, second: str, has_weights: bool) -> None:
    """Bit for bit."""
    case = whole_case(seed, second)
    if has_weights:
        case = weighted(case, seed)
    batch = sb.Memoized(batches=1, sparsity=2, margin=None, max_passes=3, tol=0.0)
    bits = [visible_bits(fit_holes(case, algorithm), case.rows) for algorithm in (passes(3, 2), batch)]
    assert bits[0] == bits[1]


@given(seeds, seconds)
@settings(max_examples=12)
def test_all_components_is_dense(seed: int, second: str) -> None:
    """Bit for bit."""
    case = whole_case(seed, second)
    dense, sparse = (fit_holes(case, passes(3, sparsity)) for sparsity in (None, case.n_components))
    assert visible_bits(sparse, case.rows) == visible_bits(dense, case.rows)


@given(seeds, seconds, st.sampled_from([None, 1, 2]), st.integers(2, 5))
@settings(max_examples=12)
def test_summaries_of_batches_add(seed: int, second: str, sparsity: int | None, n_batches: int) -> None:
    case = weighted(whole_case(seed, second), seed)
    fit = fit_holes(case)
    whole = summary_of(fit, case.rows, case.weights, sparsity)
    cuts = zip(np.array_split(case.rows, n_batches), np.array_split(case.weights, n_batches), strict=True)
    parts = [summary_of(fit, rows, weights, sparsity) for rows, weights in cuts]
    for name, values in whole.items():
        np.testing.assert_allclose(sum(part[name] for part in parts), values, rtol=1e-9, atol=1e-9)


@given(seeds, seconds, st.sampled_from([None, 2]))
@settings(max_examples=12)
def test_weight_two_is_two_rows(seed: int, second: str, sparsity: int | None) -> None:
    case = weighted(whole_case(seed, second), seed)
    doubled = replaced(case, weights=2.0 * case.weights)
    twice = replaced(
        case,
        rows=np.repeat(case.rows, 2, axis=0),
        responsibilities=np.repeat(case.responsibilities, 2, axis=0),
        weights=np.repeat(case.weights, 2),
    )
    for algorithm in (START, passes(2, sparsity)):
        assert_same(fit_holes(doubled, algorithm), fit_holes(twice, algorithm))


@given(seeds)
def test_a_block_without_missing_values_of_its_own_counts_weights(seed: int) -> None:
    """Rows either have it or lack it; the others count by their weights."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=40)
    rows = np.column_stack([rng.normal(4.0 * labels[:, None], 1.0, (40, 2)), rng.poisson(2.0 + 5.0 * labels)])
    rows[rng.random(40) < 0.3, :2] = np.nan
    likelihood = sb.Columns({(0, 1): sb.SphericalGaussian(base="product"), (2,): sb.Poisson()})
    responsibilities, weights = rng.dirichlet([1.0, 1.0], 40), rng.choice([0.5, 1.0, 3.25], 40)
    options: dict[str, Any] = {"missing": "marginalize", "progress": False, "threads": 1}
    once = sb.fit(sb.Mixture(likelihood), rows, START, init=responsibilities, sample_weight=2.0 * weights, **options)
    twice = sb.fit(
        once.model,
        np.repeat(rows, 2, axis=0),
        START,
        init=np.repeat(responsibilities, 2, axis=0),
        sample_weight=np.repeat(weights, 2),
        **options,
    )
    assert_same(once, twice)


@given(seeds, seconds)
def test_the_order_of_blocks_changes_nothing(seed: int, second: str) -> None:
    case = weighted(whole_case(seed, second), seed)
    blocks = list(case.model.likelihood.blocks.items())
    turned = sb.Mixture(likelihood=sb.Columns(dict(reversed(blocks))), process=case.model.process)
    assert_same(fit_holes(case, passes(2, 2)), fit_holes(replaced(case, model=turned), passes(2, 2)))


@given(seeds, seconds)
def test_what_lacks_every_block_but_one_is_of_that_block(seed: int, second: str) -> None:
    """A row without one block has the density of a row of the other one alone."""
    case = whole_case(seed, second)
    fit = fit_holes(case)
    rows = case.rows[np.isfinite(case.rows).all(1)][:5]
    for block, _ in case.model.likelihood._positions():
        absent = rows.copy()
        absent[:, [column for column in range(4) if column not in block]] = np.nan
        expected = fit.marginal(block).log_density(rows[:, list(block)])
        np.testing.assert_allclose(fit.log_predictive(absent), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("second", ["negative_binomial", "categorical"])
@pytest.mark.parametrize("batches", [1, 3])
@pytest.mark.one_in(2)
def test_threads_change_no_bit(second: str, batches: int, dtype: type) -> None:
    """Several threads are busy only with thousands of rows."""
    case = whole_case(71, second)
    rng = np.random.default_rng(72)
    rows = case.rows[rng.integers(len(case.rows), size=3000)].astype(dtype)
    weights = rng.uniform(0.5, 2.0, len(rows))
    algorithm = sb.Memoized(batches=batches, sparsity=2, max_passes=3, tol=0.0)
    options: dict[str, Any] = {"n_components": 6, "sample_weight": weights, "missing": "marginalize", "seed": 3}
    fits = [sb.fit(case.model, rows, algorithm, threads=threads, progress=False, **options) for threads in (1, 3)]
    bits = [visible_bits(fit, rows) for fit in fits]
    assert bits[0] == bits[1]
    holes = rows[~np.isfinite(rows).all(1)]
    for threads in (1, 3):
        np.testing.assert_array_equal(fits[0].log_predictive(holes, threads=threads), fits[0].log_predictive(holes))


class Crash(BaseException):
    """Ends a fit from a callback, so that only its checkpoint remains."""


@given(seeds, seconds, st.integers(1, 4), st.booleans())
@settings(max_examples=6)
def test_a_crashed_fit_goes_on(
    tmp_path_factory: pytest.TempPathFactory, seed: int, second: str, n_passes: int, searches: bool
) -> None:
    """From its checkpoint to the same bits, with moves and without."""
    case = weighted(whole_case(seed, second), seed)
    moves = (sb.Birth(), sb.Merge(), sb.Delete()) if searches else ()
    algorithm = sb.Memoized(batches=3, sparsity=2, moves=moves, max_passes=5, tol=0.0)
    options: dict[str, Any] = {"sample_weight": case.weights, "missing": "marginalize", "n_components": 4, "seed": 5}

    def crash(record: sb.Record) -> None:
        if record.index + 1 == n_passes:
            raise Crash

    def fit(**more: Any) -> sb.Fit:
        return sb.fit(case.model, case.rows, algorithm, progress=False, **options, **more)

    folder: Path = tmp_path_factory.mktemp("checkpoints")
    checkpoint = sb.Checkpoint(folder / "fit.checkpoint", every_seconds=0)
    whole = fit()
    with pytest.raises(Crash):
        fit(checkpoint=checkpoint, callbacks=[crash])
    seen: list[int] = []
    resumed = fit(checkpoint=checkpoint, callbacks=[lambda record: seen.append(record.index)])
    assert seen[0] == n_passes
    assert visible_bits(resumed, case.rows) == visible_bits(whole, case.rows)
    assert [record.elbo for record in resumed.history] == [record.elbo for record in whole.history]


# Base measures and starts


def table(n: int = 300) -> Array:
    """Return amounts, overdispersed counts of two kinds, other counts and codes."""
    rng = np.random.default_rng(73)
    amounts = rng.normal([0.0, 10.0], [1.0, 3.0], (n, 2))
    counts = [rng.negative_binomial(5, 0.5, n), rng.negative_binomial(1, 0.1, n), rng.poisson(3.0, n)]
    return np.column_stack([amounts[:, 0], *counts, rng.integers(3, size=n), amounts[:, 1]]).astype(float)


# Two blocks of the same likelihood, and columns in another order than in the rows.
ESTIMATED = {(5, 0): sb.Gaussian(), (2,): sb.NegativeBinomial(), (1,): sb.NegativeBinomial()}
ESTIMATED |= {(3,): sb.Poisson(), (4,): sb.Categorical()}


@pytest.mark.parametrize("missing", [False, True])
def test_each_block_learns_what_it_learns_alone(missing: bool) -> None:
    """With one component, base measures of blocks have nothing to do with each other."""
    rows, together = table(), {}
    options: dict[str, Any] = {"algorithm": sb.Full(max_passes=40, tol=0), "n_components": 1, "progress": False}
    if missing:
        together["missing"] = "marginalize"
        rows[np.ix_(np.arange(300) % 4 == 0, [0, 5])] = np.nan
        for column, step in ((1, 5), (2, 3), (4, 7)):
            rows[2::step, column] = np.nan
    fit = sb.fit(sb.Mixture(likelihood=sb.Columns(ESTIMATED)), rows, **options, **together)
    learned = dict(fit.model.likelihood._positions())
    for block, likelihood in ESTIMATED.items():
        own = rows[:, list(block)]
        own = own[np.isfinite(own).all(1)]
        alone = sb.fit(sb.Mixture(likelihood=likelihood), own, **options).model.likelihood
        for name, value in alone._parameters().items():
            found = learned[block]._parameters()[name]
            if value is None or isinstance(value, str):
                assert found == value
                continue
            np.testing.assert_allclose(np.asarray(found), np.asarray(value), rtol=1e-5, err_msg=f"{block} {name}")
    dispersions = [learned[block].dispersion[0] for block in ((2,), (1,))]
    assert dispersions[0] < 2.0 < dispersions[1]


def test_a_start_from_a_fit_keeps_its_components_wherever_the_rows_lie() -> None:
    """Statistics are kept relative to the means of the rows, block by block."""
    rng = np.random.default_rng(74)
    cluster = np.arange(200) % 2
    rows = np.column_stack(
        [rng.normal(5.0 * cluster + 100.0), rng.poisson(3 + 5 * cluster), rng.normal(20.0 - 3.0 * cluster)]
    )
    rows = np.column_stack([rows, rng.normal(4.0 * cluster - 7.0)])
    likelihood = sb.Columns({(1,): sb.Poisson(), (3, 2): sb.Gaussian(), (0,): sb.DiagonalGaussian()})
    fit = sb.fit(sb.Mixture(likelihood=likelihood), rows, passes(3), init=cluster, progress=False)
    away = np.array([50.0, 0.0, -30.0, 11.0])
    other = sb.fit(fit.model, rows[:150] + away, START, init=fit, progress=False)
    for name, values in of_blocks(fit).items():
        np.testing.assert_allclose(of_blocks(other)[name], values, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("second", SECOND)
def test_updates_count_the_rows_of_each_block(second: str) -> None:
    cases = [whole_case(seed, second) for seed in (75, 76)]
    updated = fit_holes(cases[0], passes(2)).update(cases[1].rows)
    dof = updated.components["0, 2"]["dof"] - cases[0].model.likelihood.blocks[(0, 2)].dof
    assert dof.sum() == pytest.approx(sum(np.isfinite(case.rows[:, 0]).sum() for case in cases))
    assert updated.counts.sum() == pytest.approx(120.0)
