"""The data of a run: rows in the form that the core reads, with the names of their columns."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from stickbreak import checks
from stickbreak.errors import InvalidArgument
from stickbreak.io import arrays, names, streams
from stickbreak.io.levels import Levels, coded
from stickbreak.model.model import Model
from stickbreak.result import advising
from stickbreak.result.fitted import Fitted
from stickbreak.run.checkpoints import CheckpointFile

ModelT = TypeVar("ModelT", bound=Model)


@dataclass(frozen=True, eq=False)
class Given:
    """The data of a run.

    Parameters
    ----------
    source : rows or Stream
        All rows, or a stream that reads them in blocks.
    names : tuple of str, optional
        The names of the columns.
    levels : tuple
        The levels of the columns.
    sizes : tuple
        The number of levels of each column of codes, if known; empty without levels.
    """

    source: arrays.Rows | streams.Stream
    names: names.Names | None
    levels: Levels
    sizes: tuple[int | None, ...]

    @property
    def for_core(self) -> arrays.Rows | arrays.BlockSource:
        """The data in the form that the core reads."""
        return self.source.for_core if isinstance(self.source, streams.Stream) else self.source

    @property
    def n_rows(self) -> int | None:
        """Number of rows; None for data read in blocks."""
        return None if isinstance(self.source, streams.Stream) else self.source.shape[0]

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.source.n_columns if isinstance(self.source, streams.Stream) else self.source.shape[1])

    def placed(self, model: ModelT) -> ModelT:
        """Return the model with the positions of the columns that it names, and the number of their levels."""
        return model._placed(self.names, self.n_columns)._with_levels(self.sizes)

    @property
    def legend(self) -> dict[str, Any]:
        """What a fit keeps of the columns: arguments of its class."""
        return {"column_names": self.names, "levels": self.levels}

    def watch(self, watch: Callable[[float], object]) -> None:
        """Call a function with the fraction of a file read so far, in every reading; never called for other data."""
        if isinstance(self.source, streams.Stream):
            self.source.watch = watch

    def look(self) -> advising.Sample | None:
        """Return a sample of the rows; for data read in blocks, of the first block."""
        return advising.look(self.source.first if isinstance(self.source, streams.Stream) else self.source)

    def rows_without_values(self) -> NDArray[np.bool_]:
        """Return which rows are all NaN, shape (n,)."""
        if isinstance(self.source, streams.Stream):
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
) -> Given:
    """Return the data with their columns in the order of a checkpoint, or otherwise of a fit to start from.

    Raises
    ------
    InvalidType, InvalidArgument
        `data` are not as `fit` requires, or have other columns than the fit to start from.
    CheckpointError
        They have other columns than the checkpoint.
    """
    kept, levels = (None, ()) if file is None else file.read_names()
    expected = init.column_names if kept is None and isinstance(init, Fitted) else kept
    levels = init._levels if not levels and isinstance(init, Fitted) else levels
    try:
        given, is_reordered = _read(data, model, (expected, levels), minimum, may_miss)
        if is_reordered and expected is not None:
            check_order(model, expected)
    except InvalidArgument as error:
        raise error if file is None or kept is None or error.argument != "data" else file.refused(error) from error
    if file is not None:
        file.column_names, file.levels = given.names, given.levels
    return given


def check_order(model: Model, expected: names.Names) -> None:
    """Refuse to reorder columns if parameters of the likelihood refer to single columns."""
    given = [key for key, value in model.likelihood._parameters().items() if isinstance(value, np.ndarray)]
    if given:
        found = f"a table with its columns in another order, to which `{given[0]}` of the likelihood belongs"
        allowed = f"a table with its columns in the order {names.shown(expected)}"
        raise checks.invalid_argument("data", found, allowed)


def _read(
    data: object, model: Model, known: tuple[names.Names | None, Levels], minimum: int, may_miss: bool
) -> tuple[Given, bool]:
    stream = streams.stream(data, model.likelihood, *known, may_miss=may_miss)
    if stream is not None:
        return Given(stream, stream.names, stream.levels, stream.sizes), stream.is_reordered
    found = coded(data, "data", model.likelihood, *known, learn=True)
    rows = arrays.rows(found.data, "data", likelihood=type(model.likelihood), minimum=minimum)
    return Given(rows, found.names, found.levels, found.sizes), found.order is not None
