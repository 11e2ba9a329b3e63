"""Tolerances for numbers that are equal in exact arithmetic, and messages for larger differences."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stickbreak.result.fit import Fit

# A bound in float64, relative to the size of its terms: design number 1.
BOUND = 1e-9
# The same if the base measure is estimated.
ESTIMATED = 1e-6
# A score in float32, relative to the size of its terms: a few times its rounding.
SINGLE = 4 * float(np.finfo(np.float32).eps)
# A sum over rows in float64, relative to the sum of absolute terms.
SUM = 1e-11
# The score of a row, relative to its own size: float64 rounds at 1e-16, float32 at 6e-8.
SCORE = {np.dtype(np.float64): 1e-11, np.dtype(np.float32): 1e-5}


@dataclass(frozen=True)
class Tolerance:
    """A tolerance and its justification.

    Parameters
    ----------
    value : float or ndarray
        The largest difference allowed.
    reason : str
        Its derivation, for the message.
    """

    value: float | NDArray[np.float64]
    reason: str


def bound_tolerance(fit: Fit, rows: NDArray[Any], weights: ArrayLike | None) -> Tolerance:
    """Return the rounding error, in nats, allowed for a bound of these rows.

    The terms of the bound are of the size of the bound itself, and of one nat for each coordinate of each row and of
    each component. The score of a float32 row is rounded in float32: its constant, which depends on the units of the
    data, and the sum of its D coordinates.
    """
    n, dimension = rows.shape
    mass = float(n if weights is None else np.sum(weights))
    size = abs(fit.elbo) + dimension * (mass + fit.n_components)
    # An estimated scale may be small in directions without scatter, where it loses digits.
    relative = BOUND if fit.objective == fit.elbo else ESTIMATED
    value, reason = relative * size, f"{relative:g} of the terms of the bound, {size:.3g} nats"
    if rows.dtype == np.float32:
        score = dimension + float(np.abs(fit.log_predictive(rows)).max())
        value += SINGLE * score * mass
        reason += f", and {SINGLE:g} of the largest score, {score:.3g} nats, for a weight of {mass:.3g} of float32 rows"
    margin = fit._state.margin
    if margin is not None:
        value += mass * fit.n_components * math.exp(-margin)
        reason += f", and what a margin of {margin:g} nats may cost"
    return Tolerance(value, reason)


def sum_tolerance(size: float, rows: NDArray[Any]) -> Tolerance:
    """Return the error allowed for a sum over rows whose absolute terms sum to `size`.

    The terms are computed from scores, so in float32 each term has its own rounding error.
    """
    relative = SUM if rows.dtype == np.float64 else SCORE[rows.dtype]
    return Tolerance(relative * size, f"{relative:g} of the absolute terms of the sum, {size:.3g}")


def score_tolerance(scores: NDArray[np.float64], rows: NDArray[Any]) -> Tolerance:
    """Return the error in nats allowed for each score, shape (n,), and so for responsibilities computed from them."""
    relative = SCORE[rows.dtype]
    return Tolerance(relative * (1.0 + np.abs(scores)), f"{relative:g} of the score of the row, for {rows.dtype} rows")


def require_close(what: str, found: ArrayLike, expected: ArrayLike, tolerance: Tolerance) -> None:
    """Raise AssertionError unless two numbers or arrays are equal within the tolerance."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        raise AssertionError(f"{what} has shape {found.shape}, not {expected.shape}")
    with np.errstate(invalid="ignore"):  # infinity minus infinity is NaN, and so fails
        difference = np.abs(found - expected)
    _require(what, "but should be", found, expected, difference, tolerance)


def require_not_below(what: str, found: ArrayLike, least: ArrayLike, tolerance: Tolerance) -> None:
    """Raise AssertionError if a number is below another one by more than the tolerance."""
    found, least = np.asarray(found), np.asarray(least)
    with np.errstate(invalid="ignore"):
        difference = least - found
    _require(what, "but should not be below", found, least, difference, tolerance)


def _require(
    what: str,
    relation: str,
    found: NDArray[Any],
    expected: NDArray[Any],
    difference: NDArray[Any],
    tolerance: Tolerance,
) -> None:
    # Written so that NaN fails.
    wrong = ~(difference <= tolerance.value)
    if not wrong.any():
        return
    with np.errstate(invalid="ignore"):
        excess = np.where(np.isfinite(difference), difference - tolerance.value, np.inf)
    expected = np.broadcast_to(expected, wrong.shape)
    worst = np.unravel_index(int(np.argmax(np.where(wrong, excess, -np.inf))), wrong.shape)
    place = f" at {list(map(int, worst))}" if worst else ""
    allowed = np.broadcast_to(tolerance.value, wrong.shape)[worst]
    raise AssertionError(
        f"{what}{place} is {found[worst]!r}, {relation} {expected[worst]!r}: off by {difference[worst]:.3g}, allowed "
        f"{allowed:.3g} ({tolerance.reason})"
    )
