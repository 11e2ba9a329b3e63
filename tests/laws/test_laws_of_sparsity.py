"""Laws of sparse responsibilities, summaries and pair gaps: mathematics 7, numbers 7 and 9."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stickbreak as sb
from cases import (
    LIKELIHOODS,
    Case,
    LikelihoodName,
    cases,
    fit_from,
    globals_of,
    make_case,
    make_process,
    visible_bits,
)
from oracles import variational as oracle
from stickbreak.testing.local_step import summary_of as local_summary

SPARSITIES = st.integers(1, 5)


@given(cases(), st.integers(0, 4))
def test_all_components_is_dense(case: Case, passes: int) -> None:
    """Number 7: L = K is the dense local step, bit for bit, since it is the same code path."""
    sparse = fit_from(case, sb.Full(sparsity=case.n_components, max_passes=passes, tol=0.0))
    dense = fit_from(case, sb.Full(sparsity=None, max_passes=passes, tol=0.0))
    assert visible_bits(sparse, case.rows) == visible_bits(dense, case.rows)


@given(cases(weighted=False))
def test_one_component_is_hard(case: Case) -> None:
    """Number 7: L = 1 assigns every row to its best component; ties go to the first."""
    fit = fit_from(case, sb.Full(sparsity=1, max_passes=2, tol=0.0))
    hard = fit.predict_proba(case.rows, sparse=True).toarray()
    scores = oracle.local_scores(case.rows, case.mixture, globals_of(fit))
    clear = (
        np.ptp(np.sort(scores, axis=1)[:, -2:], axis=1) > 1e-9 if case.n_components > 1 else np.full(len(hard), True)
    )
    np.testing.assert_array_equal(hard.max(1), 1.0)
    np.testing.assert_array_equal(hard.argmax(1)[clear], scores.argmax(1)[clear])
    assert fit.counts.sum() == pytest.approx(len(case.rows), rel=1e-12)
    np.testing.assert_array_equal(fit.counts, np.round(fit.counts))


def test_ties_go_to_the_first_component() -> None:
    """Three components with equal starts stay equal, so hard rows go to the first."""
    case = make_case(0, n_components=3, process="finite_dirichlet")
    even = dataclasses.replace(case, responsibilities=np.full((60, 3), 1 / 3))
    fit = fit_from(even, sb.Full(sparsity=None, max_passes=0))
    np.testing.assert_array_equal(fit.predict(case.rows), 0)
    np.testing.assert_allclose(fit.predict_proba(case.rows), 1 / 3, rtol=1e-12)
    hard = fit_from(even, sb.Full(sparsity=1, max_passes=1, tol=0.0))
    np.testing.assert_array_equal(hard.counts, [60.0, 0.0, 0.0])


@given(cases(weighted=False), SPARSITIES)
def test_support(case: Case, sparsity: int) -> None:
    """Number 7: at most L components a row; their values are the renormalised best of the dense row."""
    sparsity = min(sparsity, case.n_components)
    fit = fit_from(case, sb.Full(sparsity=sparsity, max_passes=2, tol=0.0))
    kept = fit.predict_proba(case.rows, sparse=True).toarray()
    assert ((kept > 0).sum(1) <= sparsity).all()
    np.testing.assert_allclose(kept.sum(1), 1.0, rtol=1e-12)
    dense = fit.predict_proba(case.rows)
    expected = oracle.top_l_responsibilities(np.log(np.maximum(dense, 1e-300)), sparsity)
    np.testing.assert_allclose(kept, expected, rtol=1e-9, atol=1e-12)


@given(cases(support=1, weighted=False))
def test_bound_grows_with_the_support(case: Case) -> None:
    """Number 7: at the same globals, the bound after one local step rises with the sparsity."""
    fits = [fit_from(case, sb.Full(sparsity=sparsity, max_passes=0)) for sparsity in range(1, case.n_components + 1)]
    assert len({fit.elbo for fit in fits}) == 1
    reached = [fit.evaluate(case.rows) for fit in fits]
    assert (np.diff(reached) >= -1e-10 * (abs(reached[0]) + case.scale)).all()
    assert reached[0] >= fits[0].elbo - 1e-10 * (abs(reached[0]) + case.scale)


@given(cases(), SPARSITIES)
def test_summary_of_a_local_step(case: Case, sparsity: int) -> None:
    """Counts, entropies and pair gaps are those of the responsibilities of the same local step."""
    sparsity = min(sparsity, case.n_components)
    fit = fit_from(case)
    responsibilities = oracle.local_step(case.rows, case.mixture, globals_of(fit), sparsity)
    summary = local_summary(fit, case.rows, case.weights, sparsity)
    tolerance = {"rtol": 1e-7, "atol": 1e-9 * case.scale}
    np.testing.assert_allclose(summary["counts"], case.weights @ responsibilities, **tolerance)
    np.testing.assert_allclose(summary["entropies"], oracle.entropies(responsibilities, case.weights), **tolerance)
    np.testing.assert_allclose(summary["pair_gaps"], oracle.pair_gaps(responsibilities, case.weights), **tolerance)


@given(cases(), SPARSITIES)
def test_pair_gaps(case: Case, sparsity: int) -> None:
    """Number 9: gaps are not negative, symmetric, and zero exactly where no row has both components."""
    sparsity = min(sparsity, case.n_components)
    fit = fit_from(case, sb.Full(sparsity=sparsity, max_passes=1, tol=0.0))
    gaps = local_summary(fit, case.rows, case.weights, sparsity)["pair_gaps"]
    shared = fit.predict_proba(case.rows, sparse=True).toarray() > 0
    np.testing.assert_array_equal(gaps, gaps.T)
    np.testing.assert_array_equal(np.diag(gaps), 0.0)
    for a, b in itertools.combinations(range(case.n_components), 2):
        together = bool((shared[:, a] & shared[:, b]).any())
        assert (gaps[a, b] > 0) == together
    if sparsity == 1:
        np.testing.assert_array_equal(gaps, 0.0)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_gap_of_twins(likelihood: LikelihoodName) -> None:
    """Number 9: two components with the same responsibilities have the gap 2 log 2 sum of them."""
    case = make_case(2, n_components=3, likelihood=likelihood, process="finite_dirichlet", weighted=True)
    start = case.responsibilities.copy()
    start[:, :2] = start[:, :2].mean(1, keepdims=True)
    fit = fit_from(dataclasses.replace(case, responsibilities=start))
    summary = local_summary(fit, case.rows, case.weights, None)
    assert summary["counts"][0] == summary["counts"][1]
    assert summary["pair_gaps"][0, 1] == pytest.approx(2 * np.log(2) * summary["counts"][0], rel=1e-11)


@given(cases(weighted=False), SPARSITIES)
def test_predicted_merge(case: Case, sparsity: int) -> None:
    """Number 9: the predicted change of the bound by a merge equals the recomputed one, and
    never exceeds the change without the gap.
    """
    if case.n_components == 1:
        return
    sparsity = min(sparsity, case.n_components)
    fit = fit_from(case)
    gaps = local_summary(fit, case.rows, None, sparsity)["pair_gaps"]
    responsibilities = oracle.local_step(case.rows, case.mixture, globals_of(fit), sparsity)
    before = fit_from(dataclasses.replace(case, responsibilities=responsibilities))
    concentration = case.model.process.concentration
    for a, b in itertools.combinations(range(case.n_components), 2):
        merged = np.delete(responsibilities, b, axis=1)
        merged[:, a] += responsibilities[:, b]
        name = "finite_dirichlet" if isinstance(case.model.process, sb.FiniteDirichlet) else "dirichlet_process"
        model = sb.Mixture(
            likelihood=case.model.likelihood, process=make_process(name, case.n_components - 1, concentration)
        )
        after = fit_from(dataclasses.replace(case, responsibilities=merged, model=model))
        bound = upper_bound_of_merge(case, globals_of(before), before.counts, (a, b))
        assert after.elbo - before.elbo == pytest.approx(bound - gaps[a, b], rel=1e-7, abs=1e-8 * case.scale)
        assert after.elbo - before.elbo <= bound + 1e-9 * case.scale


def upper_bound_of_merge(case: Case, state: oracle.Globals, counts: np.ndarray, pair: tuple[int, int]) -> float:
    """The change without the gap: log marginal-likelihood ratio and the change of the process."""
    likelihood, (a, b) = case.mixture.likelihood, pair
    merged = state.naturals[a] + state.naturals[b] - likelihood.prior_natural
    change = likelihood.log_normaliser(merged) + likelihood.log_normaliser(likelihood.prior_natural)
    change -= likelihood.log_normaliser(state.naturals[a]) + likelihood.log_normaliser(state.naturals[b])
    fewer = np.delete(counts, b)
    fewer[a] += counts[b]
    return change + case.mixture.process.collapsed(fewer) - case.mixture.process.collapsed(counts)
