"""The records of the passes of a fit, and its stop reason."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import Enum
from itertools import pairwise
from typing import Any


class StopReason(Enum):
    """Why a fit ended."""

    CONVERGED = "converged"
    """The last pass gained less than `tol`, and no move was accepted or left to try."""
    MAX_PASSES = "max_passes"
    """`max_passes` passes were made."""
    INTERRUPTED = "interrupted"
    """Ctrl-C was pressed."""
    CALLBACK = "callback"
    """A callback asked to stop."""
    SOURCE_ERROR = "source_error"
    """The source of the data failed; see `Fit.error`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunnerUp:
    """The second best of several starts (`n_init`).

    Parameters
    ----------
    objective : float
        Its objective, nats.
    ari : float
        The adjusted Rand index of its labels of the rows and those of the best start: 1 if they are the same clusters,
        0 on average if they have nothing to do with each other.
    """

    objective: float
    ari: float


@dataclass(frozen=True, kw_only=True, slots=True)
class MoveReport:
    """Results of the moves of one kind in a pass.

    Parameters
    ----------
    kind : {"birth", "split", "merge", "delete"}
        The kind of move.
    proposed : int
        Number proposed.
    accepted : int
        Number accepted because they raise the bound of all data.
    gain : float
        Total gain in the bound, in nats. For births with `adoption="pass"` it includes the gain of the pass, because
        the two cannot be separated. It is 0 in the first pass, which has no earlier bound.
    refused : dict of str to int
        The reasons why the others were not accepted, with counts.
    """

    kind: str
    proposed: int
    accepted: int
    gain: float
    refused: dict[str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """One pass of a fit.

    Parameters
    ----------
    index : int
        Index of the pass, from 0; each of several starts (`n_init`) has its own count.
    seconds : float
        Time since the fit began, or since this start if there are several. That of the last pass includes the search
        after it.
    elbo : float
        The bound at the end of the pass, in nats; nan until every batch has been visited once.
    objective : float
        The quantity that every pass raises, in nats: the bound plus the guard of an estimated base measure (mathematics
        10). Equal to `elbo` if no base measure is estimated.
    base_measure_gain : float
        Gain in `objective` from re-estimating the base measure at the end of the pass, in nats.
    n_components : int
        Number of components at the end of the pass.
    n_units : int
        Number of units that the pass visited: rows, nodes of trees (`KdTree`), which stand for many rows, or, for topic
        models, distinct words of documents. 0 in files of earlier versions.
    mass : float
        Sum of the weights of the rows, or of the words of documents, that the bound is of. Where components are sought
        in `Fit.search_rows`, it shows which records are of the search and which of all rows. 0 in files of earlier
        versions.
    n_batches : int
        Number of batches of the pass. 0 in files of earlier versions.
    proposed : int
        Number of moves proposed.
    accepted : int
        Number of moves accepted.
    evaluated_share : float
        Fraction of (row, component) pairs whose score was computed.
    moves : tuple of MoveReport
        Results of the moves, one report for each kind of move of the algorithm. Empty if it has no moves, and in a pass
        that ends before the bound is known. The gain of moves is part of `elbo`.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> X = np.random.default_rng(0).normal([[-5.0], [5.0]], size=(2, 100)).reshape(-1, 1)
    >>> fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), X)
    >>> first = fit.history[0]
    >>> first.n_components, [(move.kind, move.proposed, move.accepted) for move in first.moves]
    (2, [('birth', 1, 1), ('merge', 0, 0), ('delete', 0, 0)])
    """

    index: int
    seconds: float
    elbo: float
    objective: float
    base_measure_gain: float
    n_components: int
    n_units: int
    mass: float
    n_batches: int
    proposed: int
    accepted: int
    evaluated_share: float
    moves: tuple[MoveReport, ...] = ()

    @classmethod
    def _from_core(cls, event: dict[str, Any]) -> "Record":
        values = {field.name: event[field.name] for field in fields(cls)}
        return cls(**{**values, "moves": tuple(MoveReport(**report) for report in event["moves"])})


def of_the_same_rows(records: Iterable[Record]) -> list[tuple[Record, Record]]:
    """Return all pairs of consecutive records whose bounds are of the same rows, so that they compare."""
    pairs = pairwise(records)
    return [(before, after) for before, after in pairs if abs(after.mass - before.mass) <= 1e-6 * after.mass]


def moves_of(records: Iterable[Record]) -> tuple[MoveReport, ...]:
    """Return the reports of several passes, summed by kind."""
    total: dict[str, MoveReport] = {}
    for report in (report for record in records for report in record.moves):
        before = total.get(report.kind, MoveReport(kind=report.kind, proposed=0, accepted=0, gain=0.0, refused={}))
        total[report.kind] = MoveReport(
            kind=report.kind,
            proposed=before.proposed + report.proposed,
            accepted=before.accepted + report.accepted,
            gain=before.gain + report.gain,
            refused=dict(Counter(before.refused) + Counter(report.refused)),
        )
    return tuple(total.values())
