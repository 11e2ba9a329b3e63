"""Advice on probable mistakes about a fit, and what to try: `Fit.advice`."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stickbreak._core import FitState
from stickbreak.errors import Advice, ConvergenceWarning, SparsityWarning
from stickbreak.io import arrays
from stickbreak.io.names import Names
from stickbreak.model.counts import Bernoulli, Categorical, NegativeBinomial, Poisson
from stickbreak.model.likelihoods import (
    Gaussian,
    KnownCovarianceGaussian,
    Likelihood,
    StudentT,
    ZeroMeanGaussian,
)
from stickbreak.model.mixture import Mixture
from stickbreak.result import shapes
from stickbreak.result.history import Record, RunnerUp
from stickbreak.result.support import columns

# Limits of the sample of the data that advice uses: rows, values, and pieces of the data.
_MOST_ROWS, _MOST_VALUES, _PIECES = 10_000, 2_000_000, 8
# Adjusted Rand index below which two labellings differ in more than the rows between clusters.
_AGREE = 0.8
_NEARLY_ALL_ROWS = 0.98
_NEARLY_CONSTANT = 0.99
# With fewer rows, duplicates and equal values may be chance.
_LEAST_ROWS = 20
# Columns with at most this many distinct integers look like codes rather than amounts.
_FEW_VALUES = 20
# A row is far from the others if a value is more usual ranges than this outside the usual range of its column, which is
# that between these quantiles. The core leaves such rows out of what it expects of a component.
_FAR, _USUAL = 100.0, (0.1, 0.9)
# Number of rows that are named.
_MOST_NAMED = 5
# Columns with a larger skewness may need logarithms.
_SKEWED = 1.5
# Counts with more components than this share of the rows have none of their own clusters.
_MANY_COMPONENTS = 0.2
# Ratio of the variance of counts to their mean within components, above which they are no Poisson counts, and the
# number of values beyond one for each column and component from which on it is not chance.
_OVERDISPERSED, _LEAST_VALUES = 1.25, 500
# Ratio of the variance of row totals to the sum of the variances of counts, within components, above which rows differ
# in their exposure, and the number of its standard errors from 1.
_UNEQUAL, _ERRORS = 1.25, 4.0
_FULL = (Gaussian, ZeroMeanGaussian)
# Likelihoods whose columns are codes, flags or counts, independent given the component; how many columns are compared,
# and the rows of a level, on average, for another column to follow from them.
_INDEPENDENT = (Bernoulli, Categorical, NegativeBinomial, Poisson)
_MOST_PAIRED, _ROWS_PER_LEVEL = 64, 3
_WITHOUT = ("the data without such columns",)
# Kinds with their own class, which files store.
_WARNED = {kind.kind: kind for kind in (ConvergenceWarning, SparsityWarning)}
# Domains of the Gaussians in the registry.
_REAL = ("real", "centred")
_DISPERSED = "NegativeBinomial()"


class Result(Protocol):
    """The part of a fit that advice needs."""

    _state: FitState
    # The model, with the positions of columns.
    _model: Mixture

    @property
    def model(self) -> Mixture:
        """The model."""

    @property
    def counts(self) -> NDArray[np.float64]:
        """Expected counts, shape (K,)."""

    @property
    def history(self) -> list[Record]:
        """The records of the passes."""

    @property
    def column_names(self) -> Names | None:
        """The names of the columns."""

    @property
    def objective(self) -> float:
        """The objective, nats."""

    @property
    def runner_up(self) -> RunnerUp | None:
        """The second best start."""


def of_state(fit: Result) -> Iterator[Advice]:
    """Yield the advice that follows from a fit alone."""
    counts = fit.counts[fit.counts >= 0.5]
    if counts.size == 0:
        return
    is_full = isinstance(fit.model.likelihood, _FULL)
    rank = fit._state.dimension - sum(map(len, fit._state.lost_columns))
    few = int(np.count_nonzero(counts < rank * rank / 2))
    if is_full and few > 0 and 2 * few >= counts.size:
        of_them = "the component has" if counts.size == 1 else f"{few} of {counts.size} components have"
        text = (
            f"{of_them} fewer than D^2 / 2 = {rank * rank / 2:g} rows for a full covariance of {rank} columns, "
            f"the smallest {counts.min():.0f}"
        )
        yield Advice(text, kind="few_rows", suggestions=("DiagonalGaussian()", "fewer columns", "more rows"))
    # The user asked for one component, without moves.
    could_grow = len(fit.counts) > 1 or any(record.moves for record in fit.history)
    share = float(counts.max() / counts.sum())
    if could_grow and share >= _NEARLY_ALL_ROWS:
        text = "one component has all rows" if counts.size == 1 else f"one component has {share:.1%} of the rows"
        more = () if fit.runner_up else ("n_init=2, which also starts from many components,",)
        tries = (*more, "fewer columns")
        needs_rows = is_full and counts.sum() < 2 * rank * rank
        yield Advice(text, kind="one_component", suggestions=("DiagonalGaussian()", *tries) if needs_rows else tries)
    rows = float(counts.sum())
    parts = [part for _, part, _ in fit._model.likelihood._parts({})]
    counts_values = any(part._domain == "counts" for part in parts)
    if counts_values and counts.size > max(_MANY_COMPONENTS * rows, _LEAST_ROWS * _MANY_COMPONENTS):
        text = f"there are {counts.size} components for {rows:.0f} rows"
        tries = ("fewer columns", "more rows")
        if not any(isinstance(part, NegativeBinomial) for part in parts):
            tries = (f"{_DISPERSED}, if counts vary more within a cluster than chance allows", *tries)
        yield Advice(text, kind="many_components", suggestions=tries)
    second = fit.runner_up
    if second is not None and second.ari < _AGREE:
        gap = fit.objective - second.objective
        text = (
            f"the best two starts, {gap:.3g} nats apart, found different clusters (adjusted Rand index "
            f"{second.ari:.2f})"
        )
        tries = ("more starts (n_init=)", "stability(), which tells the components that other seeds find too")
        yield Advice(text, kind="disagreement", suggestions=tries)


@dataclass(frozen=True)
class Sample:
    """Some rows of the data."""

    rows: NDArray[Any]
    # Their row numbers, in ascending order.
    numbers: NDArray[np.int64]


def look(rows: arrays.Rows) -> Sample | None:
    """Return a sample of the rows, made of pieces in order; all rows if they are few, None if they are sparse."""
    if isinstance(rows, arrays.SparseRows):
        return None
    n = len(rows)
    most = min(_MOST_ROWS, max(_LEAST_ROWS, _MOST_VALUES // rows.shape[1]))
    if n <= most:
        return Sample(rows, np.arange(n))
    size = most // _PIECES
    pieces = [slice(begin, begin + size) for begin in (piece * (n - size) // (_PIECES - 1) for piece in range(_PIECES))]
    numbers = np.concatenate([np.arange(piece.start, piece.stop) for piece in pieces])
    return Sample(np.concatenate([rows[piece] for piece in pieces]), numbers)


def of_rows(sample: Sample | None, likelihood: Likelihood, names: Names | None) -> Iterator[Advice]:
    """Yield the advice that follows from a sample of rows."""
    if sample is None or len(sample.rows) < _LEAST_ROWS:
        return
    rows = sample.rows
    for places, part, _ in likelihood._parts({}):
        if places is None:
            yield from _of_columns(sample, part, names)
        else:
            own = tuple(str(place) if names is None else names[place] for place in places)
            yield from _of_columns(Sample(rows[:, places], sample.numbers), part, own)
    yield from _of_repeated_levels(rows, likelihood, names)
    numbers = [position for position, column in enumerate(rows.T) if _counts_rows(column)]
    if numbers:
        text = f"{columns(numbers, names)} {'counts' if len(numbers) == 1 else 'count'} the rows"
        yield Advice(text, kind="row_numbers", suggestions=_WITHOUT)


def _of_columns(sample: Sample, likelihood: Likelihood, names: Names | None) -> Iterator[Advice]:
    """Yield the advice on columns under one likelihood."""
    rows = sample.rows
    if likelihood._domain in _REAL:
        yield from _of_equal_values([_counted(column) for column in rows.T], names)
        yield from _of_skewed(rows, names)
        yield from _of_outliers(sample, names)
        is_full = isinstance(likelihood, StudentT) and likelihood.covariance == "full"
        if not is_full and not isinstance(likelihood, (*_FULL, KnownCovarianceGaussian)):
            yield from _of_copies(rows, likelihood, names)
    if likelihood._domain == "binary":
        yield from _of_one_hot(rows, names)


def _counted(column: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the distinct values that are not missing, and their counts."""
    distinct, counts = np.unique(column[~np.isnan(column)], return_counts=True)
    return distinct, counts


def _of_equal_values(values: Sequence[tuple[NDArray[Any], NDArray[np.int64]]], names: Names | None) -> Iterator[Advice]:
    nearly = [
        position
        for position, (distinct, counts) in enumerate(values)
        if len(distinct) > 1 and counts.max() >= _NEARLY_CONSTANT * counts.sum()
    ]
    if nearly:
        text = f"{columns(nearly, names)} {'has' if len(nearly) == 1 else 'have'} one value in 99% of the rows or more"
        yield Advice(text, kind="nearly_constant", suggestions=_WITHOUT)
    flags = [position for position, (distinct, _) in enumerate(values) if len(distinct) == 2 and position not in nearly]
    if flags:
        text = f"{columns(flags, names)} {'has' if len(flags) == 1 else 'have'} two values, which no Gaussian describes"
        tries = ("Bernoulli() or Categorical() for such columns", "the data without them")
        yield Advice(text, kind="flags", suggestions=tries)


def _of_skewed(rows: NDArray[Any], names: Names | None) -> Iterator[Advice]:
    """Look for positive columns that are skewed to the right, and less skewed after logarithms."""
    found = []
    for position, column in enumerate(rows.T):
        values = column[~np.isnan(column)]
        if len(values) < _LEAST_ROWS or values.min() <= 0.0 or len(np.unique(values)) <= _FEW_VALUES:
            continue
        skewness, of_logarithms = shapes.skewness(values)
        if skewness > _SKEWED and abs(of_logarithms) < skewness / 2:
            found.append(position)
    if found:
        text = f"{columns(found, names)} {'is' if len(found) == 1 else 'are'} positive and skewed"
        tries = (f"logarithms of {'it' if len(found) == 1 else 'them'}, if you find more components than clusters",)
        yield Advice(text, kind="skewed", suggestions=tries)


def _of_outliers(sample: Sample, names: Names | None) -> Iterator[Advice]:
    """Look for rows that are far from all others."""
    low, high, distances = shapes.beyond(sample.rows, _USUAL)
    far = np.flatnonzero((distances > _FAR).any(axis=1))
    if far.size == 0 or 2 * far.size > len(sample.rows):
        return
    worst, column = divmod(int(distances.argmax()), distances.shape[1])
    listed = ", ".join(map(str, sample.numbers[far[:_MOST_NAMED]].tolist()))
    more = f" and {far.size - _MOST_NAMED} more" if far.size > _MOST_NAMED else ""
    text = (
        f"{'row' if far.size == 1 else 'rows'} {listed}{more} {'is' if far.size == 1 else 'are'} far from the others: "
        f"row {sample.numbers[worst]} has {sample.rows[worst, column]:.3g} in {columns([column], names)}, where most "
        f"rows have {low[column]:.3g} to {high[column]:.3g}"
    )
    yield Advice(text, kind="outliers", suggestions=("the data without such rows, if they are errors",))


def _of_copies(rows: NDArray[Any], likelihood: Likelihood, names: Names | None) -> Iterator[Advice]:
    """Look for columns that are linear functions of another one, which independent columns count twice."""
    complete = rows[~np.isnan(rows).any(axis=1)]
    copies = shapes.copies(complete) if len(complete) >= _LEAST_ROWS else []
    if copies:
        one = len(copies) == 1
        text = (
            f"{columns(copies, names)} {'repeats' if one else 'repeat'} another column, which "
            f"{type(likelihood).__name__} counts once more"
        )
        yield Advice(text, kind="copied_columns", suggestions=(*_WITHOUT, "Gaussian()"))


def _of_repeated_levels(rows: NDArray[Any], likelihood: Likelihood, names: Names | None) -> Iterator[Advice]:
    """Look for codes, flags and counts that follow from another one, such as a code beside its name."""
    parts = [(places, part) for places, part, _ in likelihood._parts({}) if isinstance(part, _INDEPENDENT)]
    places = [place for own, _ in parts for place in (range(rows.shape[1]) if own is None else own)]
    levels = {
        place: np.unique(rows[:, place], return_inverse=True, equal_nan=False)[1] for place in places[:_MOST_PAIRED]
    }
    counts = {place: np.bincount(found) for place, found in levels.items()}
    follow = [
        place
        for place, found in levels.items()
        if any(
            # Of two that say the same the first one stays. Rare levels, and those of few rows, may agree by chance.
            (len(counts[place]), -place) < (len(counts[other]), -other)
            and len(counts[other]) * _ROWS_PER_LEVEL <= len(rows)
            and len(rows) - counts[place].max() >= _LEAST_ROWS
            and len(np.unique(others * len(counts[place]) + found)) == len(counts[other])
            for other, others in levels.items()
        )
    ]
    if follow:
        verbs = ("follows", "counts") if len(follow) == 1 else ("follow", "count")
        text = f"{columns(follow, names)} {verbs[0]} from another column, and {verbs[1]} once more"
        yield Advice(text, kind="copied_columns", suggestions=_WITHOUT)


def of_steps(sample: Sample | None, fit: Result) -> Iterator[Advice]:
    """Yield advice on how integers were treated."""
    found = getattr(fit.model.likelihood, "resolution", None)
    if found is None or sample is None:
        return
    steps = np.zeros(fit._state.dimension) + found
    # Every number above the largest is whole, which says nothing of the values.
    is_step = (steps >= 1.0) & (steps <= arrays.LARGEST_WHOLE)
    whole = [column for column in np.flatnonzero(is_step).tolist() if not np.any(sample.rows[:, column] % 1.0 > 0.0)]
    if whole:
        one = len(whole) == 1
        text = (
            f"{columns(whole, fit.column_names)} {'holds' if one else 'hold'} whole numbers, which "
            f"{type(fit.model.likelihood).__name__} takes for values rounded to {'that step' if one else 'their steps'}"
        )
        tries = ("Poisson() if all columns are counts", "Categorical() if all are codes")
        yield Advice(text, kind="whole_numbers", suggestions=tries)


def of_counts(sample: Sample | None, fit: Result) -> Iterator[Advice]:
    """Yield the advice on how much counts vary within components."""
    yield from _of_overdispersed(sample, fit)
    yield from _of_totals(sample, fit)


def _of_overdispersed(sample: Sample | None, fit: Result) -> Iterator[Advice]:
    """Compare the variances of Poisson counts with their means within components."""
    parts = [(places, part) for places, part, _ in fit._model.likelihood._parts({}) if isinstance(part, Poisson)]
    if sample is None or not parts:
        return
    rows = sample.rows[~np.isnan(sample.rows).all(axis=1)]
    labels = fit._state.predict(rows, None)
    for places, part in parts:
        yield from _of_poisson(rows if places is None else rows[:, places], labels, part)


def _of_poisson(rows: NDArray[Any], labels: NDArray[np.int64], likelihood: Poisson) -> Iterator[Advice]:
    exposures, is_count = _exposures(rows, likelihood)
    excess, values = 0.0, 0
    for label in np.unique(labels):
        own, sizes = rows[labels == label][:, is_count], exposures[labels == label].reshape(-1, 1)
        present = ~np.isnan(own)
        numbers, sums = present.sum(axis=0), np.where(present, own, 0.0).sum(axis=0)
        looked = (numbers > 1) & (sums > 0)
        means = sums[looked] / np.where(present, sizes, 0.0).sum(axis=0)[looked] * sizes
        squares = np.where(present[:, looked], own[:, looked] - means, 0.0) ** 2
        # A row without counts has no part in their variance where its total is its exposure.
        excess += float((squares / np.where(means > 0.0, means, 1.0)).sum())
        values += int((numbers[looked] - 1).sum())
    if values >= _LEAST_VALUES and excess > _OVERDISPERSED * values:
        text = f"counts within components vary {excess / values:.2g} times as much as Poisson counts"
        yield Advice(text, kind="overdispersed", suggestions=(_DISPERSED,))


def _exposures(rows: NDArray[Any], likelihood: Poisson) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the exposures of rows, (n,), and which columns hold counts, (D,)."""
    is_count, exposure = np.ones(rows.shape[1], dtype=bool), likelihood.exposure
    if exposure is None:
        return np.ones(len(rows)), is_count
    if isinstance(exposure, str):
        return rows.sum(axis=1, dtype=np.float64), is_count
    is_count[exposure] = False
    return rows[:, exposure].astype(np.float64), is_count


def _of_totals(sample: Sample | None, fit: Result) -> Iterator[Advice]:
    """Compare the variances of row totals with those of counts within components.

    Counts of independent columns have totals whose variance is the sum of theirs, however much they vary.
    """
    parts = [
        (places, part)
        for places, part, _ in fit._model.likelihood._parts({})
        if isinstance(part, Poisson | NegativeBinomial) and part.exposure is None
    ]
    if sample is None or not parts:
        return
    labels = fit._state.predict(sample.rows, None)
    for places, part in parts:
        rows = (sample.rows if places is None else sample.rows[:, places]).astype(np.float64)
        if not np.isnan(rows).any():
            yield from _of_totals_of(rows, labels, part, places, fit.column_names)


def _of_totals_of(
    rows: NDArray[np.float64],
    labels: NDArray[np.int64],
    likelihood: Likelihood,
    places: Sequence[int] | None,
    names: Names | None,
) -> Iterator[Advice]:
    squares, expected, number = 0.0, 0.0, 0
    for label in np.unique(labels):
        own = rows[labels == label]
        centred = own - own.mean(axis=0)
        squares += float((centred.sum(axis=1) ** 2).sum())
        expected += float((centred**2).sum())
        number += len(own) - 1
    least = max(_UNEQUAL, 1.0 + _ERRORS * (2.0 / number) ** 0.5) if number > 0 else 0.0
    if number > 0 and squares > least * expected:
        of_block = "" if places is None else f" of the {columns(list(places), names)}"
        text = (
            f"row totals{of_block} within components vary {squares / expected:.2g} times as much as independent counts"
        )
        tries: tuple[str, ...] = (f'{type(likelihood).__name__}(exposure="total"), if totals say how much was counted',)
        if places is None:
            tries += ("fit(..., exposure=)",)
        yield Advice(text, kind="exposure", suggestions=tries)


def _of_one_hot(rows: NDArray[Any], names: Names | None) -> Iterator[Advice]:
    """Look for groups of adjacent columns with exactly one flag in each row."""
    complete = rows[~np.isnan(rows).any(axis=1)]
    groups: list[list[int]] = []
    # The widest window that ends at each column and has at most one flag in every row.
    begin, total = 0, np.zeros(len(complete))
    for end, column in enumerate(complete.T):
        total = total + column
        while (total > 1.0).any():
            total = total - complete[:, begin]
            begin += 1
        if len(complete) >= _LEAST_ROWS and (total == 1.0).all():
            group = [column for column in range(begin, end + 1) if complete[:, column].any()]
            if len(group) > 1:
                groups.append(group)
                begin, total = end + 1, np.zeros(len(complete))
    if groups:
        text = f"each row has exactly one of the {columns(groups[0], names)}"
        if len(groups) > 1:
            text += f", and of {len(groups) - 1} more {'group' if len(groups) == 2 else 'groups'}"
        tries = ("Categorical() with one column of codes in their place",)
        yield Advice(f"{text}, but Bernoulli takes columns for independent", kind="flags", suggestions=tries)


def _counts_rows(column: NDArray[Any]) -> bool:
    """Return whether a column holds row numbers: it increases by one from row to row, or is a permutation of them.

    A sample in pieces may have gaps between rows, and a table may lack some of its rows. Therefore integers that always
    increase, by at most two on average, count as row numbers too.
    """
    if not np.isfinite(column).all():
        return False
    distinct = np.unique(column)
    if len(distinct) == len(column) and (distinct[1:] - distinct[:-1] == 1.0).all():
        return True
    steps = column[1:] - column[:-1]
    if not ((steps >= 1.0).all() and (steps % 1.0 == 0.0).all()):
        return False
    return bool(np.count_nonzero(steps == 1.0) >= len(steps) - (_PIECES - 1) or steps.mean() <= 2.0)


def to_header(remarks: Iterable[Advice]) -> list[list[Any]]:
    """Return advice in the form that files store."""
    return [[advice.kind, advice.text, list(advice.suggestions)] for advice in remarks]


def from_header(kept: object) -> tuple[Advice, ...]:
    """Return the advice stored in a file.

    Raises
    ------
    ValueError
        It is not in the form of `to_header`.
    """
    found: list[Advice] = []
    for each in kept if isinstance(kept, list) else [None]:
        if not (isinstance(each, list) and len(each) == 3 and isinstance(each[2], list)):
            raise ValueError("the advice is not a list of kinds, texts and suggestions")
        kind, text, suggestions = each
        if not all(isinstance(word, str) for word in (kind, text, *suggestions)):
            raise ValueError("the advice is not made of words")
        found.append(_WARNED.get(kind, Advice)(text, kind=kind, suggestions=tuple(suggestions)))
    return tuple(found)
