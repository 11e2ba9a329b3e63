"""Advice on chains that did not mix, or not for long enough: `Trace.advice`."""

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stickbreak import _core
from stickbreak.errors import Advice, ConvergenceWarning, TruncationWarning
from stickbreak.result.draws import Chains, Ran
from stickbreak.result.fit import Fit
from stickbreak.result.support import columns

# R-hat and number of effective draws (over all chains) beyond which estimates are to be trusted (Vehtari et al. 2021).
MOST_RHAT, LEAST_ESS = 1.01, 400.0
# Fewer draws have no R-hat.
_LEAST_DRAWS = 4
# Share of the sweeps of `BlockedGibbs` with rows in the last components, above which the truncation matters.
_OFTEN = 0.01
# Clusters for each component of the fit above which rounded values or copies are probably the cause.
_MANY = 3.0
# Number of chains whose values are named.
_MOST_NAMED = 8
# Stops before all draws are made, and what caused them.
_CUT = {"max_seconds": "max_seconds", "interrupted": "an interrupt", "error": "an error"}


def warn_of_draws(advice: Iterable[Advice], stacklevel: int) -> None:
    """Warn of chains that did not mix, of too few components, and of clusters of equal values."""
    for one in advice:
        if isinstance(one, ConvergenceWarning | TruncationWarning) or one.kind == "repeats":
            warnings.warn(one, stacklevel=stacklevel + 1)


def of_chains(chains: Chains, quantities: Mapping[str, NDArray[Any]], *, closed: bool) -> Iterator[Advice]:
    """Yield the advice on chains and the quantities of their draws; `closed`: whether `SplitMerge` runs, too."""
    ran = chains.ran
    draws = chains.log_joint.shape[1]
    if draws < _LEAST_DRAWS:
        text = f"chains of {draws} draw{'' if draws == 1 else 's'} cannot be compared"
        yield ConvergenceWarning(text, kind="ess", suggestions=_longer(_usual_draws(chains), ran))
    if ran is not None:
        yield from _of_run(ran, chains.log_joint.shape[1], chains.n_clusters)
    values = {name: np.ascontiguousarray(found, dtype=np.float64) for name, found in quantities.items()}
    rhat = {name: _core.rhat(found) for name, found in values.items()}
    ess = {name: _core.ess(found) for name, found in values.items()}
    stuck = {name: values[name][:, 0] for name, found in rhat.items() if np.isinf(found)}
    apart = {name: found for name, found in rhat.items() if MOST_RHAT < found < np.inf}
    if stuck:
        each = "; ".join(f"{name} {_listed(found)}" for name, found in stuck.items())
        text = f"each chain stays at one value, and these differ: {each}"
        yield ConvergenceWarning(text, kind="stuck", suggestions=_tries(ran, closed))
    if apart:
        worst = sorted(apart.items(), key=lambda item: -item[1])
        text = (
            f"chains disagree: R-hat above {MOST_RHAT} of {', '.join(f'{name} ({rhat:.3f})' for name, rhat in worst)}"
        )
        yield ConvergenceWarning(text, kind="rhat", suggestions=_tries(ran, closed))
    few = {name: found for name, found in ess.items() if found < LEAST_ESS and name not in stuck}
    if few:
        least = sorted(few.items(), key=lambda item: item[1])
        each = ", ".join(f"{name} ({number:.0f})" for name, number in least)
        n = chains.log_joint.size
        text = f"fewer than {LEAST_ESS:.0f} of {n:,} draws are effective: {each}"
        yield ConvergenceWarning(text, kind="ess", suggestions=_longer(_more(least[0][1], chains), ran))
    if rhat["log_joint"] == 1.0 and np.isnan(ess["log_joint"]):
        yield from _of_still(chains, ran)
    elif ran is not None and len(set(ran.starts)) == 1 and ran.starts[0] in ("single", "singletons", "labels", "fit"):
        text = f'all chains started from the same place ("{ran.starts[0]}"), so agreement says little'
        yield Advice(text, kind="one_start", suggestions=('init="dispersed", so that chains start apart',))


def repeats_of(fit: Fit) -> str:
    """Return what a fit makes of copies and rounded values; empty if it found none."""
    if fit.search_rows is not None:
        return f"many rows are copies or have weights ({fit.search_rows:,} would say the same)"
    steps = getattr(fit.model.likelihood, "resolution", None)
    rounded = [] if steps is None else np.flatnonzero(np.zeros(fit._state.dimension) + steps).tolist()
    return f"values of {columns(rounded, fit.column_names)} are rounded" if rounded else ""


def _of_still(chains: Chains, ran: Ran | None) -> Iterator[Advice]:
    """Advise on chains that are all in one place."""
    n_clusters = int(chains.n_clusters[0, 0])
    of = f"all draws are one partition, of {n_clusters} cluster{'' if n_clusters == 1 else 's'}"
    starts = () if ran is None else tuple(dict.fromkeys(ran.starts))
    if len(starts) > 1:
        text = f"{of}; chains came there from different starts ({', '.join(starts)})"
        yield Advice(text, kind="still", suggestions=("more draws, if rare ones matter",))
    else:
        from_where = f', where all chains started ("{starts[0]}")' if starts else ""
        text = f"no chain moved: {of}{from_where}, so nothing tells whether there are better ones"
        yield ConvergenceWarning(text, kind="still", suggestions=('init="dispersed", so that chains start apart',))


def _of_run(ran: Ran, draws: int, n_clusters: NDArray[np.int64]) -> Iterator[Advice]:
    n_sweeps, n_reached = ran.last_tenth
    if n_reached > _OFTEN * n_sweeps:
        text = f"the last tenth of the components had rows in {n_reached} of {n_sweeps} sweeps, so that the truncation"
        yield TruncationWarning(f"{text} matters", suggestions=("a larger truncation", "Slice()"))
    mean = float(n_clusters.mean())
    if ran.repeats and mean > _MANY * ran.fit_components:
        text = (
            f"draws have {mean:.1f} clusters, where a fit has {ran.fit_components}: {ran.repeats}, which the model of "
            "a sampler takes for exact values of separate rows"
        )
        tries = ("the data without copies", "Categorical() for codes", "values plus uniform noise of a step")
        yield Advice(text, kind="repeats", suggestions=tries)
    if ran.stop_reason in _CUT and draws < ran.asked:
        text = f"chains ended after {draws:,} of {ran.asked:,} draws, by {_CUT[ran.stop_reason]}"
        more = max(ran.asked - draws, ran.ahead)
        longer = (f"trace.extend(draws={more})",) if ran.state else ()
        yield ConvergenceWarning(text, kind="stopped", suggestions=longer)


def _tries(ran: Ran | None, closed: bool) -> tuple[str, ...]:
    name = None if ran is None else ran.sampler[0]
    others = ("SplitMerge", "TreeGuided") if closed else ("BlockedGibbs", "Slice")
    first, last = (f"{other}()" for other in others)
    tries = (first, "a longer warmup", last)
    return tuple(one for one in tries if one != f"{name}()")


def _longer(more: int, ran: Ran | None) -> tuple[str, ...]:
    if ran is None or ran.state is None:
        return ("more draws, or thin",)
    return (f"trace.extend(draws={max(more, ran.ahead)})", "more draws, or thin")


def _usual_draws(chains: Chains) -> int:
    """Return how many more draws of each chain suffice if every draw is effective."""
    return math.ceil(LEAST_ESS / len(chains.log_joint))


def _more(ess: float, chains: Chains) -> int:
    """Return how many more draws of each chain make as many effective ones as are needed, roughly."""
    draws = int(chains.log_joint.shape[1])
    return math.ceil(draws * max(1.0, 1.2 * LEAST_ESS / max(ess, 1.0) - 1.0))


def _listed(values: NDArray[np.float64]) -> str:
    shown = ", ".join(f"{value:.10g}" for value in values[:_MOST_NAMED])
    return f"{shown}, ..." if len(values) > _MOST_NAMED else shown
