"""Merges of a fit against the oracle: the same pairs, the same gains, the same bound (mathematics 4.5)."""

import itertools
from typing import Any

import numpy as np
import pytest

import kinds
import stickbreak as sb
from cases import Case, make_case
from oracles import engines, moves
from oracles.models import Array
from oracles.variational import local_step
from stickbreak.testing.generators import random_responsibilities
from test_oracles_of_moves import NESTED, WITH_MARGINAL

TWINS = 3


def twins(likelihood: str, process: str, *, with_missing: bool = False, seed: int = 4) -> tuple[Case, Array]:
    """Rows of two clusters under six components: random halves and thirds of nearly the same responsibilities."""
    with_gaps = with_missing and likelihood in kinds.MARGINALISING
    case = make_case(
        seed, n=60, n_components=2, likelihood=likelihood, process=process, weighted=True, with_missing=with_gaps
    )
    rng = np.random.default_rng(seed)
    shares = 0.9 / TWINS + 0.1 * random_responsibilities(rng, len(case.rows), TWINS, TWINS)
    shares /= shares.sum(1, keepdims=True)
    return case, np.einsum("nk,nj->nkj", case.responsibilities, shares).reshape(len(case.rows), -1)


def expected_pass(case: Case, start: Array, sparsity: int | None) -> tuple[moves.Merged, float]:
    """A pass of the oracle with merges of the pairs for which the start did not rule them out."""
    rows, mixture, weights = case.rows, case.mixture, case.weights
    start = engines.with_tail(start, mixture, start.shape[1])
    start = start[:, moves.falling(weights @ start, mixture)]
    ledger = moves.Ledger.of(rows, start, mixture, weights)
    n_components = start.shape[1] - mixture.process.has_tail
    pairs = [pair for pair in itertools.combinations(range(n_components), 2) if ledger.without_entropy(*pair) > 0]
    state = engines.global_step(rows, start, mixture, weights)
    swept = local_step(rows, mixture, state, sparsity)
    swept = swept[:, [*range(n_components), *range(n_components, swept.shape[1])]]
    settled = moves.settle_merges(rows, swept, mixture, pairs, weights)
    return settled, moves.bound(rows, settled.responsibilities, mixture, weights)


def fit_with_merges(case: Case, start: Array, algorithm: Any) -> sb.Fit:
    missing = "marginalize" if np.isnan(case.rows).any() else "error"
    return sb.fit(
        case.model, case.rows, algorithm, init=start, sample_weight=case.weights, missing=missing, progress=False
    )


@pytest.mark.parametrize("likelihood", WITH_MARGINAL)
@pytest.mark.parametrize("process", NESTED)
@pytest.mark.parametrize("sparsity", [None, 2])
@pytest.mark.one_in(2)
def test_merges_equal_the_oracle(likelihood: str, process: str, sparsity: int | None) -> None:
    case, start = twins(likelihood, process)
    expected, bound = expected_pass(case, start, sparsity)
    algorithm = sb.Full(sparsity=sparsity, margin=None, max_passes=1, tol=0.0, moves=(sb.Merge(),))
    fit = fit_with_merges(case, start, algorithm)
    (report,) = fit.history[0].moves
    assert report.kind == "merge"
    assert report.accepted == len(expected.changes)
    assert report.gain == pytest.approx(sum(expected.changes), abs=1e-9 * case.scale)
    assert fit.elbo == pytest.approx(bound, abs=1e-9 * case.scale)
    counts = case.weights @ expected.responsibilities
    np.testing.assert_allclose(fit.counts, np.sort(counts[: fit.n_components])[::-1], rtol=1e-9, atol=1e-9)


def test_twins_become_one() -> None:
    """The comparison above is not empty: nearly equal components are merged."""
    accepted = 0
    for likelihood in WITH_MARGINAL:
        case, start = twins(likelihood, "nested", with_missing=True)
        algorithm = sb.Full(sparsity=None, margin=None, max_passes=3, tol=0.0, moves=(sb.Merge(),))
        fit = fit_with_merges(case, start, algorithm)
        accepted += fit.n_components < 2 * TWINS
        assert (
            fit.elbo
            >= sb.fit(
                case.model,
                case.rows,
                sb.Full(sparsity=None, margin=None, max_passes=3, tol=0.0),
                init=start,
                sample_weight=case.weights,
                missing="marginalize" if np.isnan(case.rows).any() else "error",
                progress=False,
            ).elbo
            - 1e-9 * case.scale
        )
    assert accepted == len(WITH_MARGINAL)
