"""Requests to the core: one value for the model, one for the settings, and an observer."""

from typing import Any, Literal, Protocol, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

# A name and its parameters. For a parameter that is None, the default depends on the data.
Specification: TypeAlias = tuple[str, dict[str, Any]]


class Specified(TypedDict):
    """The model of a fit."""

    likelihood: Specification
    process: Specification
    background: dict[str, Any] | None
    objective: str
    missing: bool


class DocumentVisits(TypedDict):
    """Settings for visits of the documents of a topic model."""

    first_pass: str
    max_steps: int
    tolerance: float
    warm: bool
    restarts: int


class Settings(TypedDict):
    """Settings of a fit. None stands for settings that do not apply, or whose default the core chooses."""

    batches: int | None
    batch_size: int | None
    shuffle: bool
    steps: tuple[float, float] | None
    moves: list[Specification]
    sparsity: int | Literal["auto"] | None
    margin: float | None
    bounds_memory: int
    shard_rows: int
    tree: dict[str, Any] | None
    documents: DocumentVisits
    max_passes: int
    tol: float
    n_components: int | None
    labels: NDArray[np.int64] | None
    seeds: list[int]
    threads: int | None


class ChainPlan(TypedDict):
    """Settings of chains."""

    sampler: Specification
    draws: int
    warmup: int
    thin: int
    chains: int
    seed: int
    max_seconds: float | None
    keep_rows: NDArray[np.uint32] | None
    threads: int | None
    # Effective draws and R-hat that are enough.
    until: tuple[float, float] | None
    # Where earlier chains ended, from the core.
    resumed: bytes | None


class Observer(Protocol):
    """Receives the events of a fit or of chains."""

    @property
    def listens(self) -> bool:
        """Whether it receives batches, passes and sweeps."""

    @property
    def in_turn(self) -> bool:
        """Whether runs must be made one at a time."""

    @property
    def checkpoint_every(self) -> float | None:
        """Seconds between two checkpoints; None for no checkpoints."""

    @property
    def checkpoint(self) -> object | None:
        """Content of a checkpoint file: its `index`, `n_wide`, `best` and `run`."""

    def observe(self, event: dict[str, Any], /) -> bool:
        """Handle an event; True asks the core to stop."""
