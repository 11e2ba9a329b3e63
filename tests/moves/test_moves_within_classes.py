"""Moves of a fit with partial labels (mathematics 3.2): merges against the oracle, and what every move must keep."""

import itertools
from typing import Any

import numpy as np
import pytest
from test_merges import twins

import stickbreak as sb
from cases import Case, separated_mixture
from growing import assert_sound, bits, every_set
from oracles import engines, moves, partial
from oracles.models import Array
from oracles.partial import Classes
from test_oracles_of_moves import NESTED, WITH_MARGINAL

MODEL = sb.Mixture(likelihood=sb.Gaussian())


def counts_of_classes(fit: sb.Fit) -> dict[int, float]:
    return {int(value): float(fit.counts[fit.classes == value].sum()) for value in np.unique(fit.classes)}


def merged_by_the_oracle(case: Case, components: Classes, labels: Classes, k: int) -> tuple[moves.Merged, Array]:
    """A pass of the oracle with merges of pairs of one class for which the start did not rule them out."""
    rows, mixture, weights = case.rows, case.mixture, case.weights
    start = engines.with_tail(np.eye(k)[components], mixture, k)
    order = moves.falling(weights @ start, mixture)
    of_components = np.append(partial.classes_of_components(labels, components, k), [-1] * (start.shape[1] - k))[order]
    start = start[:, order]
    ledger = moves.Ledger.of(rows, start, mixture, weights)
    pairs = partial.pairs_of_one_class(of_components, list(itertools.combinations(range(k), 2)))
    pairs = [pair for pair in pairs if ledger.without_entropy(*pair) > 0]
    state = engines.global_step(rows, start, mixture, weights)
    swept = partial.local_step(rows, mixture, state, labels, of_components)
    return moves.settle_merges(rows, swept, mixture, pairs, weights), of_components


@pytest.mark.parametrize("likelihood", WITH_MARGINAL)
@pytest.mark.parametrize("process", NESTED)
@pytest.mark.one_in(2)
def test_merges_equal_the_oracle(likelihood: str, process: str) -> None:
    """The same merges, gains and bound; gains across classes are left."""
    case, _ = twins(likelihood, process)
    rng = np.random.default_rng(1)
    components = 3 * case.responsibilities.argmax(1) + rng.integers(3, size=len(case.rows))
    labels = np.where(rng.random(len(case.rows)) < 0.7, np.array([0, 0, 1, 1, 1, -1])[components], -1)
    expected, _ = merged_by_the_oracle(case, components, labels, 6)
    algorithm = sb.Full(sparsity=None, margin=None, max_passes=1, tol=0.0, moves=(sb.Merge(),))
    fit = sb.fit(
        case.model, case.rows, algorithm, init=components, labels=labels, sample_weight=case.weights, progress=False
    )
    (report,) = fit.history[0].moves
    assert report.accepted == len(expected.changes)
    assert report.gain == pytest.approx(sum(expected.changes), abs=1e-9 * case.scale)
    bound = moves.bound(case.rows, expected.responsibilities, case.mixture, case.weights)
    assert fit.elbo == pytest.approx(bound, abs=1e-9 * case.scale)
    assert set(fit.classes) == {-1, 0, 1}


def test_only_components_of_one_class_are_merged() -> None:
    """One cluster with two classes and a free part: without labels it is one component, with labels three stay."""
    rows = np.random.default_rng(0).normal(size=(120, 2))
    components = np.arange(120) % 6
    labels = np.where(np.arange(120) < 90, np.array([0, 0, 1, 1, -1, -1])[components], -1)
    algorithm = sb.Full(sparsity=None, max_passes=50, moves=(sb.Merge(),))
    assert sb.fit(MODEL, rows, algorithm, init=components, progress=False).n_components == 1
    fit = sb.fit(MODEL, rows, algorithm, init=components, labels=labels, progress=False)
    assert sorted(fit.classes) == [-1, 0, 1]


@every_set
@pytest.mark.parametrize("known", [0.02, 0.3, 1.0])
@pytest.mark.parametrize("n_batches", [1, 4])
def test_moves_keep_the_classes(moves: Any, known: float, n_batches: int) -> None:
    """The bound is monotone, and after births, splits, merges and deletes every class has at least its rows."""
    rows, clusters = separated_mixture(3, n=500, dimension=2, n_clusters=6, distance=5.0)
    rng = np.random.default_rng(2)
    labels = np.where(rng.random(500) < known, np.array([4, 4, 9, 9, -1, -1])[clusters], -1)
    weights = rng.choice([0.5, 1.0, 2.0], size=500)
    algorithm = sb.Memoized(batches=n_batches, moves=moves, max_passes=40)
    options: dict[str, Any] = {"sample_weight": weights, "labels": labels, "progress": False}
    fit = sb.fit(MODEL, rows, algorithm, threads=1, **options)
    assert_sound(fit, rows, weights.sum())
    assert set(fit.classes) >= {4, 9}
    counts = counts_of_classes(fit)
    for value in (4, 9):
        assert counts[value] >= weights[labels == value].sum() * (1.0 - 1e-9)
    assert counts.get(-1, 0.0) <= weights[labels == -1].sum() * (1.0 + 1e-9)
    assert fit.n_components > len(counts)
    other = sb.fit(MODEL, rows, algorithm, threads=4, **options)
    assert bits(other, rows) == bits(fit, rows)
    np.testing.assert_array_equal(other.classes, fit.classes)


def test_a_class_keeps_its_last_component() -> None:
    """Three rows of another class inside a cluster: a delete would gain, but leave them without a component."""
    rows = np.random.default_rng(0).normal(size=(200, 2))
    labels = np.zeros(200, dtype=int)
    labels[np.argsort((rows**2).sum(1))[:3]] = 1
    algorithm = sb.Memoized(moves=(sb.Merge(), sb.Delete()), max_passes=30)
    components = np.where(labels == 1, 2, np.arange(200) % 2)
    free = sb.fit(MODEL, rows, algorithm, init=components, progress=False)
    fit = sb.fit(MODEL, rows, algorithm, init=components, labels=labels, progress=False)
    assert free.n_components == 1
    assert sorted(fit.classes) == [0, 1]
    assert counts_of_classes(fit)[1] == pytest.approx(3.0, rel=1e-12)


def test_a_deleted_component_leaves_its_rows_to_their_class() -> None:
    """Rows of a deleted component go to components of their class, although those of another are nearer."""
    rng = np.random.default_rng(4)
    far, near = rng.normal(0.0, 1.0, size=(100, 1)), rng.normal(6.0, 1.0, size=(100, 1))
    few = np.array([[4.0], [4.5]])
    rows, labels = np.concatenate([far, near, few]), np.repeat([0, 1, 0], [100, 100, 2])
    components = np.repeat([0, 1, 2], [100, 100, 2])
    prior = sb.Gaussian(mean=[3.0], mean_precision=0.01, dof=3.0, scale=[[3.0]])
    model = sb.Mixture(likelihood=prior, process=sb.DirichletProcess(1e-9))
    fit = sb.fit(
        model, rows, sb.Full(moves=(sb.Delete(),), max_passes=20), init=components, labels=labels, progress=False
    )
    assert fit.n_components == 2
    assert counts_of_classes(fit) == pytest.approx({0: 102.0, 1: 100.0})
