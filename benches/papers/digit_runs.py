"""A run on the digits, what is kept of it, and how groups of runs are told."""

import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

import stickbreak as sb
from digits import N_DIGITS, Array, Digits
from figures import folder


@dataclass(frozen=True)
class Run:
    """Losses are -ELBO / (n D), those of `passes`; a stochastic run knows that of its end only."""

    name: str
    seed: int
    passes: list[int]
    losses: list[float]
    # Wall seconds since the fit began, the start included, and CPU seconds at the end.
    seconds: list[float]
    cpu: float
    components: list[int]
    # Components that are the best one of an image, and the share of images that have the most frequent digit of theirs.
    effective: int
    alignment: float
    evaluated_share: float

    @property
    def loss(self) -> float:
        return self.losses[-1]

    def loss_after(self, passes: int) -> float:
        """After the last of so many passes that there was."""
        known = [loss for number, loss in zip(self.passes, self.losses, strict=True) if number <= passes]
        return known[-1] if known else float("nan")

    def until(self, loss: float) -> float | None:
        """Seconds until the loss was below that."""
        return next((at for at, own in zip(self.seconds, self.losses, strict=True) if own < loss), None)


def run(
    digits: Digits,
    name: str,
    algorithm: sb.Full | sb.Memoized | sb.Stochastic,
    model: sb.Mixture,
    *,
    seed: int,
    threads: int,
    n_components: int = 1,
    init: str = "kmeans++",
) -> tuple[Run, sb.Fit]:
    begun, cpu = time.perf_counter(), time.process_time()
    found = sb.fit(
        model,
        digits.rows,
        algorithm,
        n_components=n_components,
        init=init,
        seed=seed,
        threads=threads,
        progress=False,
    )
    seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    records = [record for record in found.history if np.isfinite(record.elbo)]
    points = [(record.index + 1, record.elbo, record.seconds, record.n_components) for record in records]
    if not points:
        points = [(len(found.history), found.elbo, seconds, found.n_components)]
    passes, bounds, times, components = (list(values) for values in zip(*points, strict=True))
    return Run(
        name=name,
        seed=seed,
        passes=passes,
        losses=[loss(digits, bound) for bound in bounds],
        seconds=[round(second, 3) for second in times],
        cpu=round(cpu, 2),
        components=components,
        evaluated_share=float(np.mean([record.evaluated_share for record in found.history])),
        **clusters(digits, found, threads),
    ), found


def loss(digits: Digits, bound: float) -> float:
    return round(-bound / digits.rows.size, 6)


def clusters(digits: Digits, found: sb.Fit, threads: int) -> dict[str, float]:
    table = members(digits, found, threads)
    return {
        "effective": int(np.count_nonzero(table.sum(axis=1))),
        "alignment": float(table.max(axis=1).sum() / len(digits.labels)),
    }


def members(digits: Digits, found: sb.Fit, threads: int) -> Array:
    """How many images of each digit each component is the best one of, shape (K, 10)."""
    table = np.zeros((found.n_components, N_DIGITS))
    np.add.at(table, (found.predict(digits.rows, threads=threads), digits.labels), 1.0)
    return table


def spread(values: Sequence[float | None], digits: int) -> str:
    """Median and range, or the one value that all have; None is never."""
    known = [np.inf if value is None else value for value in values]
    middle, low, high = (number(value, digits) for value in (np.median(known), min(known), max(known)))
    return middle if low == high else f"{middle} ({low} to {high})"


def number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if value < np.inf else "never"


def threads_and_load(threads: int) -> str:
    return f"{threads} threads of {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"


def keep(name: str, runs: Sequence[Run]) -> None:
    """In a file beside the figures, from which they can be drawn elsewhere."""
    (folder() / f"{name}.json").write_text(json.dumps([asdict(run) for run in runs]) + "\n")


def kept(name: str) -> list[Run]:
    file = folder() / f"{name}.json"
    return [Run(**run) for run in json.loads(file.read_text())] if file.is_file() else []
