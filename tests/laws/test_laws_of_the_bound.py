"""Laws of the evidence lower bound: mathematics 7, numbers 1 (the start), 2, 3, 15 and 19."""

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
    oracle_of,
)
from oracles import evidence as exact
from oracles import variational as oracle


def never_falls(bounds: list[float], scale: float) -> bool:
    """Up to rounding: 1e-9 relative to the size of the terms."""
    return bool((np.diff(bounds) >= -1e-9 * (np.abs(bounds[1:]) + scale)).all())


@given(cases())
def test_dense_passes_never_lose_against_their_start(case: Case) -> None:
    """Number 1 across the first local step too, which dense responsibilities allow."""
    start = fit_from(case, sb.Full(sparsity=None, max_passes=0)).elbo
    first = fit_from(case, sb.Full(sparsity=None, max_passes=1, tol=0.0)).elbo
    assert never_falls([start, first], case.scale)


@given(cases(), st.integers(0, 2**32 - 1))
def test_globals_are_a_maximum(case: Case, seed: int) -> None:
    """Number 2: the general form equals the collapsed one that the core reports, and any other globals are worse."""
    rng, fit = np.random.default_rng(seed), fit_from(case, sb.Full(sparsity=None, max_passes=0))
    state = globals_of(fit)

    def general(naturals: list[np.ndarray], eta: np.ndarray) -> float:
        moved = oracle.Globals(naturals, eta)
        return oracle.general_elbo(case.rows, case.responsibilities, case.mixture, moved, case.weights)

    assert general(state.naturals, state.eta) == pytest.approx(fit.elbo, rel=1e-9, abs=1e-9 * case.scale)
    slack = 1e-10 * (abs(fit.elbo) + case.scale)
    statistics = case.mixture.likelihood.sufficient_statistics(rng.standard_normal((1, case.rows.shape[1])))[0]
    for k in range(case.n_components):
        for factor in [0.05, 0.5]:
            moved = list(state.naturals)
            moved[k] = moved[k] + factor * statistics
            assert general(moved, state.eta) < fit.elbo + slack
    for factor in [0.9, 1.2]:
        assert general(state.naturals, state.eta * factor) < fit.elbo + slack


@given(cases(weighted=False), st.integers(1, 5))
def test_scores_minus_log_responsibilities_are_constant(case: Case, sparsity: int) -> None:
    """Number 2, the local half: on the support of a row, W - log r is one number."""
    fit = fit_from(case, sb.Full(sparsity=min(sparsity, case.n_components), max_passes=1, tol=0.0))
    responsibilities = fit.predict_proba(case.rows, sparse=True).toarray()
    scores = oracle.local_scores(case.rows, case.mixture, globals_of(fit))
    seen = responsibilities > 1e-200
    difference = np.where(seen, scores - np.log(np.where(seen, responsibilities, 1.0)), np.nan)
    spread = np.nanmax(difference, axis=1) - np.nanmin(difference, axis=1)
    assert (spread <= 1e-8 * (1.0 + np.abs(np.where(seen, scores, 0.0)).max(1))).all()


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize("seed", range(3))
def test_evidence_is_not_exceeded(likelihood: LikelihoodName, process: ProcessName, seed: int) -> None:
    """Number 3: no bound is above log p(X), summed over all partitions, or labellings of a finite mixture."""
    n = 7 if process == "dirichlet_process" else 5
    case = make_case(seed, n=n, dimension=2, n_components=3, likelihood=likelihood, process=process)
    concentration = case.model.process.concentration
    if process == "dirichlet_process":
        evidence = exact.log_evidence_dirichlet_process(case.rows, case.mixture.likelihood, concentration)
    else:
        evidence = exact.log_evidence_finite(case.rows, case.mixture.likelihood, concentration, 3)
    rng = np.random.default_rng(seed)
    starts = [case.responsibilities, np.eye(3)[rng.integers(3, size=n)], np.full((n, 3), 1 / 3)]
    for start in starts:
        for sparsity in [1, 2, None]:
            fit = fit_from(case, sb.Full(sparsity=sparsity, max_passes=30, tol=0.0), init=start)
            assert fit.elbo <= evidence + 1e-9
            assert fit.evaluate(case.rows) <= evidence + 1e-9


@given(cases(n_components=1, process="finite_dirichlet", weighted=False), st.integers(0, 2**32 - 1))
def test_marginal_is_a_product_of_predictives(case: Case, seed: int) -> None:
    """Number 15: log m(A) is the sum of predictive log densities, in any order; a one-component finite mixture
    shows both.
    """
    rows = np.random.default_rng(seed).permutation(case.rows)

    def fit_prefix(length: int) -> sb.Fit:
        present = (np.arange(len(rows)) < length).astype(float)
        start = np.zeros(len(rows), int)
        return sb.fit(case.model, rows, sb.Full(max_passes=0), init=start, sample_weight=present, progress=False)

    total = fit_prefix(1).elbo
    for length in range(1, len(rows)):
        total += fit_prefix(length).log_predictive(rows[length : length + 1])[0]
    assert fit_prefix(len(rows)).elbo == pytest.approx(total, rel=1e-9, abs=1e-9)


@given(cases(n_components=1, process="dirichlet_process", weighted=False))
def test_one_row_one_component(case: Case) -> None:
    """Number 19: N = 1, K = 1 gives log m(x) + log 1 / (1 + concentration); the other rows have no weight."""
    row, only = case.rows[:1], np.eye(len(case.rows))[0]
    start = np.zeros(len(case.rows), int)
    fit = sb.fit(case.model, case.rows, sb.Full(max_passes=0), init=start, sample_weight=only, progress=False)
    concentration = case.model.process.concentration
    expected = oracle_of(case.model).likelihood.log_marginal(row) - np.log1p(concentration)
    assert fit.elbo == pytest.approx(expected, rel=1e-9, abs=1e-10)


@given(cases(process="dirichlet_process", min_rows=8))
def test_rows_without_weight_and_empty_components_add_nothing(case: Case) -> None:
    """Number 19: rows without weight and empty components contribute nothing to the bound."""
    fit = fit_from(case)
    rows = np.vstack([case.rows, case.rows + 5.0])
    weights = np.concatenate([case.weights, np.zeros(len(case.rows))])
    start = np.vstack([case.responsibilities] * 2)
    start = np.column_stack([start, np.zeros((len(start), 3))])
    padded = sb.fit(
        case.model, rows, sb.Full(sparsity=None, max_passes=0), init=start, sample_weight=weights, progress=False
    )
    assert padded.n_components == case.n_components + 3
    assert padded.elbo == pytest.approx(fit.elbo, rel=1e-10, abs=1e-10 * case.scale)
    for name, prior in [("dof", case.model.likelihood.dof), ("scale", case.model.likelihood.scale)]:
        np.testing.assert_allclose(padded.components[name][-1], prior, rtol=1e-12)
