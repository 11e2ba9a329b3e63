"""The mixture of the demo, and how well the patches of one photograph predict those of another."""

import sys
import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import stickbreak as sb
from stickbreak.demo.patches import Patches, contrast_strata


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of the fit."""

    n_components: int = 1
    sparsity: int = 4
    max_passes: int = 10
    seed: int = 0
    threads: int | None = None


class Score(NamedTuple):
    """Mean log density of rows in nats, and its standard error as if the rows were independent."""

    mean: float
    standard_error: float


def fit_patches(rows: Patches, settings: Settings) -> sb.Fit:
    """Fit the mixture of the demo and report progress; Ctrl-C ends the fit with the current state."""
    n_components = min(settings.n_components, len(rows))
    on_terminal = sys.stderr is not None and sys.stderr.isatty()
    with warnings.catch_warnings():
        # Pixels minus their mean sum to zero, so the last one depends on the others.
        warnings.simplefilter("ignore", sb.SupportWarning)
        return sb.fit(
            sb.Mixture(likelihood=sb.ZeroMeanGaussian(), process=sb.DirichletProcess(concentration=1.0)),
            rows,
            sb.Memoized(
                sparsity=settings.sparsity, max_passes=settings.max_passes, moves=(sb.Birth(), sb.Merge(), sb.Delete())
            ),
            n_components=n_components,
            init=contrast_strata(rows, n_components),
            seed=settings.seed,
            threads=settings.threads,
            progress=on_terminal,
            callbacks=() if on_terminal else (_tell,),
        )


def score(log_densities: NDArray[np.float64]) -> Score:
    """Return the mean of log densities, and its standard error."""
    return Score(float(log_densities.mean()), float(log_densities.std(ddof=1) / np.sqrt(len(log_densities))))


def _tell(record: sb.Record) -> None:
    found = f"{record.n_components:4} components  elbo {record.elbo:.8g}"
    print(f"pass {record.index + 1:3}  {record.seconds:6.1f} s  {found}", flush=True)
