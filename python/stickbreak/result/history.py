"""What a fit tells of its passes, and why it ended."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import Enum
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
class MoveReport:
    """What became of the moves of one kind in a pass.

    Parameters
    ----------
    kind : {"birth", "split", "merge", "delete"}
        Which moves.
    proposed : int
        How many were proposed.
    accepted : int
        How many of them were accepted, because they raise the bound of all data.
    gain : float
        By how much they raise it together, in nats. Births with `adoption="pass"` cannot be told from the pass in
        which they come: of them it is what both raise it by, and 0 in the first pass, before which no bound is known.
    refused : dict of str to int
        Why the others were not accepted, in words, and how many for each reason.
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
        Number of the pass, from 0; of several starts (`n_init`) each counts its own.
    seconds : float
        Time since the fit began, or since this start of several.
    elbo : float
        The bound at the end of the pass, in nats; nan until every batch has been visited once.
    objective : float
        What every pass raises, in nats: the bound, and the guard of a base measure that is estimated (mathematics 10).
        Equal to `elbo` where none is.
    base_measure_gain : float
        What estimating the base measure anew at the end of the pass raised `objective` by, in nats.
    n_components : int
        The number of components at the end of the pass.
    n_units : int
        How many units the pass visited: rows, or nodes of trees (`KdTree`) that stand for many rows; for topic models
        the distinct words of all documents. 0 in files of earlier versions.
    proposed : int
        How many moves were proposed.
    accepted : int
        How many of them were accepted.
    evaluated_share : float
        The share of (row, component) pairs whose score was computed.
    moves : tuple of MoveReport
        What became of the moves, one report for each kind that the algorithm has; empty where it has none, and in a
        pass that ends before the bound is known. What they raise the bound by is part of `elbo`.

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
    proposed: int
    accepted: int
    evaluated_share: float
    moves: tuple[MoveReport, ...] = ()

    @classmethod
    def _from_core(cls, event: dict[str, Any]) -> "Record":
        values = {field.name: event[field.name] for field in fields(cls)}
        return cls(**{**values, "moves": tuple(MoveReport(**report) for report in event["moves"])})


def moves_of(records: Iterable[Record]) -> tuple[MoveReport, ...]:
    """Return the reports of several passes, added up by kind."""
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
