"""Starts of memoized inference: all data count from the first pass on, however many batches there are."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stickbreak as sb

STARTS = ["kmeans++", "random", "sequential", "labels", "responsibilities", "fit"]


def start(kind: str, rows: np.ndarray, k: int, seed: int) -> dict[str, Any]:
    """The options of a start with k components."""
    labels = np.arange(len(rows)) % k
    if kind == "labels":
        return {"init": labels}
    if kind == "responsibilities":
        return {"init": 0.2 / k + 0.8 * np.eye(k)[labels]}
    if kind == "fit":
        # A start from fewer rows, at other places.
        return {"init": fit(rows[::2] + 1.0, sb.Full(max_passes=1, tol=0.0), init=labels[::2])}
    return {"init": kind, "n_components": k, "seed": seed}


def fit(rows: np.ndarray, algorithm: Any, truncation: str = "nested", **options: Any) -> sb.Fit:
    process = sb.DirichletProcess(truncation=truncation)
    model = sb.Mixture(likelihood=sb.DiagonalGaussian(), process=process)
    return sb.fit(model, rows, algorithm, threads=1, progress=False, **options)


@given(
    kind=st.sampled_from(STARTS),
    batches=st.integers(1, 6),
    truncation=st.sampled_from(["nested", "stick", "tail"]),
    weighted=st.booleans(),
    seed=st.integers(0, 10_000),
)
@pytest.mark.filterwarnings("ignore::stickbreak.ConvergenceWarning")
def test_every_start_has_the_mass_of_the_data(
    kind: str, batches: int, truncation: str, weighted: bool, seed: int
) -> None:
    """After the first pass of any start; a start that knows all rows has it at once. From random rows, which know
    nothing of the others, batches are all seen under the start, so the pass is that of a single batch."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(40, 2)) * 3
    weights = rng.gamma(2.0, size=40) if weighted else np.ones(40)
    options = start(kind, rows, 3, seed) | {"truncation": truncation, "sample_weight": weights}
    for passes in [1] if kind in ("random", "fit") else [0, 1]:
        found = fit(rows, sb.Memoized(batches=batches, max_passes=passes, tol=0.0), **options)
        assert found.counts.sum() + found.tail_count == pytest.approx(weights.sum(), rel=1e-9)
    if kind == "random":
        whole = fit(rows, sb.Full(max_passes=1, tol=0.0), **options)
        assert found.elbo == pytest.approx(whole.elbo, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("kind", STARTS[:3])
def test_batches_end_as_high_as_all_rows_at_once(kind: str) -> None:
    """Twelve components for four clusters, ten data sets: on average at most 0.005 nats a row below a single batch."""
    lower: dict[int, list[float]] = {3: [], 10: []}
    for seed in range(10):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(4, 3))[rng.integers(4, size=600)] * 5 + rng.normal(size=(600, 3))
        options = start(kind, rows, 12, seed)
        whole = fit(rows, sb.Full(max_passes=300), **options)
        for batches, found in lower.items():
            memoized = fit(rows, sb.Memoized(batches=batches, max_passes=300), **options)
            found.append((whole.elbo - memoized.elbo) / len(rows))
    assert all(np.mean(found) < 0.005 for found in lower.values()), lower
