"""`elbo` and `evaluate` recomputed by the oracle, and passes compared one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stickbreak as sb
from cases import (
    LIKELIHOODS,
    PROCESSES,
    Case,
    LikelihoodName,
    ProcessName,
    cases,
    fit_from,
    globals_of,
    make_case,
)
from oracles import engines
from oracles import variational as oracle

SPARSITIES = (1, 2, 3, 4, 5, None)


@given(cases(), st.integers(1, 7), st.booleans())
def test_elbo_of_given_responsibilities(case: Case, n_batches: int, shuffle: bool) -> None:
    """One global step from given responsibilities has their bound, for any batches and any sparsity."""
    expected = oracle.elbo_of_responsibilities(case.rows, case.responsibilities, case.mixture, case.weights)
    batches = min(n_batches, len(case.rows))
    for sparsity in [None, case.n_components]:
        for algorithm in [
            sb.Full(sparsity=sparsity, max_passes=0),
            sb.Memoized(batches=batches, shuffle=shuffle, sparsity=sparsity, max_passes=0),
        ]:
            fit = fit_from(case, algorithm)
            assert fit.elbo == pytest.approx(expected, rel=1e-9, abs=1e-9 * case.scale)


@pytest.mark.parametrize("support", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("process", PROCESSES)
def test_elbo_at_every_sparsity(likelihood: LikelihoodName, process: ProcessName, support: int) -> None:
    """Responsibilities with L nonzeros per row are used unchanged at every sparsity of at least L."""
    case = make_case(support, n_components=5, support=support, likelihood=likelihood, process=process, weighted=True)
    expected = oracle.elbo_of_responsibilities(case.rows, case.responsibilities, case.mixture, case.weights)
    for sparsity in SPARSITIES[support - 1 :]:
        for algorithm in [
            sb.Full(sparsity=sparsity, max_passes=0),
            sb.Memoized(batches=4, sparsity=sparsity, max_passes=0),
        ]:
            assert fit_from(case, algorithm).elbo == pytest.approx(expected, rel=1e-9)


@given(cases())
def test_globals_are_optimal(case: Case) -> None:
    """The components and counts after one global step are the oracle's."""
    fit = fit_from(case, sb.Full(sparsity=None, max_passes=0))
    expected = oracle.global_step(case.rows, case.responsibilities, case.mixture, case.weights)
    shown = globals_of(fit)
    for natural, other in zip(shown.naturals, expected.naturals, strict=True):
        np.testing.assert_allclose(natural, other, rtol=1e-9, atol=1e-9 * case.scale)
    np.testing.assert_allclose(shown.eta, expected.eta, rtol=1e-12)
    weights = case.mixture.process.expected_weights(expected.eta)
    np.testing.assert_allclose(fit.weights, weights[:-1], rtol=1e-11)
    assert fit.leftover_weight == pytest.approx(weights[-1], rel=1e-11, abs=1e-15)


@given(cases(), st.integers(1, 6), st.integers(0, 3))
def test_evaluate(case: Case, sparsity: int, passes: int) -> None:
    """`evaluate` is one local step at unchanged globals, on any rows, in the general form."""
    sparsity = min(sparsity, case.n_components)
    fit = fit_from(case, sb.Full(sparsity=sparsity, max_passes=passes, tol=0.0))
    state = globals_of(fit)
    for rows in [case.rows, case.rows[::-1] + 0.25]:
        responsibilities = oracle.local_step(rows, case.mixture, state, sparsity)
        expected = oracle.general_elbo(rows, responsibilities, case.mixture, state)
        assert fit.evaluate(rows) == pytest.approx(expected, rel=1e-8, abs=1e-8)
        expected = oracle.general_elbo(rows, responsibilities, case.mixture, state, case.weights)
        assert fit.evaluate(rows, sample_weight=case.weights) == pytest.approx(expected, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize("sparsity", [None, 1, 2])
def test_pass_by_pass(likelihood: LikelihoodName, process: ProcessName, sparsity: int | None) -> None:
    """Every pass of `Full` from the same responsibilities has the oracle's bound to 1e-9, and its components."""
    case = make_case(21, n=150, n_components=5, likelihood=likelihood, process=process, weighted=True)
    trajectory = engines.fit_full(case.rows, case.responsibilities, case.mixture, 12, sparsity, case.weights)
    fit = fit_from(case, sb.Full(sparsity=sparsity, max_passes=12, tol=0.0))
    bounds = [record.elbo for record in fit.history]
    np.testing.assert_allclose(bounds, [each.elbo for each in trajectory[1:]], rtol=1e-9)
    assert fit.elbo == bounds[-1]
    for natural, other in zip(globals_of(fit).naturals, trajectory[-1].state.naturals, strict=True):
        np.testing.assert_allclose(natural, other, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(fit.counts, trajectory[-1].responsibilities.T @ case.weights, rtol=1e-7, atol=1e-9)


@given(cases(weighted=False))
def test_log_predictive(case: Case) -> None:
    fit = fit_from(case, sb.Full(sparsity=None, max_passes=2, tol=0.0))
    expected = oracle.mixture_log_predictive(case.rows, case.mixture, globals_of(fit))
    np.testing.assert_allclose(fit.log_predictive(case.rows), expected, rtol=1e-9, atol=1e-10)


@given(cases(weighted=False))
def test_responsibilities(case: Case) -> None:
    fit = fit_from(case, sb.Full(sparsity=None, max_passes=2, tol=0.0))
    expected = oracle.local_step(case.rows, case.mixture, globals_of(fit))
    np.testing.assert_allclose(fit.predict_proba(case.rows), expected, rtol=1e-7, atol=1e-11)


@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_bound_names(likelihood: LikelihoodName, process: ProcessName) -> None:
    fit = fit_from(make_case(0, likelihood=likelihood, process=process))
    assert fit.bound == {"dirichlet_process": "nested", "finite_dirichlet": "finite"}[process]
    assert fit.concentration == fit.model.process.concentration
