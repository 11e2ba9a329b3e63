"""The oracle of moves against the bound of the responsibilities: mathematics 4.4 to 4.8 and 7, numbers 9, 11, 17."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kinds
from cases import Case, make_case
from oracles import moves
from oracles import variational as oracle
from oracles.engines import with_tail
from oracles.models import Array

NESTED = [name for name, kind in kinds.PROCESSES.items() if kind.bound in ("nested", "tail")]
WITH_MARGINAL = [name for name in kinds.LIKELIHOODS if name != "spherical_product"]


def case_of(likelihood: str, process: str, support: int | None = None, seed: int = 0) -> tuple[Case, Array]:
    """A problem, and its responsibilities with a tail where the process has one."""
    case = make_case(seed, n=40, likelihood=likelihood, process=process, support=support, weighted=True)
    responsibilities = case.responsibilities
    if case.mixture.process.has_tail:
        responsibilities = np.column_stack([0.9 * responsibilities, np.full(len(responsibilities), 0.1)])
    return case, responsibilities


@pytest.mark.parametrize("likelihood", WITH_MARGINAL)
@pytest.mark.parametrize("process", NESTED)
@pytest.mark.parametrize("support", [None, 2])
def test_merge_changes_are_recomputed(likelihood: str, process: str, support: int | None) -> None:
    case, responsibilities = case_of(likelihood, process, support)
    ledger = moves.Ledger.of(case.rows, responsibilities, case.mixture, case.weights)
    before = moves.bound(case.rows, responsibilities, case.mixture, case.weights)
    for a, b in itertools.combinations(range(case.n_components), 2):
        after = moves.bound(case.rows, moves.merged(responsibilities, a, b), case.mixture, case.weights)
        assert ledger.merge_change(a, b) == pytest.approx(after - before, abs=1e-10 * case.scale)
        assert ledger.merge_change(a, b) <= ledger.without_entropy(a, b)


@pytest.mark.parametrize("likelihood", WITH_MARGINAL)
@pytest.mark.parametrize("process", NESTED)
def test_split_changes_are_recomputed(likelihood: str, process: str) -> None:
    case, responsibilities = case_of(likelihood, process)
    rng = np.random.default_rng(1)
    before = moves.bound(case.rows, responsibilities, case.mixture, case.weights)
    for n_parts, hard in [(2, True), (3, False)]:
        shares = rng.dirichlet(np.ones(n_parts), len(case.rows))
        if hard:
            shares = np.eye(n_parts)[shares.argmax(1)]
        found = moves.split_change(case.rows, responsibilities, case.mixture, 1, shares, case.weights)
        dealt = moves.split(responsibilities, 1, shares, case.mixture)
        after = moves.bound(case.rows, dealt, case.mixture, case.weights)
        assert found == pytest.approx(after - before, abs=1e-10 * case.scale)
        if n_parts == 2:  # the inverse of a merge of the children
            ledger = moves.Ledger.of(case.rows, dealt, case.mixture, case.weights)
            assert found == pytest.approx(-ledger.merge_change(1, case.n_components), abs=1e-10 * case.scale)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_gaps(seed: int, support: int) -> None:
    """Property 9 and the bounds of triples: concave and homogeneous, so G_(ab)c is between the largest and the sum."""
    case = make_case(seed, n=30, support=support, weighted=True)
    responsibilities, weights = case.responsibilities, case.weights
    gaps = oracle.pair_gaps(responsibilities, weights)
    assert (gaps == gaps.T).all()
    for a, b in itertools.combinations(range(case.n_components), 2):
        disjoint = not (responsibilities[:, a] * responsibilities[:, b] > 0).any()
        assert (gaps[a, b] == 0.0) if disjoint else (gaps[a, b] > 0.0)
        for c in set(range(case.n_components)) - {a, b}:
            joined = responsibilities[:, [a, c]] + responsibilities[:, [b]] * [1.0, 0.0]
            triple = oracle.pair_gaps(joined, weights)[0, 1]
            slack = 1e-12 * (1.0 + triple)
            assert max(gaps[a, c], gaps[b, c]) - slack <= triple <= gaps[a, c] + gaps[b, c] + slack
    twins = np.column_stack([responsibilities[:, 0], responsibilities[:, 0]]) / 2
    expected = np.log(2) * weights @ responsibilities[:, 0]
    assert oracle.pair_gaps(twins, weights)[0, 1] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("process", [name for name, kind in kinds.PROCESSES.items() if kind.nested])
def test_an_empty_component_changes_nothing(process: str) -> None:
    """Property 11: an empty component appended last changes nothing."""
    case = make_case(0, process=process, weighted=True)
    responsibilities = with_tail(case.responsibilities, case.mixture, case.n_components)
    before = moves.bound(case.rows, responsibilities, case.mixture, case.weights)
    shares = np.repeat([[1.0, 0.0]], len(case.rows), axis=0)
    longer = moves.split(responsibilities, 0, shares, case.mixture)
    after = moves.bound(case.rows, longer, case.mixture, case.weights)
    assert after == pytest.approx(before, rel=1e-12)


@pytest.mark.parametrize("likelihood", ["gaussian", "poisson"])
def test_renormalised_rows(likelihood: str) -> None:
    """Property 17: after a delete every row has responsibilities, and rows without the component are unchanged."""
    case = make_case(3, n=40, likelihood=likelihood, support=2)
    responsibilities = with_tail(case.responsibilities, case.mixture, case.n_components)
    has_component = responsibilities[:, 2] > 0
    after = moves.renormalised(case.rows, responsibilities, case.mixture, 2)
    np.testing.assert_allclose(after.sum(1), 1.0, rtol=1e-12)
    assert has_component.any()
    np.testing.assert_allclose(
        after[~has_component], np.delete(responsibilities, 2, axis=1)[~has_component], rtol=1e-12
    )
