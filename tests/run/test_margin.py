"""The components that a margin drops, the cost, and the saved work."""

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stickbreak as sb

K = 6
MODEL = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())


def overlapping_rows(seed: int, n: int = 300, dimension: int = 12) -> np.ndarray:
    """Clusters that share many rows; wide enough for factors of several bands."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=1.5, size=(K, dimension))
    return centres[rng.integers(0, K, n)] + rng.normal(size=(n, dimension))


def far_clusters(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Clusters far apart, one after the other, and their labels."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=30, size=(K, 20))
    return np.repeat(centres, 400, axis=0) + rng.normal(size=(400 * K, 20)), np.repeat(np.arange(K), 400)


def fit(rows: np.ndarray, algorithm: sb.Full | sb.Memoized, **options: object) -> sb.Fit:
    return sb.fit(MODEL, rows, algorithm, **{"n_components": K, "progress": False, **options})


@settings(max_examples=25)
@given(st.integers(0, 1000), st.floats(0.0, 25.0), st.sampled_from([None, 3]))
def test_a_margin_costs_at_most_what_is_said(seed: int, margin: float, sparsity: int | None) -> None:
    """At the same components, a margin lowers the bound of one local step by at most n K exp(-margin)."""
    rows = overlapping_rows(seed)
    with_margin = fit(rows, sb.Full(max_passes=2, tol=0.0, sparsity=sparsity, margin=margin))
    # No pass, so the same components, and nothing left out.
    exact = fit(rows, sb.Full(max_passes=0, sparsity=sparsity), init=with_margin)
    np.testing.assert_array_equal(exact.components["mean"], with_margin.components["mean"])
    lost = exact.evaluate(rows) - with_margin.evaluate(rows)
    assert -1e-9 * abs(with_margin.elbo) <= lost <= len(rows) * K * math.exp(-margin) + 1e-9 * abs(with_margin.elbo)


@settings(max_examples=25)
@given(st.integers(0, 1000), st.floats(2.0, 25.0), st.integers(1, 4))
def test_the_bound_falls_by_no_more_than_the_margin_costs(seed: int, margin: float, batches: int) -> None:
    rows = overlapping_rows(seed)
    found = fit(rows, sb.Memoized(batches=batches, max_passes=8, tol=0.0, margin=margin))
    bounds = [record.elbo for record in found.history]
    allowed = len(rows) * K * math.exp(-margin) + 1e-9 * abs(bounds[-1])
    assert all(after >= before - allowed for before, after in pairwise(bounds))


def test_no_margin_at_all_keeps_the_best_component_only() -> None:
    rows = overlapping_rows(1)
    hard = fit(rows, sb.Full(max_passes=5, tol=0.0, sparsity=1))
    cut = fit(rows, sb.Full(max_passes=5, tol=0.0, sparsity=None, margin=0.0))
    np.testing.assert_allclose(cut.elbo, hard.elbo, rtol=1e-12)
    np.testing.assert_allclose(cut.counts, hard.counts, atol=1e-9)


def test_the_share_of_scores_that_were_computed() -> None:
    """Far clusters are abandoned; where all components are kept, none is."""
    rows, labels = far_clusters(2)

    def share(sparsity: int | None, margin: float | None) -> float:
        algorithm = sb.Full(max_passes=3, tol=0.0, sparsity=sparsity, margin=margin)
        return fit(rows, algorithm, init=labels).history[-1].evaluated_share

    assert share(None, None) == 1.0
    assert 1 / K <= share(2, 20.0) <= share(2, None) <= 1.0
    # One component for nearly all of a block: its own.
    assert share(2, 20.0) < 1.5 / K


@pytest.mark.parametrize("margin", [8.0, 20.0])
def test_the_same_bits_for_any_threads_and_in_a_file(margin: float, tmp_path: Path) -> None:
    rows = overlapping_rows(3, n=3000)
    algorithm = sb.Memoized(batches=3, max_passes=6, tol=0.0, sparsity=4, margin=margin)
    one, two = fit(rows, algorithm, threads=1), fit(rows, algorithm, threads=2)
    assert one.elbo == two.elbo
    assert [record.evaluated_share for record in one.history] == [record.evaluated_share for record in two.history]
    one.save(tmp_path / "m.safetensors")
    assert sb.load(tmp_path / "m.safetensors").evaluate(rows) == one.evaluate(rows)


@settings(max_examples=8)
@given(
    st.integers(0, 1000),
    st.integers(1, 2),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from([sb.Gaussian(), sb.ZeroMeanGaussian()]),
)
def test_bounds_change_no_bit(
    seed: int, batches: int, dtype: type, likelihood: sb.Gaussian | sb.ZeroMeanGaussian
) -> None:
    """With or without memory for distance bounds: the same result, with different work."""
    rows = overlapping_rows(seed, n=33_000, dimension=20).astype(dtype)
    model = sb.Mixture(likelihood=likelihood, process=sb.DirichletProcess())
    without, bounded = (
        sb.fit(
            model,
            rows,
            sb.Memoized(batches=batches, max_passes=6, tol=0.0, sparsity=3, margin=15.0, bounds_memory=memory),
            n_components=K,
            seed=seed,
            progress=False,
        )
        for memory in (1, 2**23)
    )
    assert [record.elbo for record in bounded.history] == [record.elbo for record in without.history]
    for name, values in without.components.items():
        np.testing.assert_array_equal(bounded.components[name], values)
    np.testing.assert_array_equal(bounded.counts, without.counts)
    assert bounded.history[-1].evaluated_share <= without.history[-1].evaluated_share


@pytest.mark.slow
def test_bounds_spare_scores_where_there_is_room_for_them() -> None:
    rows = overlapping_rows(7, n=16_000, dimension=40)

    def share(memory: int, **settings: object) -> float:
        options = {"sparsity": 3, "margin": 8.0, **settings}
        algorithm = sb.Full(max_passes=8, tol=0.0, bounds_memory=memory, **options)
        return fit(rows, algorithm).history[-1].evaluated_share

    too_little = 2 * 2 * len(rows) * K
    assert share(2**23) < share(too_little) == share(1) < share(0) == 1.0
    assert share(2**23, sparsity=None) == share(1, sparsity=None)


def test_a_checkpoint_of_another_margin_is_refused(tmp_path: Path) -> None:
    rows, checkpoint = overlapping_rows(4), sb.Checkpoint(tmp_path / "c", every_seconds=0)
    fit(rows, sb.Full(max_passes=2, tol=0.0, margin=20.0), checkpoint=checkpoint)
    with pytest.raises(sb.CheckpointError, match="margin = 20"):
        fit(rows, sb.Full(max_passes=2, tol=0.0, margin=10.0), checkpoint=checkpoint)


@pytest.mark.parametrize("margin", [None, 12.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_that_are_given_up_are_not_missed(margin: float | None, dtype: type) -> None:
    """Abandoned scores change no bit of the first pass; later passes add in another order."""
    rows, labels = far_clusters(5)
    rows = rows.astype(dtype)
    settings = {"tol": 0.0, "sparsity": 2, "margin": margin}
    once = [fit(rows, sb.Full(max_passes=1, bounds_memory=memory, **settings), init=labels) for memory in (0, 2**20)]
    assert once[0].elbo == once[1].elbo
    plain, spared = (
        fit(rows, sb.Full(max_passes=9, bounds_memory=memory, **settings), init=labels) for memory in (0, 2**20)
    )
    np.testing.assert_allclose(spared.elbo, plain.elbo, rtol=1e-9 if dtype == np.float64 else 1e-6)
    assert {record.evaluated_share for record in plain.history} == {1.0}
    assert spared.history[-1].evaluated_share < 1.0
