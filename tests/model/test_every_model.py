"""Every likelihood under every process, against the oracle: one global step, passes, predictions, the bound."""

from typing import Any

import numpy as np
import pytest

import stickbreak as sb
from cases import START, Case, fit_from, globals_of, make_case, passes
from kinds import LIKELIHOODS, PROCESSES, every_likelihood, every_process
from oracles import engines
from oracles import variational as oracle
from oracles.models import Array
from oracles.sticks import GammaConcentration
from stickbreak.testing import check_additive_summaries

SPARSITIES = pytest.mark.parametrize("sparsity", [1, 2, None])
# Tolerance of the fixed points within a global step: of the product measure, and of a Gamma prior.
INNER = 1e-8


def assert_globals(fit: sb.Fit, case: Case, state: oracle.Globals, rtol: float) -> None:
    shown = globals_of(fit, case.weights.sum())
    assert len(shown.naturals) == len(state.naturals)
    for natural, expected in zip(shown.naturals, state.naturals, strict=True):
        np.testing.assert_allclose(natural, expected, rtol=rtol, atol=rtol * case.scale)
    np.testing.assert_allclose(shown.eta, state.eta, rtol=rtol, atol=rtol)


def counts_of(case: Case, responsibilities: Array) -> Array:
    """Counts of the components, without that of the tail."""
    return np.asarray(case.weights @ responsibilities)[: case.n_components]


@every_likelihood
@every_process
def test_one_global_step(likelihood: str, process: str) -> None:
    """Components, counts and weights are the oracle's, in the order of the start; the bound has both forms."""
    case = make_case(1, likelihood=likelihood, process=process, weighted=True)
    fit = fit_from(case, START)
    start = engines.with_tail(case.responsibilities, case.mixture, case.n_components)
    state = oracle.global_step(case.rows, start, case.mixture, case.weights)
    assert_globals(fit, case, state, INNER)
    np.testing.assert_allclose(fit.counts, counts_of(case, start), rtol=1e-12)
    weights = case.mixture.process.expected_weights(state.eta)
    np.testing.assert_allclose(fit.weights, weights[:-1], rtol=INNER)
    assert fit.leftover_weight == pytest.approx(weights[-1], rel=INNER, abs=1e-15)
    for expected in (
        oracle.collapsed_elbo(case.rows, start, case.mixture, case.weights),
        oracle.general_elbo(case.rows, start, case.mixture, state, case.weights),
    ):
        assert fit.elbo == pytest.approx(expected, rel=1e-9, abs=1e-9 * case.scale)
    assert fit.bound == PROCESSES[process].bound


@every_process
def test_concentration(process: str) -> None:
    """The concentration of a fit is the given number, or the posterior if it has a prior."""
    case = make_case(2, process=process, weighted=True)
    fit = fit_from(case, passes(4))
    if isinstance(case.mixture.process, GammaConcentration):
        shape, rate = case.mixture.process.update(fit.counts)[-1]
        assert fit.concentration.shape == pytest.approx(shape, rel=1e-12)
        assert fit.concentration.rate == pytest.approx(rate, rel=INNER)
    elif process.startswith("sticks"):
        assert fit.concentration is None
    else:
        assert fit.concentration == case.model.process.concentration


@every_likelihood
@every_process
@SPARSITIES
@pytest.mark.one_in(3)
def test_pass_by_pass(likelihood: str, process: str, sparsity: int | None) -> None:
    """Every pass of `Full` has the oracle's bound, its components and its counts."""
    case = make_case(3, n=90, likelihood=likelihood, process=process, weighted=True)
    trajectory = engines.fit_full(case.rows, case.responsibilities, case.mixture, 6, sparsity, case.weights)
    fit = fit_from(case, passes(6, sparsity))
    bounds = [record.objective for record in fit.history]
    np.testing.assert_allclose(bounds, [each.elbo for each in trajectory[1:]], rtol=1e-9, atol=1e-9 * case.scale)
    assert fit.elbo == bounds[-1]
    assert_globals(fit, case, trajectory[-1].state, 1e-6)
    np.testing.assert_allclose(fit.counts, counts_of(case, trajectory[-1].responsibilities), rtol=1e-6, atol=1e-8)


@every_likelihood
@every_process
@pytest.mark.one_in(3)
def test_batch_by_batch(likelihood: str, process: str) -> None:
    """Every pass over three runs of rows, in their order, has the bound of the oracle."""
    case = make_case(4, n=60, likelihood=likelihood, process=process)
    algorithm = sb.Memoized(batches=3, shuffle=False, sparsity=2, margin=None, max_passes=4, tol=0.0)
    fit = fit_from(case, algorithm, sample_weight=None)
    batches = [np.arange(20 * batch, 20 * (batch + 1)) for batch in range(3)]
    memo = engines.Memo(case.rows, case.responsibilities, case.mixture, batches, sparsity=2)
    memo.order()
    for record in fit.history:
        memo.run(range(3))
        assert record.elbo == pytest.approx(memo.elbo(), rel=1e-9, abs=1e-9 * case.scale)
    assert_globals(fit, case, memo.state, 1e-6)


@every_likelihood
@every_process
@SPARSITIES
@pytest.mark.one_in(3)
def test_evaluate(likelihood: str, process: str, sparsity: int | None) -> None:
    """One local step at unchanged globals, on any rows with any weights, in the general form."""
    case = make_case(5, likelihood=likelihood, process=process, weighted=True)
    fit = fit_from(case, passes(3, sparsity))
    state = globals_of(fit, case.weights.sum())
    for rows in (case.rows, make_case(6, likelihood=likelihood, process=process, n=30).rows):
        responsibilities = oracle.local_step(rows, case.mixture, state, sparsity)
        expected = oracle.general_elbo(rows, responsibilities, case.mixture, state)
        assert fit.evaluate(rows) == pytest.approx(expected, rel=1e-8, abs=1e-8 * case.scale)
    weighted = oracle.general_elbo(
        case.rows, oracle.local_step(case.rows, case.mixture, state, sparsity), case.mixture, state, case.weights
    )
    found = fit.evaluate(case.rows, sample_weight=case.weights)
    assert found == pytest.approx(weighted, rel=1e-8, abs=1e-8 * case.scale)
    assert found >= fit.elbo - 1e-9 * (abs(fit.elbo) + case.scale)


@every_likelihood
@every_process
def test_responsibilities(likelihood: str, process: str) -> None:
    """`predict_proba` is the dense local step; the tail's column is left out, or shown where it is asked for."""
    case = make_case(7, likelihood=likelihood, process=process)
    fit = fit_from(case, passes(2, 2))
    expected = oracle.local_step(case.rows, case.mixture, globals_of(fit, case.weights.sum()))
    if case.mixture.process.has_tail:
        with_tail = fit.predict_proba(case.rows, tail=True)
        np.testing.assert_allclose(with_tail, expected, rtol=1e-7, atol=1e-11)
        expected = expected[:, :-1] / expected[:, :-1].sum(1, keepdims=True)
    found = fit.predict_proba(case.rows)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-11)
    np.testing.assert_array_equal(fit.predict(case.rows), found.argmax(1))


@every_likelihood
@every_process
def test_kept_responsibilities(likelihood: str, process: str) -> None:
    """`predict_proba` with sparse=True keeps the L best components, normalised; with the tail it is one of them."""
    case = make_case(8, likelihood=likelihood, process=process)
    fit = fit_from(case, passes(2, 2))
    scores = oracle.local_scores(case.rows, case.mixture, globals_of(fit, case.weights.sum()))
    expected = [oracle.top_l_responsibilities(scores[:, : case.n_components], 2)]
    found = [fit.predict_proba(case.rows, sparse=True)]
    if case.mixture.process.has_tail:
        expected.append(oracle.top_l_responsibilities(scores, 2))
        found.append(fit.predict_proba(case.rows, sparse=True, tail=True))
    for table, values in zip(found, expected, strict=True):
        assert (np.diff(table.indptr) <= 2).all()
        np.testing.assert_allclose(table.toarray(), values, rtol=1e-7, atol=1e-11)


@every_likelihood
@every_process
@pytest.mark.one_in(3)
def test_log_predictive(likelihood: str, process: str) -> None:
    """The mixture of the components' predictive densities, with the prior's for the weight that is left over."""
    case = make_case(9, likelihood=likelihood, process=process)
    fit = fit_from(case, passes(2))
    others = make_case(10, likelihood=likelihood, process=process, n=40).rows
    for rows in (case.rows, others):
        expected = oracle.mixture_log_predictive(rows, case.mixture, globals_of(fit, case.weights.sum()))
        np.testing.assert_allclose(fit.log_predictive(rows), expected, rtol=1e-8, atol=1e-8)


@every_likelihood
@every_process
def test_summaries_add(likelihood: str, process: str) -> None:
    """Number 5: the summary of all rows is the sum of those of any parts."""
    case = make_case(11, likelihood=likelihood, process=process)
    algorithm: Any = sb.Full(sparsity=2, max_passes=2, tol=0.0)
    check_additive_summaries(
        case.model, case.rows, algorithm, init=case.responsibilities, sample_weight=case.weights, seed=1
    )


@every_likelihood
@every_process
@pytest.mark.one_in(3)
def test_passes_never_lose(likelihood: str, process: str) -> None:
    """Number 1, at every sparsity and in batches; dense passes do not lose against their start either."""
    case = make_case(12, likelihood=likelihood, process=process, weighted=True)
    start = fit_from(case, START).elbo
    for algorithm in (
        passes(15),
        passes(15, 1),
        passes(15, 3),
        sb.Memoized(batches=4, sparsity=2, margin=None, max_passes=15, tol=0.0),
    ):
        fit = fit_from(case, algorithm)
        bounds = [record.objective for record in fit.history]
        if algorithm.sparsity is None:
            bounds = [start, *bounds]
        assert (np.diff(bounds) >= -1e-9 * (np.abs(bounds[1:]) + case.scale)).all()
        assert fit.counts.sum() <= case.weights.sum() * (1 + 1e-12)
        if not case.mixture.process.has_tail:
            assert fit.counts.sum() == pytest.approx(case.weights.sum(), rel=1e-12)


@pytest.mark.parametrize("process", [name for name, kind in PROCESSES.items() if kind.nested or name == "gamma_nested"])
def test_components_end_in_falling_order(process: str) -> None:
    """Components are sorted after passes, but not after the start alone, whose order the user chooses."""
    case = make_case(13, process=process)
    counts = case.responsibilities.sum(0)
    assert (np.diff(counts) > 0).any()
    np.testing.assert_allclose(fit_from(case, START).counts, counts, rtol=1e-12)
    assert (np.diff(fit_from(case, passes(1)).counts) <= 0).all()


@every_likelihood
def test_rows_come_in_their_own_domain(likelihood: str) -> None:
    """`sample` draws what `fit` would take."""
    case = make_case(14, likelihood=likelihood)
    fit = fit_from(case, passes(2))
    rows = fit.sample(50, seed=1)
    assert rows.shape == (50, case.rows.shape[1])
    assert np.isfinite(rows).all()
    if LIKELIHOODS[likelihood].domain == "counts":
        assert (rows >= 0).all()
        np.testing.assert_array_equal(rows, np.round(rows))
    if LIKELIHOODS[likelihood].domain == "binary":
        assert np.isin(rows, (0, 1)).all()
    if LIKELIHOODS[likelihood].domain == "codes":
        assert np.isin(rows, np.arange(5)).all()
    assert np.isfinite(fit.evaluate(rows))


@every_likelihood
def test_float32_is_float64_to_its_rounding(likelihood: str) -> None:
    """About 1e-6 nats a point and column, relative to a score."""
    case = make_case(15, likelihood=likelihood)
    rows = case.rows.astype(np.float32)
    single, double = (
        sb.fit(case.model, data, passes(3), init=case.responsibilities, progress=False)
        for data in (rows, rows.astype(np.float64))
    )
    assert single.elbo == pytest.approx(double.elbo, abs=1e-5 * case.scale)
    np.testing.assert_allclose(single.log_predictive(rows), double.log_predictive(rows.astype(float)), atol=2e-4)
