"""Variational algorithms: how the posterior is found. They hold settings, which are checked on construction."""

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Literal, cast

from stickbreak import checks
from stickbreak.errors import StepSizeWarning
from stickbreak.io.requests import Settings
from stickbreak.model.model import Model
from stickbreak.run.moves import Birth, Move, Split
from stickbreak.run.units import KdTree, Words, check_units, tree_of, words_of
from stickbreak.shards.sharding import SHARD_ROWS

MEBIBYTE = 1024 * 1024
OBJECTIVES = ("variational", "map", "ml")


@dataclass(frozen=True, kw_only=True)
class Algorithm:
    """Common part of all algorithms; see `Full` for the meaning of the fields."""

    objective: Literal["variational", "map", "ml"] | None = None
    sparsity: int | Literal["auto"] | None = "auto"
    margin: float | None = 20.0
    bounds_memory: int = 128 * MEBIBYTE
    moves: tuple[Move, ...] = ()
    units: KdTree | Words | Literal["auto"] | None = None
    # Set on construction, to a number that depends on the moves.
    max_passes: int = None  # type: ignore[assignment]
    tol: float = 1e-6

    def __post_init__(self) -> None:
        if self.objective is not None:
            checks.word("objective", self.objective, OBJECTIVES, or_else=["None"])
        if self.sparsity is not None:
            self._set("sparsity", _integer_or_auto("sparsity", self.sparsity, or_else=["'auto'", "None"]))
        if self.margin is not None:
            self._set("margin", checks.non_negative("margin", self.margin, ", or None"))
        self._set("bounds_memory", checks.integer("bounds_memory", self.bounds_memory, minimum=0))
        self._check_moves()
        check_units(self.units)
        given = cast("int | None", self.max_passes)
        passes = self._usual_passes() if given is None else given
        self._set("max_passes", checks.integer("max_passes", passes, minimum=0, or_else=["None"]))
        self._set("tol", checks.non_negative("tol", self.tol))

    def _to_core(self, n_components: int | None, seeds: list[int], threads: int | None) -> Settings:
        """Return the settings in the form that the core reads; None stands for settings that do not apply."""
        return {
            # With one batch there is nothing to shuffle.
            "batches": 1,
            "batch_size": None,
            "shard_rows": SHARD_ROWS,
            "shuffle": False,
            "steps": None,
            "moves": [move._to_core() for move in self.moves],
            "sparsity": self.sparsity,
            "margin": self.margin,
            "bounds_memory": self.bounds_memory,
            "tree": tree_of(self.units),
            "documents": words_of(self.units),
            "max_passes": self.max_passes,
            "tol": self.tol,
            "n_components": n_components,
            "labels": None,
            "seeds": seeds,
            "threads": threads,
        }

    def _usual_passes(self) -> int:
        """Return the default of `max_passes`. A search for more components takes many passes over few rows."""
        return 500 if any(isinstance(move, Birth | Split) for move in self.moves) else 100

    def _check_model(self, model: Model) -> None:
        """Refuse moves of a model with documents, and words as units of one without. The core refuses the rest."""
        kind = type(model).__name__
        if self.moves and model._has_documents:
            raise checks.not_supported("moves", f"a move with a {kind}", "its number of topics is given", "moves=()")
        if isinstance(self.units, Words) and not model._has_documents:
            allowed = "units=None, 'auto' or a KdTree"
            raise checks.not_supported("units", f"Words() with a {kind}", "its rows are not documents", allowed)

    def _check_moves(self) -> None:
        if not isinstance(self.moves, tuple | list):
            raise checks.invalid_type(
                "moves", checks.describe(self.moves), "a sequence of moves, such as (Birth(), Merge())"
            )
        for move in self.moves:
            checks.instance("moves", move, Move, "a sequence of moves, such as (Birth(), Merge())")
        kinds = [type(move).__name__ for move in self.moves]
        twice = next((kind for kind in kinds if kinds.count(kind) > 1), None)
        if twice is not None:
            raise checks.invalid_argument("moves", f"a sequence with {twice} twice", "a sequence with each kind once")
        self._set("moves", tuple(self.moves))

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)


@dataclass(frozen=True, kw_only=True)
class Full(Algorithm):
    """Variational inference with all rows in one batch: every pass ends with one update of the components [1]_.

    Parameters
    ----------
    objective : {None, "variational", "map", "ml"}
        What is maximised. "variational" is the evidence lower bound. "map" and "ml" are point estimates of weights and
        components: the highest posterior density and the highest likelihood ([2]_, Eq. 4). None is "variational" for
        mixtures and "map" for topic models, which do not take "ml".
    sparsity : "auto", int or None
        L, the number of components that a row may belong to, from 1 (hard clusters) to the number of components. None
        keeps all; "auto" is 16 or all, whichever is less [2]_. For a `TopicModel`: the number of topics of a distinct
        word of a document; "auto" is 8.
    margin : float, optional
        Drop components whose log weight is more than this many nats below the row's best. It saves work and costs at
        most ``n K exp(-margin)`` nats of the bound. None drops nothing.
    bounds_memory : int
        Maximum number of bytes for distance bounds, which save work and do not change the fit. They need two bytes per
        row and component of all batches, the same for the rows of a visit (at most 65,520), and ``16 K D**2`` for the
        components. They are not used if that exceeds the maximum, with fewer than 40 columns, with fewer than 400 rows
        per column in a batch, with a margin of None, or if all components are kept. 0 turns them off.
    moves : sequence
        Moves between passes: at most one each of `Birth`, `Split`, `Merge` and `Delete`. `fit` refuses them with the
        objectives "map" and "ml", `FiniteDirichlet`, ``truncation="stick"`` and ``SphericalGaussian(base="product")``,
        because bounds of different numbers of components do not compare there.
    units : KdTree, Words, "auto", optional
        What receives responsibilities. For a `Mixture`: nodes of a tree over the rows, each for many rows that agree,
        or, with None, every row by itself. Trees take dense rows without missing values, and use no distance bounds.
        "auto" is `KdTree()` if there are more than 16,384 rows in memory and trials on 4,096 and 16,384 of them foresee
        at most one node for eight rows; else None. For a `TopicModel`: the words of documents; None is `Words()`.
    max_passes : int, optional
        Maximum number of passes over the data. Default: 500 with `Birth` or `Split`, else 100. 0 gives the state after
        the first update of the components.
    tol : float
        Stop after a pass that gains less than this many nats per unit of weight, or less than 0.001 nats in all (1000
        `tol`, if that is less). 0 never stops early. With moves, also wait until no move is accepted or left to try.
        For a `TopicModel` the unit of weight is a word.

    Raises
    ------
    InvalidType, InvalidArgument
        An argument has a type or a value that is not allowed.
    NotSupported
        An argument requests something that this version does not support.

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

    Each batch remembers its summary, and a visit replaces it in the total [1]_. Large data need fewer passes than under
    `Full`, in memory that does not grow with the data.

    Parameters
    ----------
    batches : "auto" or int
        Number of batches, from 1 to the number of rows. "auto" is one for every 5000 rows, from 1 to 20, and for a
        `TopicModel` one for every 40,000 words, from 1 to 10. A batch of a sparse table has on average at least as many
        non-zeros as there are columns. A collection of dask has one for every 3.2 million rows, from 1 to 20, and at
        most one for each shard.
    shuffle : bool
        Whether rows are assigned to batches at random and every pass visits the batches in a new random order.
        Otherwise a batch is a run of consecutive rows, and batches are visited in the order of the data. Of a
        collection, whole shards are assigned.
    shard_rows : int
        Maximum number of rows that are visited at once, from 1 to 2**32 - 1. A larger batch is visited in shards under
        the same components, and their sums are added up. The last digits of a fit depend on it, and memory for a visit.
        A batch of trees or of documents is one shard.
    objective, sparsity, margin, bounds_memory, moves, units, max_passes, tol
        As in `Full`.

    Raises
    ------
    InvalidType, InvalidArgument
        An argument has a type or a value that is not allowed.
    NotSupported
        An argument requests something that this version does not support.

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
    shard_rows: int = SHARD_ROWS

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("batches", _integer_or_auto("batches", self.batches, or_else=["'auto'"]))
        self._set("shuffle", checks.flag("shuffle", self.shuffle))
        self._set("shard_rows", checks.integer("shard_rows", self.shard_rows, minimum=1, maximum=2**32 - 1))

    def _to_core(self, n_components: int | None, seeds: list[int], threads: int | None) -> Settings:
        batches = None if self.batches == "auto" else self.batches
        own = {"batches": batches, "shuffle": self.shuffle, "shard_rows": self.shard_rows}
        return cast("Settings", {**super()._to_core(n_components, seeds, threads), **own})


@dataclass(frozen=True)
class Stochastic(Algorithm):
    r"""Stochastic variational inference: each batch moves the components by a step, and batches are not remembered.

    Visit t = 1, 2, ... of a batch B of mass :math:`|B|` updates the sums S that determine the components:

    .. math:: S \leftarrow (1 - \rho_t) S + \rho_t \frac{N}{|B|} S(B),
              \qquad \rho_t = (t + \text{delay})^{-\text{decay}}

    This is a step of length :math:`\rho_t` along the natural gradient [1]_. A pass visits every batch once, in
    ``n / batch_size`` steps. The memory does not grow with the number of batches. But each step forgets a part of the
    data, and the bound is neither monotone nor known: records have an `elbo` of nan, and `tol` has no effect.

    After the last pass, or when a callback ends the fit, one more pass without a record visits all rows. The components
    of the fit are computed from its sums, and `elbo` is their exact bound. A fit that ends within a pass, by an
    interrupt or an error of the source, keeps its components and has an `elbo` of nan.

    Parameters
    ----------
    batch_size : int
        Maximum number of rows in a batch, from 1 to the number of rows. Sizes differ by at most one.
    delay : float
        At least 0. The larger it is, the less the first batches move the components.
    decay : float
        How fast steps become shorter, at least 0. The components converge to an optimum only for values above 0.5 and
        up to 1; other values give a warning.
    shuffle : bool
        As in `Memoized`. Without it batches are runs of consecutive rows in the order of the data, which should then be
        in random order.
    objective, sparsity, margin, bounds_memory, max_passes
        As in `Full`.
    moves : sequence
        Always empty, because the exact bound is unknown.
    units : Words, "auto", optional
        As in `Full`, but a tree is refused, because nodes are opened between complete passes, which this algorithm does
        not make. "auto" means rows here. The `first_pass` of `Words` has no effect.
    tol : float
        Without effect.

    Raises
    ------
    InvalidType, InvalidArgument
        An argument has a type or a value that is not allowed.
    NotSupported
        An argument requests something that this algorithm or this version does not support.

    Warns
    -----
    StepSizeWarning
        `decay` is not above 0.5 and at most 1.

    References
    ----------
    .. [1] Hoffman, M. D., Blei, D. M., Wang, C. and Paisley, J. (2013). Stochastic variational inference. Journal of
           Machine Learning Research 14.

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.Stochastic(1000, delay=10, decay=0.9, max_passes=5).batch_size
    1000
    """

    batch_size: int
    delay: float = 10.0
    decay: float = 0.9
    _: KW_ONLY
    shuffle: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("batch_size", checks.integer("batch_size", self.batch_size, minimum=1))
        self._set("delay", checks.non_negative("delay", self.delay))
        self._set("decay", checks.non_negative("decay", self.decay))
        self._set("shuffle", checks.flag("shuffle", self.shuffle))
        if isinstance(self.units, KdTree):
            reason = "nodes are opened between complete passes, which it does not make"
            raise checks.not_supported("units", "a tree with Stochastic", reason, "Full or Memoized, or no tree")
        if not 0.5 < self.decay <= 1.0:
            text = f"with decay {self.decay} the components need not settle; it should be above 0.5 and at most 1"
            warnings.warn(text, StepSizeWarning, stacklevel=3)

    def _to_core(self, n_components: int | None, seeds: list[int], threads: int | None) -> Settings:
        return {
            **super()._to_core(n_components, seeds, threads),
            "batches": None,
            "batch_size": self.batch_size,
            "shuffle": self.shuffle,
            "steps": (self.delay, self.decay),
        }

    def _check_moves(self) -> None:
        super()._check_moves()
        if self.moves:
            reason = "moves are judged by the exact bound, which it does not know"
            raise checks.not_supported("moves", "a move with Stochastic", reason, "moves=(), Memoized or Full")


def _integer_or_auto(argument: str, value: object, or_else: list[str]) -> int | str:
    if not isinstance(value, str):
        return checks.integer(argument, value, minimum=1, or_else=or_else)
    if value != "auto":
        allowed = ", or ".join(["an integer of at least 1", *or_else])
        raise checks.invalid_argument(argument, checks.quote(value), allowed, checks.did_you_mean(value, ["auto"]))
    return value
