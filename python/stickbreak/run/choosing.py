"""`columns_for`: a likelihood for each column of a table, by its type and its values."""

import re
import sys
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stickbreak import checks
from stickbreak.io import arrays, cells, frames, numerals
from stickbreak.io.names import named
from stickbreak.io.room import fitting
from stickbreak.model.columns import Columns
from stickbreak.model.counts import Bernoulli, Categorical, NegativeBinomial
from stickbreak.model.likelihoods import DiagonalGaussian, Gaussian, Likelihood
from stickbreak.result import shapes
from stickbreak.terminal import plain

# What a column is for a model, and "refused" if it is nothing for one.
Part: TypeAlias = Literal["amount", "count", "flag", "category", "refused"]

# Maximum number of distinct whole numbers of a column of categories.
_FEW = 10
# Columns with fewer values may have different ones by chance.
_LEAST_ROWS = 10
# Minimum mean number of rows of a category.
_ROWS_OF_LEVEL = 5
# Minimum number of distinct counts if they are few; the largest is this many times rarer than the commonest.
_LEAST_COUNTS, _FAR_BELOW = 5, 4.0
# Maximum number of categories however few rows they have.
_FEW_LEVELS = 20
# Share of values that are nearly all.
_NEARLY = 0.9
# Mean length of free text, in characters.
_LONG_TEXT = 40
# Largest count; larger whole numbers are amounts.
_LARGEST_COUNT = 10_000
# Whole numbers from here on that are all different are numbers of something.
_LEAST_NUMBER, _LARGEST_NUMBER = 10**8, 2**64
# Share of zeros from which on an amount has many.
_MANY_ZEROS = 0.2
# Positive columns with a larger skewness may need logarithms.
_SKEWED = 1.5
# Full covariances need this many rows for each column, and cost too much with more columns.
_ROWS_OF_COLUMN, _MOST_JOINT = 10, 100
# With more amounts most rows lack other ones, and each pattern of holes costs the cube of their number.
_MOST_IMPUTED = 20
_MOST_SHOWN = 3
_ID = re.compile(r"(?:^|[\W_])(?:[iI][dD]|(?i:uuid|guid|key))$|[a-z](?:Id|ID)$")
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}([T ].*)?|\d{1,2}:\d\d(:\d\d.*)?"
)
_ALLOWED = "a table of amounts, counts, categories and flags"
# Said below the table.
_OF_HOLES = (
    "Amounts with missing values are taken as independent within a cluster. If they are not, a cluster becomes several "
    "components; complete rows or columns, or fewer columns, have a Gaussian."
)


class ColumnChoice(NamedTuple):
    """What was chosen for one column, and why."""

    column: str | int
    part: Part
    holds: str
    why: str
    # The values of amounts.
    values: NDArray[np.float64]


def columns_for(data: Any, *, verbose: bool = True, missing: str = "error") -> Columns:
    """Choose a likelihood for each column of a table by its type and its values, and print a table of the choices.

    ============================================================== ======================================
    the column holds                                               the likelihood
    ============================================================== ======================================
    numbers with fractions; whole numbers far from zero            `Gaussian`, or `DiagonalGaussian`
    whole numbers from about zero on                               `NegativeBinomial`
    booleans; 0 and 1                                              `Bernoulli`
    text, declared categories; whole numbers of few values         `Categorical`
    ============================================================== ======================================

    Amounts share one `Gaussian`, which sees how they vary together, if there are ten rows or more for each of them,
    and at most 100. Of more than 20 amounts, those that some rows lack one by one have a `DiagonalGaussian`, which
    takes them as independent within a cluster; so have all amounts otherwise, and with ``missing="marginalize"``.
    Up to ten distinct whole numbers are categories, unless they look like counts: five or more from 0 on, whose
    frequencies have one peak and fall below a quarter of it. Missing values decide nothing else. Constant columns
    stay, without effect.

    Parameters
    ----------
    data : table or array_like of shape (n, D)
        A pandas, Polars or Arrow table, or an array of numbers.
    verbose : bool
        Whether to print each column, what it holds, its likelihood, and why.
    missing : {"error", "marginalize"}
        "marginalize": later rows may lack values that no row of `data` lacks, so more than 20 amounts have a
        `DiagonalGaussian`. Fit with `missing` of the same value.

    Returns
    -------
    Columns
        One block for each kind of columns. Change it as you like: it is a likelihood as any other.

    Raises
    ------
    InvalidType
        `data` is no table or array, or a column has values of several types.
    InvalidArgument
        The table is empty, or has columns that describe no clusters: ids, free text, dates and times, and numbers as
        text. The error names all of them.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import stickbreak as sb
    >>> kind = np.arange(200) % 2
    >>> age = np.random.default_rng(0).normal(30 + 20 * kind, 4)
    >>> visits = np.random.default_rng(1).poisson(2 + 9 * kind)
    >>> table = pd.DataFrame({"age": age, "visits": visits, "town": np.where(kind, "Ulm", "Bonn")})
    >>> columns = sb.columns_for(table)
    column  holds                            likelihood        why
    age     200 values from ... to ...       Gaussian          numbers with fractions
    visits  ... values from 0 to ...         NegativeBinomial  whole numbers from about zero on
    town    2 levels: 'Bonn', 'Ulm'          Categorical       text
    >>> columns
    Columns({'age': Gaussian(), 'visits': NegativeBinomial(), 'town': Categorical()})
    >>> sb.fit(sb.Mixture(likelihood=columns), table).levels
    {'town': ('Bonn', 'Ulm')}
    """
    show = checks.flag("verbose", verbose)
    may_miss = checks.word("missing", missing, ("error", "marginalize")) == "marginalize"
    choices = choices_for(data, "data")
    parts = likelihoods_of(choices, may_miss=may_miss)
    if show:
        sys.stdout.write(table_of(choices, parts, may_miss=may_miss) + "\n")
    return blocks_of(choices, parts)


def choices_for(data: Any, argument: str, hint: str = "") -> list[ColumnChoice]:
    """Return the choice for each column; `hint` says how to leave out refused ones."""
    value = frames.understood(data, argument)
    table, labels, _ = named(value, argument)
    is_array = not cells.is_of_columns(table)
    if is_array:
        table = arrays.numeric(table, argument, arrays._ROWS_ALLOWED)
    if is_array and table.ndim != 2:
        raise checks.invalid_argument(argument, f"of shape {table.shape}", arrays._ROWS_ALLOWED)
    n, n_columns = cells.shape_of(table)
    if n == 0 or n_columns == 0:
        raise checks.invalid_argument(argument, f"of shape {(n, n_columns)}", "a table with rows and columns")
    titles: Sequence[str | int] = range(n_columns) if labels is None else labels
    with fitting(argument, (n, n_columns)):
        found = [
            _chosen(title, cells.column(table, place), is_frame=not is_array or labels is not None)
            for place, title in enumerate(titles)
        ]
    refused = [choice for choice in found if choice.part == "refused"]
    if refused:
        listed = ", ".join(f"{_quoted(choice.column)} ({choice.why})" for choice in refused)
        columns = "columns" if len(refused) > 1 else "column"
        text = f"a table with the {columns} {listed}"
        names = [choice.column for choice in refused]
        if frames.is_of(table, "pandas", "DataFrame") and labels is not None:
            hint = hint or f"leave them out: {argument}.drop(columns={names})"
        elif labels is not None and frames.is_table(table):
            hint = hint or f"leave them out: {argument}.drop({names})"
        raise checks.invalid_argument(argument, text, _ALLOWED, hint or "leave them out")
    return found


def likelihoods_of(choices: Sequence[ColumnChoice], *, may_miss: bool = False) -> list[Likelihood]:
    """Return the likelihood of the block of each choice; later rows may lack single values if they `may_miss`."""
    amounts = [choice.values for choice in choices if choice.part == "amount"]
    holes = np.isnan(np.stack(amounts)) if amounts else np.zeros((0, 0), dtype=bool)
    same = bool((holes.all(axis=0) | ~holes.any(axis=0)).all())
    imputes = len(amounts) <= _MOST_IMPUTED
    complete = [same or imputes or not bool(row.any()) for row in holes]
    n_joint = complete.count(True)
    n = len(amounts[0]) if amounts else 0
    is_joint = (imputes or not may_miss) and n_joint <= _MOST_JOINT and n >= _ROWS_OF_COLUMN * n_joint
    gaussian, diagonal = Gaussian(), DiagonalGaussian()
    others: dict[Part, Likelihood] = {"count": NegativeBinomial(), "flag": Bernoulli(), "category": Categorical()}
    found = iter(complete)
    return [
        others[choice.part] if choice.part != "amount" else gaussian if next(found) and is_joint else diagonal
        for choice in choices
    ]


def blocks_of(choices: Sequence[ColumnChoice], parts: Sequence[Likelihood]) -> Columns:
    """Return the blocks of the choices, one for each kind of likelihood."""
    blocks: dict[type[Likelihood], list[str | int]] = {
        kind: [] for kind in (Gaussian, DiagonalGaussian, NegativeBinomial, Bernoulli, Categorical)
    }
    for choice, part in zip(choices, parts, strict=True):
        blocks[type(part)].append(choice.column)
    return Columns({tuple(columns): kind() for kind, columns in blocks.items() if columns})


def table_of(choices: Sequence[ColumnChoice], parts: Sequence[Likelihood], *, may_miss: bool = False) -> str:
    """Return the choices as lines of aligned columns."""
    lines = [("column", "holds", "likelihood", "why")]
    for choice, part in zip(choices, parts, strict=True):
        lines.append((plain(str(choice.column)), choice.holds, type(part).__name__, choice.why))
    widths = [max(map(len, cells_of)) for cells_of in zip(*lines, strict=True)]
    padded = ("  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)) for line in lines)
    diagonal = [c for c, part in zip(choices, parts, strict=True) if isinstance(part, DiagonalGaussian)]
    with_holes = [choice for choice in diagonal if 0 < np.isnan(choice.values).sum() < len(choice.values)]
    notes = [_OF_HOLES] if (with_holes or may_miss) and len(diagonal) > 1 else []
    return "\n".join([*(line.rstrip() for line in padded), *notes])


def _chosen(title: str | int, column: cells.Column, *, is_frame: bool) -> ColumnChoice:
    """Return the choice for a column; only in frames may categories be other than codes."""
    part: Part
    if column.kind == "times":
        return _refused(title, "dates or times")
    if column.kind == "other":
        return _refused(title, f"of the dtype {column.dtype}")
    if column.kind == "words":
        part, holds, why = _of_words(title, column.values)
    elif column.kind == "categories":
        part, holds, why = _of_categories(column)
    elif column.kind == "flags":
        part, holds, why = "flag", _flags(column.values), "booleans"
    else:
        part, holds, why = _of_numbers(title, column.values, is_frame=is_frame)
    return ColumnChoice(title, part, holds, why, column.values if part == "amount" else np.empty(0))


def _refused(title: str | int, why: str) -> ColumnChoice:
    return ColumnChoice(title, "refused", "", why, np.empty(0))


def _of_words(title: str | int, values: NDArray[Any]) -> tuple[Part, str, str]:
    words = [value for value in values.tolist() if value is not None]
    distinct = sorted(set(words))
    n, n_distinct = len(words), len(distinct)
    holds = _levels(distinct, len(values) - n)
    if n_distinct == 1:
        return "category", holds, "constant text: no information about clusters"
    if all(_DATE.fullmatch(word.strip()) for word in distinct):
        return "refused", holds, "dates or times, as text"
    is_long = sum(map(len, words)) >= _LONG_TEXT * n
    numbers = numerals.among(distinct)
    are_numbers = len(numbers) >= _NEARLY * n_distinct and not _is_id(title)
    is_diverse = n >= _LEAST_ROWS and 2 * n_distinct > n
    if are_numbers and (is_diverse or n_distinct > _FEW_LEVELS):
        # Levels would be those of these rows alone: the next table has other numbers.
        other = next((f", beside {_shown(word)}" for word in distinct if word not in set(numbers)), "")
        return (
            "refused",
            holds,
            f"numbers as text, such as {_shown(numbers[0])}{other}: make numbers of them, or declare categories",
        )
    if is_diverse:
        if is_long:
            return "refused", holds, f"free text, such as {_shown(distinct[0])}"
        if n_distinct == n or _is_id(title):
            return "refused", holds, f"an id: {n_distinct:,} different values in {n:,} rows"
        return "refused", holds, f"text of {n_distinct:,} different values in {n:,} rows"
    if n_distinct > _FEW_LEVELS and n_distinct * _ROWS_OF_LEVEL > n:
        return "refused", holds, f"text of {n_distinct:,} different values in {n:,} rows"
    if are_numbers:
        return "category", holds, "numbers as text; make numbers of them if they are amounts or counts"
    return "category", holds, "text"


def _of_categories(column: cells.Column) -> tuple[Part, str, str]:
    used = column.values[column.values >= 0]
    n, n_distinct = len(used), len(np.unique(used))
    holds = _levels(column.categories, len(column.values) - n)
    if n >= _LEAST_ROWS and n_distinct == n:
        return "refused", holds, f"an id: {n:,} different categories in {n:,} rows"
    return "category", holds, "declared categories"


def _of_numbers(title: str | int, values: NDArray[np.float64], *, is_frame: bool) -> tuple[Part, str, str]:
    found = values[np.isfinite(values)]
    distinct, counts = np.unique(found, return_counts=True)
    holds = _numbers(found, len(values) - len(found))
    if np.isinf(values).any():
        # `fit` names the first of them.
        return "amount", holds, "numbers, some infinite"
    if len(distinct) == 0:
        return "amount", "no value", "no value: no information about clusters"
    if len(distinct) == 1:
        return "amount", holds, "constant: no information about clusters"
    # Larger ones share their float64 and are no levels.
    is_frame = is_frame and bool((abs(distinct) <= arrays.LARGEST_WHOLE).all())
    if len(distinct) == 2 and distinct.tolist() != [0.0, 1.0] and len(found) >= 2 * _ROWS_OF_LEVEL and is_frame:
        return "category", holds, "two values"
    if (found % 1.0 != 0.0).any():
        return "amount", holds, _of_amount(title, found, "numbers with fractions")
    if distinct.tolist() == [0.0, 1.0]:
        return "flag", _flags(values), "0 and 1"
    if reason := _id_of(title, found, distinct):
        return "refused", holds, reason
    is_codes = distinct[0] >= 0.0 and distinct[-1] < 2 * _FEW
    if _is_id(title) and (is_frame or is_codes):
        return "category", holds, "whole numbers that name something"
    if len(distinct) <= _FEW and len(found) >= _ROWS_OF_LEVEL * len(distinct) and (is_frame or is_codes):
        if _has_peak(distinct, counts):
            return "count", holds, "whole numbers from zero on, large ones rare"
        return "category", holds, f"whole numbers of {len(distinct)} values"
    if distinct[0] < 0.0:
        return "amount", holds, _of_amount(title, found, "whole numbers, some negative")
    low = shapes.quantile(found, 0.05)
    is_near_zero = low <= 0.2 * float(found.mean()) + 2.0
    if is_near_zero and distinct[-1] <= _LARGEST_COUNT:
        return "count", holds, _of_amount(title, found, "whole numbers from about zero on", logarithm=False)
    why = f"whole numbers, some above {_LARGEST_COUNT:,}" if is_near_zero else "whole numbers far from zero"
    return "amount", holds, _of_amount(title, found, why)


def _id_of(title: str | int, found: NDArray[np.float64], distinct: NDArray[np.float64]) -> str:
    """Return why whole numbers are ids; empty if they are not."""
    n, n_distinct = len(found), len(distinct)
    if n < _LEAST_ROWS:
        return ""
    if n_distinct == n:
        steps = found[1:] - found[:-1]
        if (steps > 0.0).all() or (steps < 0.0).all():
            return "an id: whole numbers in order, each once"
        if distinct[-1] - distinct[0] == n - 1:
            return "an id: consecutive whole numbers, each once"
        if distinct[0] >= _LEAST_NUMBER and distinct[-1] <= _LARGEST_NUMBER:
            return f"an id: whole numbers of {len(f'{distinct[0]:.0f}')} digits or more, each once"
    if _is_id(title) and (n_distinct >= _NEARLY * n or n_distinct > max(_FEW_LEVELS, n / _ROWS_OF_LEVEL)):
        return f"an id: {n_distinct:,} different whole numbers in {n:,} rows"
    return ""


def _is_id(title: str | int) -> bool:
    return isinstance(title, str) and bool(_ID.search(title))


def _has_peak(distinct: NDArray[np.float64], counts: NDArray[np.int64]) -> bool:
    """Return whether frequencies look like those of counts: they start at 0, and fall far from a single peak."""
    if distinct[0] != 0.0 or len(distinct) < _LEAST_COUNTS:
        return False
    found = counts.astype(np.float64)
    peak = int(found.argmax())
    # Up to chance.
    rises = found[:peak] <= found[1 : peak + 1] + 2.0 * found[:peak] ** 0.5
    falls = found[peak + 1 :] <= found[peak:-1] + 2.0 * found[peak:-1] ** 0.5
    return bool(rises.all() and falls.all() and _FAR_BELOW * found[-1] < found[peak])


def _of_amount(title: str | int, found: NDArray[np.float64], why: str, *, logarithm: bool = True) -> str:
    """Return why, and what may be done about many zeros or a long tail."""
    zeros = np.count_nonzero(found == 0.0) / len(found)
    positive = found[found > 0.0]
    if found.min() >= 0.0 and zeros >= _MANY_ZEROS and len(np.unique(positive)) > _FEW and _is_far(positive):
        advice = f"{zeros:.0%} are zero: split_zeros(data, [{title!r}]) makes a flag and an amount of it"
        return f"{why}; {advice}"
    if logarithm and found.min() > 0.0 and len(found) >= _LEAST_ROWS:
        skewness, of_logarithms = shapes.skewness(found)
        if skewness > _SKEWED and abs(of_logarithms) < skewness / 2:
            return f"{why}; skewed: consider its logarithm"
    return why


def _is_far(positive: NDArray[np.float64]) -> bool:
    """Return whether positive values are amounts: they have fractions, or are far from zero."""
    return bool((positive % 1.0 != 0.0).any()) or shapes.quantile(positive, 0.05) > _FEW


def _levels(distinct: Sequence[Any], n_missing: int) -> str:
    listed = ", ".join(map(_shown, distinct[:_MOST_SHOWN])) + (", ..." if len(distinct) > _MOST_SHOWN else "")
    return f"{_plural(len(distinct), 'level')}: {listed}{_missing(n_missing)}"


def _numbers(found: NDArray[np.float64], n_missing: int) -> str:
    if len(found) == 0:
        return f"no value{_missing(n_missing)}"
    n = len(np.unique(found))
    text = f"{found[0]:g}" if n == 1 else f"from {found.min():g} to {found.max():g}"
    return f"{_plural(n, 'value')} {text}{_missing(n_missing)}"


def _flags(values: NDArray[np.float64]) -> str:
    found = values[~np.isnan(values)]
    share = f"true in {found.mean():.0%}" if len(found) else "no value"
    return f"{share}{_missing(len(values) - len(found))}"


def _missing(number: int) -> str:
    return f", {number:,} missing" if number else ""


def _plural(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _shown(value: Any) -> str:
    return checks.quote(value) if isinstance(value, str) else str(value)


def _quoted(column: str | int) -> str:
    return checks.quote(column) if isinstance(column, str) else str(column)
