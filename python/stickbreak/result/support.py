"""The support of a fit or a trace: the directions in which its rows vary."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stickbreak._core import FitState, HierarchyState, SampledModel
from stickbreak.errors import SupportWarning
from stickbreak.io import arrays
from stickbreak.io.names import Names

_MOST_COLUMNS = 10


@dataclass(frozen=True, eq=False)
class Support:
    """The affine subspace on which a fit or a trace has its density.

    It has all D directions unless a column of the data was constant, had no value at all, or was an affine function of
    other columns. Such columns carry no information about clusters, and the model does not see them.

    Parameters
    ----------
    rank : int
        r, the number of directions: the dimension of the subspace.
    constant : tuple of int
        The constant columns, and columns without any value.
    dependent : tuple of int
        The columns that are affine functions of the others.
    basis : ndarray of float64, shape (D, r)
        Orthonormal directions of the subspace in the data's columns, read-only.
    residual : tuple of int
        The columns that nearly follow from the others, such as the end of a job beside its start. The model sees what
        is left of them, which changes no density.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> X = np.column_stack([X, X[:, 0] + X[:, 1], np.ones(100)])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", sb.SupportWarning)
    ...     fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), X)
    >>> fit.support.rank, fit.support.constant, fit.support.dependent, fit.support.basis.shape
    (2, (3,), (2,), (4, 2))
    """

    rank: int
    constant: tuple[int, ...]
    dependent: tuple[int, ...]
    basis: NDArray[np.float64]
    residual: tuple[int, ...] = ()


def of(state: FitState | SampledModel) -> Support:
    """Return the support of a fit or a trace."""
    (constant, dependent), basis = state.lost_columns, state.basis
    basis.flags.writeable = False
    return Support(basis.shape[1], tuple(constant), tuple(dependent), basis, tuple(state.residual_columns))


def is_whole(state: FitState) -> bool:
    """Return whether the model uses every column."""
    return not any(state.lost_columns)


def of_columns(state: FitState | SampledModel | HierarchyState, column_names: Names | None) -> SupportWarning | None:
    """Return a warning about columns that the model does not see, if any."""
    constant, dependent = state.lost_columns
    parts = []
    if constant:
        more = (
            f" or {'has' if len(constant) == 1 else 'have'} no value"
            if getattr(state, "missing", None) == "marginalize"
            else ""
        )
        parts.append(f"{columns(constant, column_names)} {_verb(constant, 'is')} constant{more}")
    if dependent:
        parts.append(f"{columns(dependent, column_names)} {_verb(dependent, 'follows')} from the others")
    if not parts:
        return None
    return SupportWarning(
        f"{' and '.join(parts)}; the model ignores such columns, because they carry no information about clusters"
    )


def advice(state: FitState, column_names: Names | None) -> SupportWarning | None:
    """Return a warning about columns that the model does not see, or about too few rows, if any."""
    found = of_columns(state, column_names)
    if found is None and state.lacks_rows:
        text = (
            f"there are too few different rows to span {state.dimension} columns, so in some directions covariances "
            "are those of the prior"
        )
        return SupportWarning(text, suggestions=("DiagonalGaussian()", "more rows"))
    return found


def warn_of_rows(
    state: FitState,
    rows: arrays.Rows,
    what: str,
    threads: int | None,
    weights: NDArray[np.float64] | None = None,
    *,
    stacklevel: int = 3,
) -> None:
    """Warn of rows off the subspace of a fit; `what` states how they are treated."""
    if is_whole(state):
        return
    number, off = state.strays(rows, weights, threads)
    if number > 0:
        lie = "1 row lies" if number == 1 else f"{number} rows lie"
        text = f"{lie} off the subspace of the fit in {columns(off)}; {what}"
        warnings.warn(text, SupportWarning, stacklevel=stacklevel)


def columns(numbers: Sequence[int], names: Names | None = None) -> str:
    """Return a description of columns: their names, or their positions from 0."""
    shown = [str(number) if names is None else repr(names[number]) for number in numbers[:_MOST_COLUMNS]]
    more = len(numbers) - len(shown)
    return f"column{'' if len(numbers) == 1 else 's'} {', '.join(shown)}{f' and {more} more' if more else ''}"


def _verb(numbers: Sequence[int], singular: str) -> str:
    if len(numbers) == 1:
        return singular
    return "are" if singular == "is" else singular.removesuffix("s")
