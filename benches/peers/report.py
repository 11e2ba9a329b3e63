"""Scores of a run, and the table of all runs of a data set."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from contenders import Contender
from problems import Problem
from scoring import Posterior, elbo, log_predictive

# "Reached" is within this many nats a row of the common bound.
NEAR = 1e-3
HEADER = (
    f"{'':<37}{'pass, s':>9}{'CPU':>9}{'ratio':>7}{'reached':>9}{'s':>9}{'CPU':>9}{'MB':>7}{'occupied':>9}"
    f"{'ELBO/row':>11}{'held out':>11}"
)


@dataclass
class Run:
    """A contender's run on a data set; lists have an entry a pass, those of the scorer one a checkpoint."""

    name: str
    package: str
    dense_full: bool
    load: list[float]
    versions: dict[str, str]
    blas: list[str]
    wall_seconds: list[float]
    cpu_seconds: list[float]
    peak_mb_above_start: float
    peak_mb: float
    # The package's own bound of the summary behind each posterior.
    own_elbo: list[float]
    # The package's own value of the last scored bound, where it can say one.
    own_evaluation: float | None
    checkpoints: list[int]
    elbo: list[float]
    occupied: int
    held_out: float
    held_out_error: float

    def a_pass(self, seconds: list[float]) -> float:
        """Median seconds of a pass; the first one also holds the start."""
        steps = np.diff(seconds)
        return float(np.median(steps)) if len(steps) else seconds[0]

    def reached(self, target: float, n: int) -> int | None:
        """The first checkpoint within reach of the common bound."""
        near = [at for at, value in zip(self.checkpoints, self.elbo, strict=True) if value >= target - NEAR * n]
        return near[0] if near else None

    def as_json(self, target: float, n: int) -> dict[str, Any]:
        at = self.reached(target, n)
        return asdict(self) | {
            "wall_seconds_a_pass": self.a_pass(self.wall_seconds),
            "cpu_seconds_a_pass": self.a_pass(self.cpu_seconds),
            "passes_to_common_elbo": at,
            "wall_seconds_to_common_elbo": None if at is None else self.wall_seconds[at - 1],
            "cpu_seconds_to_common_elbo": None if at is None else self.cpu_seconds[at - 1],
        }


def score(contender: Contender, result: dict[str, Any], problem: Problem, folder: Path, load: list[float]) -> Run:
    posteriors = [Posterior.load(folder / f"pass_{index:04d}.npz") for index in result["checkpoints"]]
    densities = log_predictive(problem.test, posteriors[-1], problem.prior)
    return Run(
        name=contender.name,
        package=contender.package,
        dense_full=contender.dense_full,
        load=load,
        versions=result["versions"],
        blas=result["blas"],
        wall_seconds=result["wall_seconds"],
        cpu_seconds=result["cpu_seconds"],
        peak_mb_above_start=result["peak_mb"] - result["base_mb"],
        peak_mb=result["peak_mb"],
        own_elbo=result["own_elbo"],
        own_evaluation=result["own_evaluation"],
        checkpoints=result["checkpoints"],
        elbo=[elbo(problem.train, posterior, problem.prior) for posterior in posteriors],
        occupied=int(np.count_nonzero(posteriors[-1].counts >= 0.5)),
        held_out=float(densities.mean()),
        held_out_error=float(densities.std() / np.sqrt(len(densities))),
    )


def common_elbo(runs: list[Run]) -> float:
    """What the dense full schedules end with. Their steps are the same, so the lowest of them is what all have."""
    return min(run.elbo[-1] for run in runs if run.dense_full)


def table(runs: list[Run], target: float, n: int) -> str:
    """One line a run, and below them what each package says itself."""
    reference = [run for run in runs if run.package == "scikit-learn"]
    lines = [HEADER]
    for run in runs:
        at = run.reached(target, n)
        ratio = reference[0].a_pass(reference[0].cpu_seconds) / run.a_pass(run.cpu_seconds) if reference else np.nan
        reached = (
            f"{'no':>9}{'':>18}"
            if at is None
            else f"{f'pass {at}':>9}{run.wall_seconds[at - 1]:>9.2f}{run.cpu_seconds[at - 1]:>9.2f}"
        )
        lines.append(
            f"{run.name:<37}{run.a_pass(run.wall_seconds):>9.4f}{run.a_pass(run.cpu_seconds):>9.4f}"
            f"{ratio:>7.1f}{reached}"
            f"{run.peak_mb_above_start:>7.0f}{run.occupied:>9}{run.elbo[-1] / n:>11.5f}{run.held_out:>11.5f}"
        )
    said = [f"  {run.name:<36}{run.own_elbo[-1] / n:>16.10f}{own_of_last(run):>16}" for run in runs]
    explained = (
        "by the packages themselves, as a check: ELBO a row of the summary behind the last posterior, which the\n"
        "scorer's local step can only raise; and where they can compute what the scorer does, the relative difference"
    )
    return "\n".join([*lines, "", explained, *said])


def own_of_last(run: Run) -> str:
    return "" if run.own_evaluation is None else f"{(run.own_evaluation - run.elbo[-1]) / abs(run.elbo[-1]):+.1e}"
