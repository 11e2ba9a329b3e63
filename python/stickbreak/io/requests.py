"""What a fit asks of the core: one value for the model, one for the settings, and who watches."""

from typing import Any, Literal, Protocol, TypeAlias, TypedDict

# A name and its parameters; a parameter that is None follows the data.
Specification: TypeAlias = tuple[str, dict[str, Any]]


class Specified(TypedDict):
    """The model of a fit."""

    likelihood: Specification
    process: Specification
    objective: str
    missing: bool


class DocumentVisits(TypedDict):
    """How the documents of a topic model are visited."""

    first_pass: str
    max_steps: int
    tolerance: float
    warm: bool
    restarts: int


class Settings(TypedDict):
    """How a fit is made. None stands for what an algorithm does not have, or leaves to the core."""

    batches: int | None
    batch_size: int | None
    shuffle: bool
    steps: tuple[float, float] | None
    moves: list[Specification]
    sparsity: int | Literal["auto"] | None
    margin: float | None
    bounds_memory: int
    tree: dict[str, Any] | None
    documents: DocumentVisits
    max_passes: int
    tol: float
    n_components: int | None
    seeds: list[int]
    threads: int | None


class ChainPlan(TypedDict):
    """How chains run."""

    sampler: Specification
    draws: int
    warmup: int
    thin: int
    chains: int
    seed: int
    max_seconds: float | None
    threads: int | None
    checkpoint_every: float | None
    checkpoint: bytes | None


class Observer(Protocol):
    """Who watches a fit."""

    @property
    def listens(self) -> bool:
        """Whether it wants any events."""

    @property
    def in_turn(self) -> bool:
        """Whether it must see one run at a time."""

    @property
    def checkpoint_every(self) -> float | None:
        """Seconds between two checkpoints; None for no checkpoints."""

    @property
    def checkpoint(self) -> object | None:
        """What a checkpoint file holds: its `index`, `n_wide`, `best` and `run`."""

    def observe(self, event: dict[str, Any], /) -> bool:
        """Take an event; True asks the core to stop."""
