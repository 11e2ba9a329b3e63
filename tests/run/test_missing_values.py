"""Missing entries, `missing="marginalize"`: mathematics 7.1, number by number, and the oracle.

Only observed entries enter a density; see `oracles/missing.py`. Imputation has a file of its own.
"""

import dataclasses
import itertools
import warnings
from contextlib import nullcontext
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln, logsumexp

import stickbreak as sb
from cases import (
    START,
    Case,
    fit_from,
    globals_of,
    make_case,
    passes,
    replaced,
    separated_mixture,
    visible_bits,
)
from kinds import (
    LIKELIHOODS,
    MARGINALISING,
    OF_COLUMNS,
    OF_SEPARATE_COLUMNS,
    every_likelihood,
    every_marginalising,
    every_marginalising_one,
    every_process,
    public,
)
from oracles import engines, evidence
from oracles import variational as oracle
from oracles.missing import MissingLikelihood
from oracles.models import Array
from oracles.quadrature import whole_line
from stickbreak.testing.local_step import summary_of


def fit_holes(case: Case, algorithm: Any = None, **options: Any) -> sb.Fit:
    """Fit a case whose rows have missing values."""
    return fit_from(case, START if algorithm is None else algorithm, **{"missing": "marginalize"} | options)


def hole_case(seed: int, likelihood: str, process: str = "nested", **options: Any) -> Case:
    return make_case(seed, likelihood=likelihood, process=process, with_missing=True, **options)


# Against the oracle


@every_marginalising
@every_process
def test_one_global_step(likelihood: str, process: str) -> None:
    case = hole_case(1, likelihood, process, weighted=True)
    fit = fit_holes(case)
    start = engines.with_tail(case.responsibilities, case.mixture, case.n_components)
    state = oracle.global_step(case.rows, start, case.mixture, case.weights)
    shown = globals_of(fit, case.weights.sum(), with_missing=True)
    for natural, expected in zip(shown.naturals, state.naturals, strict=True):
        np.testing.assert_allclose(natural, expected, rtol=1e-8, atol=1e-8)
    expected = oracle.collapsed_elbo(case.rows, start, case.mixture, case.weights)
    assert fit.elbo == pytest.approx(expected, rel=1e-9, abs=1e-9 * case.scale)
    np.testing.assert_allclose(fit.counts, case.weights @ case.responsibilities, rtol=1e-12)


@pytest.mark.parametrize("likelihood", [sb.SphericalGaussian, sb.DiagonalGaussian])
def test_values_that_are_there_are_rounded(likelihood: Any) -> None:
    """One component in closed form: each value that is there, and no other, adds a twelfth of its squared step."""
    rng = np.random.default_rng(7)
    steps, n = np.array([1.0, 0.5, 4.0]), 200
    rows = np.round(rng.normal(3.0, 4.0, size=(n, 3)) / steps) * steps
    rows[rng.random((n, 3)) < [0.1, 0.4, 0.7]] = np.nan
    rows = rows[~np.isnan(rows).all(axis=1)]
    own = likelihood(mean=np.zeros(3), mean_precision=0.5, shape=3.0, rate=2.0, resolution=steps)
    model = sb.Mixture(likelihood=own, process=sb.FiniteDirichlet(1))
    fit = sb.fit(model, rows, sb.Full(max_passes=2, tol=0.0), missing="marginalize", progress=False)
    counts, means = (~np.isnan(rows)).sum(0), np.nanmean(rows, axis=0)
    squares = np.nansum((rows - means) ** 2, axis=0) + 0.5 * counts / (0.5 + counts) * means**2 + counts * steps**2 / 12
    by_column = likelihood is sb.DiagonalGaussian
    shape = 3.0 + counts / 2 if by_column else 3.0 + counts.sum() / 2
    rate = 2.0 + squares / 2 if by_column else 2.0 + squares.sum() / 2
    np.testing.assert_allclose(fit.components["rate"][0], rate, rtol=1e-10)
    log_ratios = gammaln(shape) - gammaln(3.0) + 3.0 * np.log(2.0) - shape * np.log(rate)
    expected = np.sum(log_ratios) + 0.5 * (np.log(0.5 / (0.5 + counts)) - counts * np.log(2.0 * np.pi)).sum()
    assert fit.elbo == pytest.approx(expected, rel=1e-10)


@every_marginalising
@every_process
@pytest.mark.parametrize("sparsity", [1, 2, None])
@pytest.mark.one_in(3)
def test_pass_by_pass(likelihood: str, process: str, sparsity: int | None) -> None:
    case = hole_case(2, likelihood, process, n=90, weighted=True)
    trajectory = engines.fit_full(case.rows, case.responsibilities, case.mixture, 5, sparsity, case.weights)
    fit = fit_holes(case, passes(5, sparsity))
    bounds = [record.elbo for record in fit.history]
    np.testing.assert_allclose(bounds, [each.elbo for each in trajectory[1:]], rtol=1e-9, atol=1e-9 * case.scale)
    shown = globals_of(fit, case.weights.sum(), with_missing=True)
    for natural, expected in zip(shown.naturals, trajectory[-1].state.naturals, strict=True):
        np.testing.assert_allclose(natural, expected, rtol=1e-6, atol=1e-6)


@every_marginalising
@every_process
def test_predictions(likelihood: str, process: str) -> None:
    """`predict_proba`, `log_predictive` and `evaluate` of other rows with missing values than those of the fit."""
    case = hole_case(3, likelihood, process)
    fit = fit_holes(case, passes(2))
    state = globals_of(fit, case.weights.sum(), with_missing=True)
    rows = hole_case(4, likelihood, process, n=30).rows
    expected = oracle.local_step(rows, case.mixture, state)
    bound = oracle.general_elbo(rows, expected, case.mixture, state)
    if case.mixture.process.has_tail:
        expected = expected[:, :-1] / expected[:, :-1].sum(1, keepdims=True)
    np.testing.assert_allclose(fit.predict_proba(rows), expected, rtol=1e-7, atol=1e-11)
    np.testing.assert_array_equal(fit.predict(rows), fit.predict_proba(rows).argmax(1))
    scores = oracle.mixture_log_predictive(rows, case.mixture, state)
    np.testing.assert_allclose(fit.log_predictive(rows), scores, rtol=1e-8, atol=1e-8)
    assert fit.evaluate(rows) == pytest.approx(bound, rel=1e-8, abs=1e-8 * case.scale)


@every_marginalising
@every_process
@pytest.mark.one_in(3)
def test_evidence_of_what_was_seen_is_not_exceeded(likelihood: str, process: str) -> None:
    """The bound is one of the density of the observed entries."""
    case = hole_case(5, likelihood, process, n=6, dimension=2, n_components=3)
    exact = evidence.log_evidence(case.rows, case.mixture.likelihood, case.mixture.process, 3)
    for sparsity in (1, 2, None):
        fit = fit_holes(case, passes(30, sparsity))
        assert fit.elbo <= exact + 1e-9
        assert fit.evaluate(case.rows) <= exact + 1e-9
    assert fit.elbo > exact - 10.0


# 1: no missing values


@every_marginalising
@every_process
@pytest.mark.one_in(3)
def test_without_holes_nothing_changes(likelihood: str, process: str) -> None:
    case = make_case(6, likelihood=likelihood, process=process, weighted=True)
    for algorithm in (passes(4, 2), sb.Memoized(batches=3, sparsity=2, margin=None, max_passes=4, tol=0.0)):
        fit, other = fit_from(case, algorithm), fit_holes(case, algorithm)
        assert other.elbo == pytest.approx(fit.elbo, rel=1e-10, abs=1e-10 * case.scale)
        np.testing.assert_allclose(other.counts, fit.counts, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(other.predict_proba(case.rows), fit.predict_proba(case.rows), rtol=1e-7, atol=1e-10)
        np.testing.assert_allclose(other.log_predictive(case.rows), fit.log_predictive(case.rows), rtol=1e-9, atol=1e-9)


@every_marginalising
def test_what_is_behind_a_hole_does_not_matter(likelihood: str) -> None:
    """The bits of a NaN do not matter."""
    case = hole_case(7, likelihood)
    bits = case.rows.view(np.uint64).copy()
    absent = np.isnan(case.rows)
    bits[absent] = 0xFFF8_0000_0000_1234 + np.arange(absent.sum(), dtype=np.uint64)
    other = replaced(case, rows=bits.view(np.float64))
    assert np.isnan(other.rows[absent]).all()
    one, two = (fit_holes(each, passes(3)) for each in (case, other))
    assert visible_bits(one, case.rows) == visible_bits(two, other.rows)


# 2: empty rows


@every_marginalising
@every_process
def test_empty_rows_are_left_out(likelihood: str, process: str) -> None:
    """Empty rows are left out with a warning; their predictions follow from the weights alone."""
    case = hole_case(8, likelihood, process)
    empty = np.zeros(len(case.rows), bool)
    empty[[0, 17, 40]] = True
    rows = np.where(empty[:, None], np.nan, case.rows)
    kept = {"responsibilities": case.responsibilities[~empty], "weights": case.weights[~empty]}
    fit = fit_holes(replaced(case, rows=rows[~empty], **kept), passes(3))
    with pytest.warns(sb.EmptyRowsWarning):
        other = fit_holes(replaced(case, rows=rows), passes(3))
    assert other.elbo == pytest.approx(fit.elbo, rel=1e-10, abs=1e-10 * case.scale)
    np.testing.assert_allclose(other.counts, fit.counts, rtol=1e-8, atol=1e-10)
    mass = float((~empty).sum())
    log_weights = case.mixture.process.expected_log_weights(globals_of(other, mass, with_missing=True).eta)
    log_weights = log_weights[: other.n_components]
    expected = np.exp(log_weights - logsumexp(log_weights))
    np.testing.assert_allclose(other.predict_proba(rows[empty]), np.tile(expected, (3, 1)), rtol=1e-8)
    np.testing.assert_allclose(other.log_predictive(rows[empty]), 0.0, atol=1e-12)
    with pytest.warns(sb.EmptyRowsWarning, match="3 rows have no value at all and no part in the bound"):
        bound = other.evaluate(rows, sample_weight=case.weights)
    assert bound == pytest.approx(fit.evaluate(rows[~empty], sample_weight=case.weights[~empty]), rel=1e-12)
    assert bound >= other.elbo - 1e-9 * abs(other.elbo)


@every_marginalising
def test_nothing_but_empty_rows_is_refused(likelihood: str) -> None:
    case = hole_case(9, likelihood)
    rows = np.full_like(case.rows, np.nan)
    with pytest.raises(sb.InvalidArgument) as caught:
        fit_holes(replaced(case, rows=rows))
    assert caught.value.argument == "data"


# 3: empty columns


@every_marginalising_one
def test_empty_columns_change_nothing(likelihood: str) -> None:
    """The same bound and responsibilities; the column's parameters stay at the prior."""
    case = hole_case(10, likelihood, dimension=4)
    rows = np.where(np.arange(4) == 2, np.nan, case.rows)
    kept = [0, 1, 3]
    filled = np.isnan(rows).all(1)
    rows[filled, 0] = np.nanmax(rows[:, 0])  # no row is to be empty
    given_likelihood = case.model.likelihood
    fewer = type(given_likelihood)(
        **{name: shorter(name, value, kept) for name, value in given_likelihood._parameters().items()}
    )
    narrow = replaced(case, rows=rows[:, kept], model=sb.Mixture(likelihood=fewer, process=case.model.process))
    # A likelihood with one variance for all columns leaves out columns that do not vary.
    leaves_out = pytest.warns(sb.SupportWarning, match="column 2") if likelihood == "spherical" else nullcontext()
    with leaves_out:
        fit = fit_holes(replaced(case, rows=rows), passes(3))
    other = fit_holes(narrow, passes(3))
    assert fit.elbo == pytest.approx(other.elbo, rel=1e-10)
    np.testing.assert_allclose(fit.predict_proba(rows), other.predict_proba(rows[:, kept]), rtol=1e-8, atol=1e-11)
    if likelihood == "spherical":
        return
    reference = case.mixture.likelihood
    assert isinstance(reference, MissingLikelihood)
    prior = reference.of_column(reference.prior_natural, 2)
    for natural in globals_of(fit, with_missing=True).naturals:
        np.testing.assert_allclose(reference.of_column(natural, 2), prior, rtol=1e-9)


def shorter(name: str, value: Any, kept: list[int]) -> Any:
    """A parameter of fewer columns, or of columns in another order."""
    if np.ndim(value) < 2:
        return value[kept] if np.ndim(value) == 1 else value
    matrix, block = np.asarray(value), np.ix_(kept, kept)
    return matrix[block] if name == "covariance" else np.linalg.inv(np.linalg.inv(matrix)[block])


@every_marginalising_one
def test_a_column_missing_in_one_component_stays_at_its_prior(likelihood: str) -> None:
    case = hole_case(11, likelihood)
    labels = np.arange(len(case.rows)) % 2
    rows = case.rows.copy()
    rows[labels == 0, 1] = np.nan
    rows[np.isnan(rows).all(1), 0] = 1.0
    hard = replaced(case, rows=rows, responsibilities=np.eye(2)[labels])
    natural = globals_of(fit_holes(hard), with_missing=True).naturals[0]
    reference = case.mixture.likelihood
    assert isinstance(reference, MissingLikelihood)
    prior = reference.of_column(reference.prior_natural, 1)
    np.testing.assert_allclose(reference.of_column(natural, 1), prior, rtol=1e-9)


# 4: columns


@every_marginalising_one
def test_columns_in_another_order(likelihood: str) -> None:
    case = hole_case(12, likelihood)
    order, given_likelihood = [2, 0, 1], case.model.likelihood
    moved = type(given_likelihood)(
        **{name: shorter(name, value, order) for name, value in given_likelihood._parameters().items()}
    )
    other = replaced(case, rows=case.rows[:, order], model=sb.Mixture(likelihood=moved, process=case.model.process))
    fit, permuted = fit_holes(case, passes(3)), fit_holes(other, passes(3))
    assert permuted.elbo == pytest.approx(fit.elbo, rel=1e-10)
    np.testing.assert_allclose(permuted.predict_proba(other.rows), fit.predict_proba(case.rows), rtol=1e-8, atol=1e-11)


def test_units_of_columns() -> None:
    """The bound loses the logarithm of the unit for every number that was observed, and for no other."""
    case = hole_case(13, "diagonal", weighted=True)
    given_likelihood, unit, shift = case.model.likelihood, np.array([3.0, 0.2, 50.0]), np.array([10.0, -4.0, 0.0])
    moved = type(given_likelihood)(
        mean=given_likelihood.mean * unit + shift,
        mean_precision=given_likelihood.mean_precision,
        shape=given_likelihood.shape,
        rate=given_likelihood.rate * unit**2,
    )
    other = replaced(
        case, rows=case.rows * unit + shift, model=sb.Mixture(likelihood=moved, process=case.model.process)
    )
    fit, scaled = fit_holes(case, passes(3)), fit_holes(other, passes(3))
    observed = case.weights @ ~np.isnan(case.rows)
    assert scaled.elbo == pytest.approx(fit.elbo - observed @ np.log(unit), rel=1e-9)
    np.testing.assert_allclose(scaled.predict_proba(other.rows), fit.predict_proba(case.rows), rtol=1e-7, atol=1e-10)


# 5: one component


def alone(case: Case, rows: Array) -> float:
    """The bound of one component of a finite mixture: log m(X)."""
    model = sb.Mixture(likelihood=case.model.likelihood, process=sb.FiniteDirichlet(n_components=1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of empty rows
        fit = sb.fit(model, rows, START, init=np.zeros(len(rows), int), missing="marginalize", progress=False)
    return fit.elbo


@pytest.mark.parametrize("likelihood", OF_SEPARATE_COLUMNS)
def test_marginal_is_a_sum_over_columns(likelihood: str) -> None:
    case = hole_case(14, likelihood)
    parts = [alone(case, np.where(np.arange(3) == column, case.rows, np.nan)) for column in range(3)]
    assert alone(case, case.rows) == pytest.approx(sum(parts), rel=1e-10)


@pytest.mark.parametrize("likelihood", OF_COLUMNS)
def test_split_rows_are_joined_rows(likelihood: str) -> None:
    """In one component, two rows with different columns equal one row with both."""
    case = hole_case(15, likelihood)
    left = np.where(np.arange(3) < 2, case.rows, np.nan)
    right = np.where(np.arange(3) >= 2, case.rows, np.nan)
    assert alone(case, np.vstack([left, right])) == pytest.approx(alone(case, case.rows), rel=1e-10)


@every_marginalising
def test_marginal_is_a_product_of_predictives(likelihood: str) -> None:
    case = hole_case(16, likelihood, n=6)
    model = sb.Mixture(likelihood=case.model.likelihood, process=sb.FiniteDirichlet(n_components=1))

    def first(length: int) -> sb.Fit:
        present = (np.arange(6) < length).astype(float)
        start = np.zeros(6, int)
        return sb.fit(model, case.rows, START, init=start, sample_weight=present, missing="marginalize", progress=False)

    total = first(1).elbo + sum(first(k).log_predictive(case.rows[k : k + 1])[0] for k in range(1, 6))
    assert first(6).elbo == pytest.approx(total, rel=1e-10, abs=1e-10)


# 6: scores


@every_marginalising_one
def test_score_of_a_hole_is_the_integral_over_it(likelihood: str) -> None:
    case = hole_case(17, likelihood)
    if likelihood == "negative_binomial":
        # A prior with so many rows has no long tail.
        short = dataclasses.replace(case.model.likelihood, rate=40.0)
        case = dataclasses.replace(case, model=dataclasses.replace(case.model, likelihood=short))
    fit = fit_holes(case, passes(3))
    counts = (np.arange(4000.0), 1.0)
    grids = {"bernoulli": (np.arange(2.0), 1.0), "poisson": counts, "negative_binomial": counts}
    grid, step = grids.get(likelihood, whole_line())
    for row, column in itertools.product(case.rows[~np.isnan(case.rows).any(1)][:3], range(3)):
        if likelihood == "categorical":
            grid, step = np.arange(case.model.likelihood.levels[column]), 1.0
        filled = np.tile(row, (len(grid), 1))
        filled[:, column] = grid
        whole = logsumexp(fit.log_predictive(filled), b=step)
        with_gap = row.copy()
        with_gap[column] = np.nan
        assert fit.log_predictive(with_gap[None])[0] == pytest.approx(whole, abs=1e-7)


# 7: summaries


@every_marginalising
def test_one_batch_is_full_and_summaries_add(likelihood: str) -> None:
    case = hole_case(18, likelihood)
    full = fit_holes(case, passes(3, 2), sample_weight=None)
    batch = fit_holes(case, sb.Memoized(batches=1, sparsity=2, margin=None, max_passes=3, tol=0.0), sample_weight=None)
    assert visible_bits(full, case.rows) == visible_bits(batch, case.rows)
    whole = summary_of(full, case.rows, None, 2)
    parts = [summary_of(full, part, None, 2) for part in np.array_split(case.rows, 3)]
    for name, values in whole.items():
        np.testing.assert_allclose(sum(part[name] for part in parts), values, rtol=1e-9, atol=1e-9)


@every_marginalising
@pytest.mark.parametrize("process", ["nested", "tail", "finite"])
def test_batch_by_batch(likelihood: str, process: str) -> None:
    case = hole_case(19, likelihood, process, n=60)
    algorithm = sb.Memoized(batches=3, shuffle=False, sparsity=2, margin=None, max_passes=3, tol=0.0)
    fit = fit_holes(case, algorithm, sample_weight=None)
    batches = [np.arange(20 * batch, 20 * (batch + 1)) for batch in range(3)]
    memo = engines.Memo(case.rows, case.responsibilities, case.mixture, batches, sparsity=2)
    memo.order()
    assert len(fit.history) == 3
    for record in fit.history:
        memo.run(range(3))
        assert record.elbo == pytest.approx(memo.elbo(), rel=1e-9, abs=1e-9 * case.scale)


@every_marginalising
def test_predicted_merge(likelihood: str) -> None:
    """The change of the bound from statistics, counts and the gap is the recomputed one."""
    case = hole_case(20, likelihood, n_components=3)
    fit = fit_holes(case)
    merged = np.column_stack([case.responsibilities[:, :2].sum(1), case.responsibilities[:, 2]])
    change = fit_holes(replaced(case, responsibilities=merged)).elbo - fit.elbo
    oracle_likelihood, (first, second, _) = case.mixture.likelihood, globals_of(fit, with_missing=True).naturals
    predicted = oracle_likelihood.log_normaliser(
        first + second - oracle_likelihood.prior_natural
    ) + oracle_likelihood.log_normaliser(oracle_likelihood.prior_natural)
    predicted -= oracle_likelihood.log_normaliser(first) + oracle_likelihood.log_normaliser(second)
    process = case.mixture.process
    predicted += process.collapsed(merged.sum(0)) - process.collapsed(case.responsibilities.sum(0))
    predicted -= oracle.pair_gaps(case.responsibilities)[0, 1]
    assert change == pytest.approx(predicted, rel=1e-8, abs=1e-8)


# 9: refusals


@every_likelihood
def test_holes_are_refused_by_name(likelihood: str) -> None:
    """NaN is refused without the option, and by likelihoods without support for it; infinity is always refused."""
    case = make_case(21, likelihood=likelihood)
    rows = case.rows.copy()
    rows[3, 1] = np.nan
    with pytest.raises(sb.InvalidArgument) as caught:
        fit_from(replaced(case, rows=rows))
    assert caught.value.argument == "data"
    # A block of one column allows holes, whatever its likelihood.
    if likelihood in (*MARGINALISING, "columns", "gaussian"):
        infinite = rows.copy()
        infinite[4, 0] = np.inf
        with pytest.raises(sb.InvalidArgument):
            fit_holes(replaced(case, rows=infinite))
        return
    with pytest.raises(sb.NotSupported, match=LIKELIHOODS[likelihood].public):
        fit_holes(replaced(case, rows=rows))


@every_marginalising
def test_holes_in_predictions_need_the_option_in_the_fit(likelihood: str) -> None:
    case = hole_case(22, likelihood)
    complete = make_case(22, likelihood=likelihood)
    fit = fit_from(complete, passes(2))
    for read in (fit.predict, fit.predict_proba, fit.log_predictive, fit.evaluate):
        with pytest.raises(sb.InvalidArgument):
            read(case.rows)


@every_marginalising
def test_weights_may_not_be_missing(likelihood: str) -> None:
    case = hole_case(23, likelihood)
    weights = case.weights.copy()
    weights[0] = np.nan
    with pytest.raises(sb.InvalidArgument) as caught:
        fit_holes(case, sample_weight=weights)
    assert caught.value.argument == "sample_weight"


# 10: clusters


@pytest.mark.parametrize("seed", range(3))
def test_a_third_missing_moves_no_row_between_separated_clusters(seed: int) -> None:
    """Rows with a column observed in which all clusters are apart go where they went with nothing missing."""
    rows, labels = separated_mixture(seed, n=600, dimension=2, n_clusters=3, distance=20.0)
    # On the diagonal, so that each column alone tells the clusters apart.
    rows = rows - 20.0 * np.round(rows / 20.0) + 20.0 * labels[:, None]
    model = sb.Mixture(likelihood=public("DiagonalGaussian")(), process=sb.DirichletProcess())
    rng = np.random.default_rng(seed)
    holed = np.where(rng.random(rows.shape) < 0.3, np.nan, rows)
    empty = np.isnan(holed).all(1)
    holed[empty] = rows[empty]
    complete = sb.fit(model, rows, passes(20), init=labels, progress=False)
    fit = sb.fit(model, holed, passes(20), init=labels, missing="marginalize", progress=False)
    np.testing.assert_array_equal(fit.predict(holed), complete.predict(rows))


@every_marginalising
@pytest.mark.parametrize("init", ["kmeans++", "random"])
def test_starts_with_gaps(likelihood: str, init: str) -> None:
    """Both words give a finite, monotone fit of rows with missing values; parameters follow the observed ones."""
    case = hole_case(24, likelihood, n=200)
    given = {"covariance": case.model.likelihood.covariance} if "known" in likelihood else {}
    if isinstance(case.model.likelihood, sb.Columns):
        blocks = case.model.likelihood.blocks.items()
        chosen: Any = sb.Columns({block: type(own)(prior="rule") for block, own in blocks})
    else:
        chosen = public(LIKELIHOODS[likelihood].public)(prior="rule", **given)
    model = sb.Mixture(likelihood=chosen, process=sb.DirichletProcess())
    for algorithm in (passes(10), sb.Memoized(batches=4, max_passes=10, tol=0.0)):
        fit = sb.fit(
            model, case.rows, algorithm, n_components=4, init=init, missing="marginalize", seed=1, progress=False
        )
        bounds = np.array([record.elbo for record in fit.history])
        assert np.isfinite(bounds).all()
        assert (np.diff(bounds) >= -1e-9 * (np.abs(bounds[1:]) + case.scale)).all()
        assert np.isfinite(fit.log_predictive(case.rows)).all()
    if likelihood == "diagonal":
        np.testing.assert_allclose(fit.model.likelihood.mean, np.nanmean(case.rows, axis=0), rtol=1e-10)
        variance = np.nanvar(case.rows, axis=0)
        np.testing.assert_allclose(fit.model.likelihood.rate, 1.001 * variance / 2, rtol=1e-9)


def test_the_oracle_has_holes() -> None:
    """The cases of this file use the oracle for missing entries, and some entry is missing."""
    for likelihood in MARGINALISING:
        case = hole_case(25, likelihood)
        assert isinstance(case.mixture.likelihood, MissingLikelihood)
        assert 0.1 < np.isnan(case.rows).mean() < 0.5
        assert not np.isnan(case.rows).all(1).any()


@pytest.mark.parametrize("call", [sb.sample, sb.hierarchy])
def test_missing_values_where_only_fit_takes_them(call: Any) -> None:
    holes = np.arange(20.0).reshape(10, 2)
    holes[2, 1] = np.nan
    for data, column in ((holes, "1"), (pd.DataFrame(holes, columns=["a", "b"]), "'b'")):
        hint = "leave such rows out; only fit takes missing values"
        with pytest.raises(sb.InvalidArgument, match=f"NaN in row 2, column {column}; {hint}"):
            call(sb.Mixture(likelihood=sb.DiagonalGaussian()), data)


def test_columns_of_zeros_have_their_own_counts() -> None:
    """Columns without a one, seen by few rows and by all: the estimated prior does not depend on their order."""
    rng = np.random.default_rng(0)
    rows = (rng.random((400, 8)) < [0.5, 0.4, 0.6, 0, 0, 0, 0, 0]).astype(float)
    rows[rng.random(400) < 0.95, 7] = np.nan
    fits = [
        sb.fit(sb.Mixture(sb.Bernoulli()), rows[:, order], missing="marginalize", n_components=1)
        for order in (np.arange(8), np.roll(np.arange(8), 1))
    ]
    successes, failures = (
        [fit.model.likelihood._to_core()[1][name] for fit in fits] for name in ("successes", "failures")
    )
    np.testing.assert_allclose(np.sort(successes[0]), np.sort(successes[1]), rtol=1e-6)
    np.testing.assert_allclose(np.sort(failures[0]), np.sort(failures[1]), rtol=1e-6)
    assert fits[0].elbo == pytest.approx(fits[1].elbo, rel=1e-9)
