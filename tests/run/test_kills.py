"""kill -9 at random moments, each time followed by the same call: every kind of run leads to the same bits."""

import itertools
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends SIGKILL")

# A kind of run, and the file of its checkpoint if there is one; prints a hash of all numbers that it finds.
PROGRAM = """
import hashlib, sys
import numpy as np
import stickbreak as sb

checkpoint = sb.Checkpoint(sys.argv[2], every_seconds=0) if len(sys.argv) > 2 else None
rng = np.random.default_rng(0)
noise = rng.standard_normal((20_000, 6))
rows = noise + 5.0 * rng.standard_normal((12, 6))[rng.integers(12, size=len(noise))]
few = rows[:300, :2]
lines = noise[:360, :2] + 7.0 * (np.arange(360) % 12)[:, None] * np.eye(2)[0]
counts = rng.poisson(0.2 * rng.gamma(0.5, size=(6, 300))[rng.integers(6, size=1500)])
model = sb.Mixture(likelihood=sb.Gaussian())
moves = (sb.Birth(), sb.Merge(), sb.Delete())

def fit(data, algorithm, model=model, **options):
    found = sb.fit(model, data, algorithm, seed=1, threads=2, checkpoint=checkpoint, **options)
    history = [(record.elbo, record.objective, record.n_components, record.n_units) for record in found.history]
    # Those of blocks of columns have names in names.
    parts = [own.values() if isinstance(own, dict) else [own] for own in found.components.values()]
    return [found.counts, found.weights, *sum(map(list, parts), []), np.array(history)]

def sample(sampler, process=sb.DirichletProcess(sb.Gamma(1.0, 1.0)), **options):
    model = sb.Mixture(likelihood=sb.Gaussian(prior="rule"), process=process)
    options = {"draws": 150, "warmup": 50, "chains": 2, "seed": 1, "threads": 2} | options
    found = sb.sample(model, few, sampler, checkpoint=checkpoint, **options)
    return [found.partitions, found.log_joint, found.n_clusters, *found.hyperparameters.values()]

def holes():
    return np.where(rng.random(noise.shape) < 0.1, np.nan, rows)

def mixed():
    table = np.column_stack([rows[:, :3], rng.poisson(np.exp(np.clip(rows[:, 3] / 4, -2.0, 3.0))), rows[:, 4] > 0])
    table[rng.random(len(table)) < 0.2, :3] = np.nan
    table[rng.random(len(table)) < 0.1, 3] = np.nan
    return table

def blocks():
    return iter(np.array_split(rows, 7))

def memoized(**options):
    return sb.Memoized(**({"batches": 10, "sparsity": 3, "max_passes": 25, "tol": 0.0} | options))

def topics(**options):
    words = sb.Words(restarts=2)
    return fit(counts, memoized(batches=4, units=words, **options), sb.TopicModel(sb.LatentDirichlet(8, None)))

columns = sb.Columns({(2, 0, 1): sb.Gaussian(), 3: sb.NegativeBinomial(), 4: sb.Bernoulli()})
normalized = sb.NormalizedGeneralizedGamma(sb.Gamma(1.0, 1.0), sb.Beta(1.0, 1.0))
runs = {
    "rows": lambda: fit(noise, memoized(), n_components=20),
    "full": lambda: fit(rows, sb.Full(max_passes=40, tol=0.0), n_components=20),
    "moves": lambda: fit(rows, memoized(moves=moves)),
    "labels": lambda: fit(rows, memoized(moves=moves), labels=np.where(np.arange(len(rows)) % 9, -1, rows[:, 0] > 0)),
    "search": lambda: fit(lines, None),
    "starts": lambda: fit(rows, memoized(moves=moves, max_passes=8), n_init=3),
    "stochastic": lambda: fit(rows, sb.Stochastic(500, max_passes=25), n_components=20),
    "trees": lambda: fit(rows, memoized(moves=moves, units=sb.KdTree(refine=False, tolerance=0.0, depth=4))),
    "refined": lambda: fit(rows, memoized(moves=moves, units=sb.KdTree())),
    "missing": lambda: fit(
        holes(), memoized(), sb.Mixture(likelihood=sb.DiagonalGaussian()), missing="marginalize", n_components=20
    ),
    "columns": lambda: fit(
        mixed(), memoized(moves=moves), sb.Mixture(likelihood=columns), missing="marginalize", n_components=20
    ),
    "blocks": lambda: fit(blocks, memoized(shuffle=False), n_components=20),
    "topics": lambda: topics(max_passes=60),
    "gibbs": lambda: sample(sb.CollapsedGibbs(), normalized, draws=1500),
    "split-merge": lambda: sample(sb.SplitMerge()),
    "tree-guided": lambda: sample(sb.TreeGuided(global_moves=3), draws=60),
    "blocked": lambda: sample(sb.BlockedGibbs(), draws=1000),
    "slice": lambda: sample(sb.Slice(), draws=1000),
}
found = runs[sys.argv[1]]()
print(hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in found)).hexdigest())
"""
RUNS = [line.split('"')[1] for line in PROGRAM.splitlines() if line.startswith('    "') and '": lambda' in line]


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments], stdout=subprocess.PIPE, text=True)


def start_until(path: Path, kind: str) -> subprocess.Popen[str]:
    """Start a run and wait for its checkpoint."""
    process = start(kind, str(path))
    while process.poll() is None and not path.exists():
        time.sleep(0.001)
    return process


def killed_and_resumed(kind: str, path: Path, n_kills: int, moments: Iterator[float]) -> tuple[int, str]:
    """Kill a run at random moments after its first checkpoint, then let it end; return how often it was killed."""
    kills = 0
    while kills < n_kills:
        process = start_until(path, kind)
        time.sleep(next(moments))
        ended = process.poll() is not None
        process.kill()
        process.communicate()
        if ended:
            break
        kills += 1
    out, _ = start(kind, str(path)).communicate()
    return kills, out


def survives(kind: str, kills: int, folder: Path) -> None:
    path = folder / "whole.checkpoint"
    process = start_until(path, kind)
    began = time.monotonic()
    whole, _ = process.communicate()
    assert len(whole) == 65
    path.unlink()
    # Runs that were killed have less left to do.
    latest = min(0.4, (time.monotonic() - began) / 2)
    random_state = random.Random(11)
    moments, done = (random_state.uniform(0.0, latest) for _ in itertools.count()), 0
    for turn in range(2 * kills):
        path = folder / f"{turn}.checkpoint"
        now, resumed = killed_and_resumed(kind, path, min(3, kills - done), moments)
        done += now
        assert resumed == whole
        assert os.listdir(folder) == [path.name]
        path.unlink()
        if done == kills:
            return
    assert done, "all runs ended before they could be killed"


@pytest.mark.parametrize("kind", RUNS)
@pytest.mark.one_in(len(RUNS))
def test_every_kind_of_run_survives_a_kill(kind: str, tmp_path: Path) -> None:
    survives(kind, 1, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("kind", RUNS)
def test_every_kind_of_run_survives_a_hundred_kills(kind: str, tmp_path: Path) -> None:
    survives(kind, 100, tmp_path)
