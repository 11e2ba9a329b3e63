"""Advice on rows that repeat, on weights, and on columns that nearly repeat others."""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stickbreak._core import FitState
from stickbreak.errors import Advice
from stickbreak.io.names import Names
from stickbreak.result.support import Support, columns

# With fewer rows, equal ones may be chance.
_LEAST_ROWS = 20
_MANY_DUPLICATES = 0.05
# Columns with at most this many distinct integers look like codes rather than amounts.
_FEW_VALUES = 20
# Mean weight above which weights that count as numbers of rows are likely to be none.
_LARGE_WEIGHT = 4.0
# Weights that add up to less are likely to be shares, and so are weights that add up to the second number at most and
# are smaller than the third one on average.
_LEAST_TOTAL, _FEW_TOTAL, _SMALL_WEIGHT = 2.0, 1000.0, 0.1
# Columns repeat if this share of the rows is the largest number of their values, and together if they have at most this
# many times as many combinations as values. At most the last number of columns is compared.
_REPEATED, _SAME, _MOST_COMPARED = 0.7, 1.1, 32
# Distinct rows are counted up to this number, and estimated above it.
_COUNTED = 1000


class Result(Protocol):
    """The part of a fit that advice needs."""

    _state: FitState

    @property
    def counts(self) -> NDArray[np.float64]:
        """Expected counts, shape (K,)."""

    @property
    def column_names(self) -> Names | None:
        """The names of the columns."""

    @property
    def support(self) -> Support:
        """The directions in which the rows vary."""


def of_fit(fit: Result, sample: NDArray[Any] | None) -> Iterator[Advice]:
    """Yield the advice on repeated rows, weights and near-dependent columns; `sample` has some of the rows."""
    groups = [] if fit._state.repeats["rows"] == "copies" else list(_of_groups(sample, fit))
    yield from groups or _of_rows(fit._state, sample)
    yield from _of_weights(fit)
    near = fit._state.residual_columns
    if near:
        one = len(near) == 1
        text = (
            f"{columns(near, fit.column_names)} nearly {'follows' if one else 'follow'} from the others; the model "
            f"sees what they leave of {'it' if one else 'them'}"
        )
        tries = (f"the data without {'it' if one else 'them'}, if what is left is noise",)
        yield Advice(text, kind="residual_columns", suggestions=tries)


def _of_rows(state: FitState, sample: NDArray[Any] | None) -> Iterator[Advice]:
    found = state.repeats
    n, distinct = found["n_rows"], found["n_distinct"]
    if n < _LEAST_ROWS:
        return
    if distinct == 1:
        yield Advice("all rows are equal", kind="duplicates", suggestions=("columns that vary",))
    elif found["rows"] == "copies":
        searched = None if state.searched is None else int(state.searched[0])
        about = "about " if searched is None and distinct > _COUNTED else ""
        n_copies = n - (distinct if searched is None else searched)
        text = f"{about}{n_copies:,} of {n:,} rows are copies of others, more than chance explains"
        if searched is not None:
            text += f"; components were sought in {searched:,} rows without them, then all rows were fitted"
            yield Advice(text, kind="copies", suggestions=("each row once, if copies tell nothing",))
        else:
            text += ", and each counts as one more row"
            tries = ("each row once", "dense rows in memory and births, which seek components in each row once")
            yield Advice(text, kind="copies", suggestions=tries)
    elif found["rows"] == "chance" and n - distinct >= _MANY_DUPLICATES * n and not _are_codes(sample):
        text = f"{(n - distinct) / n:.0%} of the rows repeat another one, as often as chance explains, and all count"
        yield Advice(text, kind="duplicates", suggestions=("each row once, if they are copies",))


def _are_codes(sample: NDArray[Any] | None) -> bool:
    """Return whether all columns have few distinct values, so that rows repeat anyway."""
    return sample is None or all(len(np.unique(column[~np.isnan(column)])) <= _FEW_VALUES for column in sample.T)


def _of_groups(sample: NDArray[Any] | None, fit: Result) -> Iterator[Advice]:
    """Look for columns whose values repeat in the same rows, apart from a few rows."""
    if sample is None or len(sample) < _LEAST_ROWS:
        return
    # Of columns that repeat together: their positions, and a number for each of their combinations in each row.
    groups: list[tuple[list[int], NDArray[np.int64]]] = []
    # What follows from another column repeats with it.
    places = [place for place in range(sample.shape[1]) if place not in fit.support.dependent]
    for place in places[:_MOST_COMPARED]:
        codes = np.unique(sample[:, place], return_inverse=True, equal_nan=False)[1]
        if not _FEW_VALUES < codes.max() + 1 <= _REPEATED * len(sample):
            continue
        for position, (found, others) in enumerate(groups):
            together = np.unique(codes * (others.max() + 1) + others, return_inverse=True)[1]
            if together.max() + 1 <= _SAME * (max(codes.max(), others.max()) + 1):
                groups[position] = ([*found, place], together)
                break
        else:
            groups.append(([place], codes))
    for found, codes in groups:
        if len(found) > 1:
            text = (
                f"{columns(found, fit.column_names)} repeat together, {codes.max() + 1:,} combinations in "
                f"{len(sample):,} rows, as in a panel or a join; components may follow these combinations"
            )
            tries = ("one row for each combination", "the data without such columns")
            yield Advice(text, kind="repeated_columns", suggestions=tries)


def _of_weights(fit: Result) -> Iterator[Advice]:
    found, searched = fit._state.repeats, fit._state.searched
    total = float(fit.counts.sum())
    is_small = total < _FEW_TOTAL and total < _SMALL_WEIGHT * found["n_rows"]
    if total < _LEAST_TOTAL <= found["n_rows"] or is_small:
        text = f"weights count as numbers of equal rows, and their sum is only {total:.3g}"
        tries = ("sample_weight / sample_weight.mean()",)
        yield Advice(text, kind="weights", suggestions=tries)
    elif not found["has_large_weights"]:
        return
    mean = float(fit.counts.sum()) / found["n_rows"]
    if searched is None and mean > _LARGE_WEIGHT:
        text = f"weights, which are {mean:.3g} on average, count as numbers of equal rows"
        tries = ("sample_weight / sample_weight.mean(), if they are no numbers of rows",)
        yield Advice(text, kind="weights", suggestions=tries)
    elif searched is not None and found["rows"] != "copies":
        text = "some weights exceed 1; components were sought with weights of at most 1, then all weights were used"
        yield Advice(text, kind="weights", suggestions=("sample_weight=None, if weights tell nothing",))
