"""What a fit tells of its passes, and why it ended."""

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
        How many of them were accepted.
    gain : float
        What these gained, in nats.
    refused : dict of str to int
        Why the others were not, and how many.
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
        Number of the pass.
    seconds : float
        Time since the fit began.
    elbo : float
        The bound at the end of the pass, in nats; nan until every batch has been visited once.
    n_components : int
        The number of components at the end of the pass.
    proposed : int
        How many moves were proposed.
    accepted : int
        How many of them were accepted.
    evaluated_share : float
        The share of (row, component) pairs whose score was computed.
    moves : tuple of MoveReport
        What became of the moves, by kind; empty where the bound is not known yet.
    """

    index: int
    seconds: float
    elbo: float
    n_components: int
    proposed: int
    accepted: int
    evaluated_share: float
    moves: tuple[MoveReport, ...] = ()

    @classmethod
    def _from_core(cls, event: dict[str, Any]) -> "Record":
        values = {field.name: event[field.name] for field in fields(cls)}
        return cls(**{**values, "moves": tuple(MoveReport(**report) for report in event["moves"])})
