"""Variational algorithms: how the posterior is found. They hold settings, checked when they are made."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from stickbreak import checks
from stickbreak.errors import NotSupported

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Algorithm:
    """What all algorithms share; see `Full` for the meaning of the fields."""

    objective: Literal["variational"] | None = None
    sparsity: int | Literal["auto"] | None = "auto"
    margin: float | None = 20.0
    bounds_memory: int = 128 * MEBIBYTE
    units: None = None
    moves: tuple[Any, ...] = ()
    max_passes: int = 100
    tol: float = 1e-6

    def __post_init__(self) -> None:
        self._check_objective()
        if self.sparsity is not None:
            self._set("sparsity", _integer_or_auto("sparsity", self.sparsity, or_else=["'auto'", "None"]))
        if self.margin is not None:
            self._set("margin", checks.non_negative("margin", self.margin))
        self._set("bounds_memory", checks.integer("bounds_memory", self.bounds_memory, minimum=0))
        if self.units is not None:
            raise NotSupported("units: this version works on single rows only, use None")
        self._check_moves()
        self._set("max_passes", checks.integer("max_passes", self.max_passes, minimum=0))
        self._set("tol", checks.non_negative("tol", self.tol))

    def _check_objective(self) -> None:
        if self.objective is not None:
            known = ("variational", "map", "ml")
            if checks.word("objective", self.objective, known, or_else=["None"]) != "variational":
                raise NotSupported(f"objective={self.objective!r}: mixtures have 'variational' only in this version")

    def _check_moves(self) -> None:
        if not isinstance(self.moves, tuple | list):
            raise checks.invalid_type("moves", checks.describe(self.moves), "a sequence of moves")
        if self.moves:
            raise NotSupported("moves: this version has none, use ()")
        self._set("moves", tuple(self.moves))

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)


@dataclass(frozen=True, kw_only=True)
class Full(Algorithm):
    """Variational inference with all rows in one batch: every pass ends with one update of the components [1]_.

    Parameters
    ----------
    objective : {None, "variational"}
        What is maximised: the evidence lower bound. None means the model's usual objective, which for mixtures is
        "variational".
    sparsity : "auto", int or None
        L: how many components a row may belong to at the same time, from 1 (hard clusters) to the number of
        components; None is all of them, "auto" is 8 or all, whichever is less [2]_.
    margin : float, optional
        A row leaves out the components whose log weight is more than this many nats below that of its best, which
        saves work and costs at most ``n K exp(-margin)`` nats of the bound. None leaves out nothing but what `sparsity`
        does.
    bounds_memory : int
        Bytes that the local step may spend on bounds that spare it work: two a row and component of all batches, as
        much again for the rows visited at a time (at most 65,520, so for small data nearly twice as much), and ``16 K
        D**2`` for the components. Where that is not enough it goes without them, as it does with fewer than 40
        columns, fewer than 400 rows a column in a batch, a margin of None, or all components kept; with 0 it computes
        every score to the end. The fitted model is the same.
    units : None
        Single rows; the only value in this version.
    moves : sequence
        Changes of the number of components between passes; empty in this version.
    max_passes : int
        The most passes over the data. 0 gives the state after the first update of the components.
    tol : float
        Stops after a pass that gains less than this many nats per unit of weight; 0 never stops early.

    Raises
    ------
    InvalidType, InvalidArgument
        An argument has a type or a value that is not allowed.
    NotSupported
        An argument asks for something that this version does not serve.

    References
    ----------
    .. [1] Blei, D. M. and Jordan, M. I. (2006). Variational inference for Dirichlet process mixtures. Bayesian
           Analysis 1(1).
    .. [2] Hughes, M. C. and Sudderth, E. B. (2016). Fast learning of clusters and topics via sparse posteriors.
           arXiv:1609.07521.

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.Full(sparsity=4, max_passes=50).sparsity
    4
    """


@dataclass(frozen=True)
class Memoized(Algorithm):
    """Memoized variational inference: the components are updated after each batch, and the bound stays exact.

    Each batch remembers its summary; a visit replaces it in the total (the memoized updates of [1]_).
    Many rows then need fewer passes than under `Full`, in memory that does not grow with the data.

    Parameters
    ----------
    batches : "auto" or int
        The number of batches, from 1 to the number of rows; "auto" is one for every 5000 rows, from 1 to 20.
    shuffle : bool
        Whether rows go to batches by a permutation, which depends on the seed and the number of rows only.
        Otherwise a batch is a run of consecutive rows.
    objective, sparsity, margin, bounds_memory, units, moves, max_passes, tol
        As in `Full`.

    Raises
    ------
    InvalidType, InvalidArgument
        An argument has a type or a value that is not allowed.
    NotSupported
        An argument asks for something that this version does not serve.

    References
    ----------
    .. [1] Hughes, M. C. and Sudderth, E. B. (2013). Memoized online variational inference for Dirichlet process
           mixture models. Advances in Neural Information Processing Systems 26.

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.Memoized(batches=20, sparsity=4).batches
    20
    """

    batches: int | Literal["auto"] = "auto"
    _: KW_ONLY
    shuffle: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("batches", _integer_or_auto("batches", self.batches, or_else=["'auto'"]))
        self._set("shuffle", checks.flag("shuffle", self.shuffle))


def _integer_or_auto(argument: str, value: object, or_else: list[str]) -> int | str:
    if not isinstance(value, str):
        return checks.integer(argument, value, minimum=1, or_else=or_else)
    if value != "auto":
        allowed = ", or ".join(["an integer of at least 1", *or_else])
        raise checks.invalid_argument(argument, checks.quote(value), allowed, checks.did_you_mean(value, ["auto"]))
    return value
