"""`init="sequential"` (mathematics 5.3): the rows one after another, against the oracle."""

import itertools

import numpy as np
import pytest

import stickbreak as sb
from cases import (
    LIKELIHOODS,
    PROCESSES,
    Case,
    LikelihoodName,
    ProcessName,
    clustered_rows,
    globals_of,
    make_case,
    visible_bits,
)
from kinds import every_likelihood, every_process
from oracles import engines
from oracles import variational as oracle

START = sb.Full(max_passes=0)


def fit(case: Case, algorithm: object = START, **options: object) -> sb.Fit:
    settings = {"init": "sequential", "n_components": case.n_components, "progress": False} | options
    return sb.fit(case.model, case.rows, algorithm, **settings)


@every_likelihood
@every_process
@pytest.mark.one_in(8)
def test_it_is_the_oracle_for_one_order(likelihood: str, process: str) -> None:
    """The order of the engine is not visible; of all orders of four or five rows, one must match.

    In a finite mixture, whose prior is symmetric, each of the first rows gets its own component.
    """
    n = 5 if likelihood == "categorical" else 4  # with fewer rows of codes two orders are hardly two
    case = make_case(11, n=n, dimension=2, n_components=3, likelihood=likelihood, process=process)
    found = fit(case, sb.Full(max_passes=0, margin=None), seed=1)
    n_single = 3 if process == "finite" else 0
    results = [
        engines.sequential_start(case.rows, case.mixture, 3, order, n_single=n_single)
        for order in itertools.permutations(range(n))
    ]
    gaps = [np.abs(found.counts - each.sum(0)[:3]).max() for each in results]
    best = int(np.argmin(gaps))
    assert gaps[best] < 1e-8
    assert sorted(gaps)[-1] > 1e-6, "orders should differ"
    expected = oracle.global_step(case.rows, results[best], case.mixture)
    for natural, other in zip(globals_of(found, float(n)).naturals, expected.naturals, strict=True):
        np.testing.assert_allclose(natural, other, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize("n", [40, 1001, 2500])
def test_statistics_are_conserved(likelihood: LikelihoodName, process: ProcessName, n: int) -> None:
    """sum_k S_k = sum_n T(x_n), also where blocks of rows share a step."""
    case = make_case(12, n=n, likelihood=likelihood, process=process, weighted=True)
    found = fit(case, sample_weight=case.weights)
    prior = case.mixture.likelihood.prior_natural
    sums = sum(natural - prior for natural in globals_of(found).naturals)
    expected = case.weights @ case.mixture.likelihood.sufficient_statistics(case.rows)
    np.testing.assert_allclose(sums, expected, rtol=1e-9, atol=1e-9 * case.scale)
    # Every row has responsibilities, so there is a bound, and the first pass raises it.
    first = fit(case, sb.Full(max_passes=1, sparsity=None), sample_weight=case.weights)
    assert np.isfinite(found.elbo)
    assert first.elbo >= found.elbo - 1e-9 * case.scale


def test_orders_follow_the_seed_and_threads_make_no_difference() -> None:
    case = make_case(13, n=3000, dimension=2)
    fits = [fit(case, threads=threads, seed=seed) for threads, seed in [(1, 0), (2, 0), (1, 1)]]
    assert visible_bits(fits[0], case.rows[:50]) == visible_bits(fits[1], case.rows[:50])
    assert visible_bits(fits[0], case.rows[:50]) != visible_bits(fits[2], case.rows[:50])


@pytest.mark.parametrize("process", PROCESSES)
def test_components_do_not_stay_alike(process: ProcessName) -> None:
    case = make_case(14, n=200, process=process)
    counts = fit(case, sb.Full(max_passes=20)).counts
    assert len(np.unique(np.round(counts, 6))) > 1


def test_with_batches_it_is_a_start_of_every_batch() -> None:
    rows = clustered_rows(np.random.default_rng(3), 600, 2, 3)
    model = sb.Mixture(likelihood=sb.Gaussian())
    settings = {"init": "sequential", "n_components": 4, "progress": False}
    assert np.isnan(sb.fit(model, rows, sb.Memoized(batches=3, max_passes=0), **settings).elbo)
    bounds = [record.elbo for record in sb.fit(model, rows, sb.Memoized(batches=3, max_passes=10), **settings).history]
    assert (np.diff(bounds) >= -1e-9 * np.abs(bounds[1:])).all()


def test_more_components_than_can_be_told_apart() -> None:
    rows = np.ones((6, 2))
    for process in (sb.DirichletProcess(), sb.FiniteDirichlet(n_components=6)):
        model = sb.Mixture(likelihood=sb.Gaussian(), process=process)
        found = sb.fit(model, rows, sb.Full(max_passes=3), init="sequential", n_components=6, progress=False)
        assert found.counts.sum() == pytest.approx(6)
