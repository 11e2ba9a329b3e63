"""The data of a run: rows in the form that the core reads, with the names of their columns."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from stickbreak import checks
from stickbreak.errors import InvalidArgument
from stickbreak.io import arrays, exposures, names, streams
from stickbreak.io.levels import Levels, coded
from stickbreak.model.counts import NegativeBinomial, Poisson
from stickbreak.model.likelihoods import Likelihood
from stickbreak.model.mixture import Mixture
from stickbreak.model.model import Model
from stickbreak.result import advising
from stickbreak.result.fitted import Fitted
from stickbreak.run.checkpoints import CheckpointFile
from stickbreak.shards.cluster import Cluster
from stickbreak.shards.pieces import ShardSource
from stickbreak.shards.sharding import Loaded, Sharding

ModelT = TypeVar("ModelT", bound=Model)
# The parameter that may be the position of a column.
_PLACE = ("exposure", int)


@dataclass(frozen=True, eq=False)
class Given:
    """The data of a run.

    Parameters
    ----------
    source : rows, Stream, Loaded or Cluster
        All rows, a stream that reads them in blocks, or shards, in this process or on a cluster.
    names : tuple of str, optional
        The names of the columns.
    levels : tuple
        The levels of the columns.
    likelihood : Likelihood
        That of the model, with its columns by position and the numbers of their levels.
    """

    source: arrays.Rows | streams.Stream | Loaded | Cluster
    names: names.Names | None
    levels: Levels
    likelihood: Likelihood

    @property
    def for_core(self) -> arrays.Rows | arrays.BlockSource | ShardSource:
        """The data in the form that the core reads."""
        return self.source.for_core if isinstance(self.source, streams.Stream | Loaded | Cluster) else self.source

    @property
    def n_rows(self) -> int | None:
        """Number of rows; None for data read in blocks."""
        if isinstance(self.source, Loaded | Cluster):
            return self.source.data.n_rows
        return None if isinstance(self.source, streams.Stream) else self.source.shape[0]

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        if isinstance(self.source, Loaded | Cluster):
            return self.source.data.n_columns
        return int(self.source.n_columns if isinstance(self.source, streams.Stream) else self.source.shape[1])

    def placed(self, model: ModelT) -> ModelT:
        """Return the model with the positions of the columns that it names, and the number of their levels."""
        return replace(model, likelihood=self.likelihood) if isinstance(model, Mixture) else model

    @property
    def legend(self) -> dict[str, Any]:
        """What a fit keeps of the columns: arguments of its class."""
        return {"column_names": self.names, "levels": self.levels}

    def watch(self, watch: Callable[[float], object]) -> None:
        """Call a function with the fraction of a file read so far, in every reading; never called for other data."""
        if isinstance(self.source, streams.Stream):
            self.source.watch = watch

    @contextmanager
    def ending(self) -> Iterator[None]:
        """Raise what the source raised to end the process, in place of the error that the core makes of it."""
        try:
            yield
        finally:
            if isinstance(self.source, streams.Stream) and self.source.exit is not None:
                raise self.source.exit

    def look(self) -> advising.Sample | None:
        """Return a sample of the rows; for data read in blocks, of the first block, and for shards of the first one."""
        if isinstance(self.source, Loaded | Cluster):
            return advising.look(self.source.head())
        return advising.look(self.source.first if isinstance(self.source, streams.Stream) else self.source)

    def rows_without_values(self) -> NDArray[np.bool_]:
        """Return which rows are all NaN, shape (n,)."""
        if isinstance(self.source, streams.Stream | Loaded | Cluster):
            return self.source.rows_without_values()
        return arrays.rows_without_values(self.source)


def read(
    data: object,
    model: Model,
    *,
    init: object,
    file: CheckpointFile | None,
    minimum: int,
    may_miss: bool = False,
    exposure: object = None,
    sharding: Sharding | None = None,
) -> Given:
    """Return the data with their columns in the order of a checkpoint, or otherwise of a fit to start from.

    An `exposure` of each row becomes a last column.

    Raises
    ------
    InvalidType, InvalidArgument
        `data` are not as `fit` requires, or have other columns than the fit to start from.
    CheckpointError
        They have other columns than the checkpoint.
    """
    kept, levels = (None, ()) if file is None else file.read_names()
    expected = kept
    if kept is None and isinstance(init, Fitted):
        expected, levels = init.column_names, levels or init._levels
    try:
        if sharding is not None and (collected := sharding.of(data)) is not None:
            given, is_reordered = _in_shards(collected, model, expected, exposure)
        else:
            given, is_reordered = _read(data, model, (expected, levels), minimum, may_miss, exposure)
        if is_reordered and expected is not None:
            check_order(model, expected)
    except InvalidArgument as error:
        raise error if file is None or kept is None or error.argument != "data" else file.refused(error) from error
    if file is not None:
        file.column_names, file.levels = given.names, given.levels
    return given


def _in_shards(
    source: Loaded | Cluster, model: Model, expected: names.Names | None, exposure: object
) -> tuple[Given, bool]:
    data = source.data
    is_reordered = data.put_in_order(expected)
    if exposure is not None:
        _check_takes_exposure(model.likelihood)
        reason = "its rows have no numbers"
        allowed = f"a column of the data, {type(model.likelihood).__name__}(exposure=...)"
        raise checks.not_supported("exposure", "an exposure for a collection", reason, allowed)
    return Given(source, data.names, (), _placed(model.likelihood, data.names, data.n_columns, ())), is_reordered


def check_order(model: Model, expected: names.Names) -> None:
    """Refuse to reorder columns if parameters of the likelihood refer to single columns."""
    parameters = model.likelihood._parameters().items()
    given = [key for key, value in parameters if isinstance(value, np.ndarray) or (key, type(value)) == _PLACE]
    if given:
        found = f"a table with its columns in another order, to which `{given[0]}` of the likelihood belongs"
        allowed = f"a table with its columns in the order {names.shown(expected)}"
        raise checks.invalid_argument("data", found, allowed)


def _read(
    data: object,
    model: Model,
    known: tuple[names.Names | None, Levels],
    minimum: int,
    may_miss: bool,
    exposure: object,
) -> tuple[Given, bool]:
    likelihood, kind = model.likelihood, type(model.likelihood)
    if exposure is not None:
        _check_takes_exposure(likelihood)
        known = (exposures.without(known[0]), known[1][:-1])
    stream = streams.stream(data, likelihood, *known, may_miss=may_miss)
    if stream is not None:
        if exposure is not None:
            reason = "the rows of a block have no numbers"
            allowed = f"a column of the data, {kind.__name__}(exposure=...)"
            raise checks.not_supported("exposure", "an exposure for data that are read in blocks", reason, allowed)
        placed = _placed(likelihood, stream.names, stream.n_columns, stream.sizes)
        return Given(stream, stream.names, stream.levels, placed), stream.is_reordered
    found = coded(data, "data", likelihood, *known, learn=True)
    rows = arrays.rows(found.data, "data", likelihood=kind, minimum=minimum)
    if exposure is None:
        placed = _placed(likelihood, found.names, rows.shape[1], found.sizes)
        return Given(rows, found.names, found.levels, placed), found.order is not None
    placed = _with_last(likelihood, rows.shape[1])
    given = Given(exposures.appended(rows, exposure), exposures.with_name(found.names), found.levels, placed)
    return given, found.order is not None


def _placed(
    likelihood: Likelihood, columns: names.Names | None, n_columns: int, sizes: tuple[int | None, ...]
) -> Likelihood:
    """Return the likelihood with the positions of the columns that it names, and the numbers of their levels."""
    # The levels may be those of a fit to start from, which is refused later if it has other columns.
    return likelihood._placed(columns, n_columns)._with_levels(sizes if len(sizes) == n_columns else ())


def _with_last(likelihood: Likelihood, n_columns: int) -> Likelihood:
    """Return the likelihood of `n_columns` columns with exposures in a further one, which has no parameters.

    Raises
    ------
    InvalidArgument
        A parameter has another number of entries than the data have columns.
    """
    given = {name: value for name, value in likelihood._parameters().items() if isinstance(value, np.ndarray)}
    for name, value in given.items():
        if value.size != n_columns:
            allowed = f"a number or of size {n_columns}, the number of columns of the data"
            raise checks.invalid_argument(name, f"of size {value.size}", allowed)
        given[name] = np.concatenate((value, [1.0]))
    return replace(likelihood, exposure=n_columns, **given)  # type: ignore[call-arg]


def _check_takes_exposure(likelihood: Likelihood) -> None:
    """Refuse exposures for a likelihood that has none, or has its own."""
    kind = type(likelihood).__name__
    if not isinstance(likelihood, Poisson | NegativeBinomial):
        reason = "it has no exposure"
        raise checks.not_supported("exposure", f"an exposure for {kind}", reason, "Poisson or NegativeBinomial")
    if likelihood.exposure is not None:
        allowed = f"None for {kind}(exposure={likelihood.exposure!r}), which has the exposures"
        raise checks.invalid_argument("exposure", "given twice", allowed)


def on_missing(likelihood: Likelihood) -> str:
    """Return what to do about missing values elsewhere than in `fit`."""
    other = "" if likelihood._supports("missing") else " and a likelihood such as Gaussian()"
    return f'leave such rows out; only fit takes missing values, with missing="marginalize"{other}'
