"""The search after the moves are exhausted: a loose prior, and a start from a tree (mathematics 10.8 and 10.9)."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stickbreak as sb
from cases import visible_bits

Rows = np.ndarray


def clusters(centres: Rows, n: int, deviation: float, seed: int) -> tuple[Rows, Rows]:
    """Return `n` rows around each centre, and labels."""
    noise = np.random.default_rng(seed).normal(size=(n * len(centres), centres.shape[1]))
    return np.repeat(centres, n, axis=0) + deviation * noise, np.repeat(np.arange(len(centres)), n)


def grid(*sides: int) -> Rows:
    """Return centres at a distance of 4 from their neighbours."""
    return 4.0 * np.stack(np.meshgrid(*map(np.arange, sides), indexing="ij"), axis=-1).reshape(-1, len(sides))


def objective(fit: sb.Fit) -> float:
    return fit.history[-1].objective


def default(rows: Rows, likelihood: Any = None, **options: Any) -> sb.Fit:
    return sb.fit(sb.Mixture(likelihood or sb.Gaussian()), rows, progress=False, **options)


def check_found(rows: Rows, labels: Rows, likelihood: Any = None, **options: Any) -> sb.Fit:
    """Check that the default call ends where a start from the labels does, and that its objective never falls."""
    found, told = (default(rows, likelihood, **options, **start) for start in ({}, {"init": labels}))
    assert objective(found) == pytest.approx(objective(told), abs=2.0)
    objectives = [record.objective for record in found.history]
    assert all(now >= before - 1e-6 * abs(before) for before, now in pairwise(objectives))
    assert found.history[-1].elbo == pytest.approx(found.elbo)
    assert found.history[-1].n_components == found.n_components
    return found


def test_a_grid_of_clusters() -> None:
    """Its first components are rows of the grid, after which the estimated prior refuses every split."""
    found = check_found(*clusters(grid(5, 8), 25, 0.5, seed=0))
    assert found.n_occupied == 40


def test_components_do_not_multiply_where_rows_are_few_and_columns_many() -> None:
    """Under a loose prior 28 more births of components of a few rows would be accepted, all for nothing."""
    generator = np.random.default_rng(0)
    centres, labels = 2.0 * generator.normal(size=(6, 60)), generator.integers(6, size=600)
    found = default(centres[labels] + generator.normal(size=(600, 60)))
    best = max(record.objective for record in found.history)
    after = [record for record in found.history if record.objective > best - 1e-6 * abs(best)][1:]
    assert found.n_components == 6
    assert after
    assert not any(move.accepted for record in after for move in record.moves)


def test_a_grid_of_clusters_without_trees() -> None:
    """Trees take no weights, so the loose prior must find the clusters, and be estimated again after that."""
    found = check_found(*clusters(grid(5, 8), 25, 0.5, seed=0), sample_weight=np.ones(1000))
    assert found.n_occupied == 40


@pytest.mark.slow
@pytest.mark.parametrize("sides", [(7, 7), (10, 10), (4, 4, 4)])
def test_more_grids(sides: tuple[int, ...]) -> None:
    check_found(*clusters(grid(*sides), 25, 0.5, seed=1))


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", [sb.DiagonalGaussian(), sb.SphericalGaussian()])
def test_a_grid_under_other_covariances(likelihood: Any) -> None:
    check_found(*clusters(grid(5, 8), 25, 0.5, seed=0), likelihood)


def line(n: int, columns: int) -> Rows:
    """Return centres at a distance of 7 along the first column."""
    return 7.0 * np.arange(n)[:, None] * np.eye(columns)[0]


def test_a_line_of_clusters() -> None:
    """They are much narrower than the data in one column only."""
    assert check_found(*clusters(line(16, 2), 30, 1.0, seed=2)).n_occupied == 16


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", [sb.Gaussian(), sb.DiagonalGaussian(), sb.SphericalGaussian()])
def test_many_clusters_in_one_column(likelihood: Any) -> None:
    assert check_found(*clusters(line(40, 1), 40, 1.0, seed=0), likelihood).n_occupied == 40


@pytest.mark.slow
def test_a_circle_of_clusters() -> None:
    """Trees come apart cleanly only under a base measure that is sure of the common shape."""
    angles = 2.0 * np.pi * np.arange(64) / 64
    centres = 61.1 * np.column_stack([np.cos(angles), np.sin(angles)])
    assert check_found(*clusters(centres, 30, 1.0, seed=0)).n_occupied == 64


@pytest.mark.long
def test_more_clusters_than_the_compared_rows_show() -> None:
    """Only the base measure comes from 2,000 of 10,000 rows."""
    assert check_found(*clusters(grid(20, 20), 25, 0.5, seed=0)).n_occupied == 400


@pytest.mark.long
@pytest.mark.xfail(reason="ends 2.5 nats below the true clusters, where 2 are allowed", strict=True)
def test_more_rows_than_the_trees_take() -> None:
    """The clusters come from 20,000 of 22,500 rows, and their sums count for all."""
    assert check_found(*clusters(grid(30, 30), 25, 0.5, seed=0)).n_occupied == 900


def test_whitened_clusters() -> None:
    """Every direction has the same variance, so that only the shape along one of them shows two clusters."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=700)
    rows = rng.normal(size=(700, 15)) + 8.0 * np.eye(15)[0] * labels[:, None]
    left, _, right = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    found = check_found(np.sqrt(700) * left @ right, labels)
    assert found.n_occupied == 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::stickbreak.Advice")  # two rows span no columns
@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 150),
    columns=st.integers(1, 4),
    k=st.integers(1, 8),
    full=st.booleans(),
)
def test_the_objective_never_falls(seed: int, n: int, columns: int, k: int, full: bool) -> None:
    """Over all stages, whatever the rows: until another state is better, the history shows the best one."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(3.0 * rng.normal(size=(k, columns))[rng.integers(k, size=n)], rng.gamma(1.0, size=columns) + 1e-3)
    found = default(rows, sb.Gaussian() if full else sb.DiagonalGaussian(), seed=seed)
    objectives = [record.objective for record in found.history]
    assert all(now >= before - 1e-6 * (1.0 + abs(before)) for before, now in pairwise(objectives))
    assert found.objective >= objectives[-1] - 1e-6 * (1.0 + abs(objectives[-1]))


@pytest.mark.slow
def test_a_search_goes_on_from_every_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From checkpoints of each stage, also where a tree or rearrangements come next, to the same bits."""
    rows, _ = clusters(line(12, 2), 25, 1.0, seed=3)
    path, written = tmp_path / "fit.checkpoint", []
    write = sb.run.checkpoints.CheckpointFile.write

    def keep(self: Any, run: bytes) -> None:
        write(self, run)
        written.append(path.read_bytes())

    monkeypatch.setattr(sb.run.checkpoints.CheckpointFile, "write", keep)
    whole = default(rows, checkpoint=sb.Checkpoint(path, every_seconds=0))
    assert len(written) >= 10  # a pass or a step of the search may be shorter than the clock can tell
    for state in written[:: 1 + len(written) // 20]:
        path.write_bytes(state)
        assert visible_bits(default(rows, checkpoint=sb.Checkpoint(path, every_seconds=600)), rows) == visible_bits(
            whole, rows
        )
    assert visible_bits(default(rows), rows) == visible_bits(whole, rows)
