"""Checkpoints with parts changed before the checksum: a fit resumes from them, or refuses them with a reason."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import stickbreak as sb
from fuzzing import Failure, generator
from fuzzing.model_files import wild_json
from stickbreak.io import files

_KIND = 3
_ROWS = np.random.default_rng(0).normal(size=(30, 2)) + np.repeat([[-5.0], [5.0]], 15, axis=0)


def run(seed: int, number: int) -> str:
    """Run one case; return how it ended."""
    rng = generator(seed, _KIND, number)
    algorithm = _ALGORITHMS[rng.integers(len(_ALGORITHMS))]
    header, arrays = _parts(algorithm)
    header, content = dict(header), bytearray(arrays["run"].tobytes())
    choice = rng.integers(4)
    if choice == 0:
        header[sorted(header)[rng.integers(len(header))]] = wild_json(rng)
    elif choice == 1:
        del content[int(rng.integers(len(content))) :]
    else:
        # The first bytes are names, followed by counts and numbers.
        for index in rng.integers(len(content), size=rng.integers(1, 5)):
            content[index] = (
                content[index] ^ (1 << int(rng.integers(8))) if choice == 2 else int(rng.choice([0, 1, 127, 255]))
            )
    files.write(_scratch(), header, {**arrays, "run": np.frombuffer(bytes(content), np.uint8)}, files.CHECKPOINT)
    try:
        fit = _fit(algorithm)
    except sb.CheckpointError:
        return "refused"
    except sb.NumericalError:
        return "NumericalError"
    if not np.isfinite(fit.weights).all():
        raise Failure(f"resumed, but not finite: {fit!r}")
    return "resumed"


def _fit(algorithm: Any) -> sb.Fit:
    model = sb.Mixture(likelihood=sb.Gaussian())
    checkpoint = sb.Checkpoint(_scratch(), every_seconds=1e9)
    return sb.fit(model, _ROWS, algorithm, n_components=3, n_init=2, threads=1, progress=False, checkpoint=checkpoint)


_ALGORITHMS = [sb.Full(max_passes=3, tol=0), sb.Memoized(batches=3, max_passes=3, tol=0, sparsity=2)]


@cache
def _parts(algorithm: Any) -> tuple[files.Header, files.Arrays]:
    """Return the checkpoint of a fit that has ended; a longer one goes on from it."""
    _scratch().unlink(missing_ok=True)
    shorter = type(algorithm)(**{**vars(algorithm), "max_passes": 2})
    _fit(shorter)
    return files.read(_scratch(), files.CHECKPOINT)


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="stickbreak-fuzz-")


def _scratch() -> Path:
    return Path(_folder().name) / f"{os.getpid()}.checkpoint"
