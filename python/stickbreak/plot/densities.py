"""Densities of one column, by component, and of two."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stickbreak import checks
from stickbreak.io import frames
from stickbreak.model.background import Background
from stickbreak.plot import canvas, quantities
from stickbreak.plot.chains import density_of_draws
from stickbreak.plot.rows import dense, two_columns
from stickbreak.result.fit import Fit
from stickbreak.result.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POINTS, _POINTS_OF_TWO = 400, 160
_MOST_POINTS = 20_000
_REAL = ("real", "centred")
# Shares of rows inside the lines of equal density.
_SHARES = (0.95, 0.8, 0.5)


def density(
    fit: Fit | Trace,
    column: int | str | Sequence[int | str] = 0,
    X: ArrayLike | None = None,
    *,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the density of one column or two: under a fit of real numbers, or of a trace with its band.

    For one column of a fit there is a curve for each component, at `Fit.point_estimates` and times its weight; the
    left-over weight has no curve. For two columns there are lines of equal density, with half, 80 % and 95 % of the
    rows inside. For a trace the line is the posterior mean of the density, and the band holds 90 % of its draws at
    every point (`Trace.density`).

    Parameters
    ----------
    fit : Fit or Trace
        A fit with Gaussian columns, of a Gaussian likelihood or of `Columns`, or a trace of one column of real numbers.
    column : int, str, or sequence of two of these
        The column, by its position or its name, or two columns of a fit.
    X : array_like of shape (n, D), optional
        Rows to show behind the lines: as a histogram, or as points if there are two columns.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        One line for each component with rows, and the line of their sum last; lines of equal density for two columns;
        one line and a band for a trace.

    Raises
    ------
    InvalidType, InvalidArgument
        An argument is not as described.
    NotSupported
        The columns are not Gaussian, a trace has other columns or not its rows, or matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> X = np.random.default_rng(0).normal([[-5.0], [5.0]], size=(2, 100)).reshape(-1, 1)
    >>> fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), X)
    >>> len(sb.plot.density(fit, 0, X).lines)
    3
    """
    if isinstance(fit, Trace):
        if not isinstance(column, int | str):
            raise checks.invalid_type("column", checks.describe(column), "0, or the name of the column")
        return density_of_draws(fit, column, X, ax)
    fit = canvas.checked(fit)
    if "real" not in (known := quantities.domains(fit)) and "centred" not in known:
        name = type(fit.model.likelihood).__name__
        raise checks.not_supported("fit", f"a fit of {name}", "it has no density", "a Gaussian likelihood, or means")
    if isinstance(column, Sequence) and not isinstance(column, str):
        return _of_two(fit, _real(fit, two_columns(fit, "column", column)), X, ax)
    place = _real(fit, [canvas.column(fit, "column", column)])[0]
    values = None if X is None else _values(fit, X, [place])[:, 0]
    means, covariances = quantities.moments(fit, [place])
    centres, spreads = means[:, 0], np.sqrt(covariances[:, 0, 0])
    if not spreads.any():
        found = f"{column!r}, which is constant"
        raise checks.invalid_argument("column", found, "a column with variance")
    drawn = canvas.axes(ax)
    shown = canvas.occupied(fit)
    low, high = (centres - 4 * spreads)[shown].min(), (centres + 4 * spreads)[shown].max()
    bars: list[Any] = []
    if values is not None:
        drawn.hist(values, bins="auto", density=True, color=canvas.GREYS[-1], label="rows")
        bars = [drawn.containers[-1][0]]
        low, high = min(low, values.min()), max(high, values.max())
    grid = np.linspace(low, high, _POINTS)
    total = np.zeros(_POINTS)
    curves = []
    for k in shown:
        curve = np.exp(-0.5 * ((grid - centres[k]) / spreads[k]) ** 2) / (spreads[k] * (2.0 * np.pi) ** 0.5)
        curves += drawn.plot(grid, fit.weights[k] * curve, color=canvas.colour(k), label=f"component {k}")
        total += fit.weights[k] * curve
    if fit.model.background is not None:
        curve = fit.background_weight * _of_background(fit.model.background, place, grid)
        curves += drawn.plot(grid, curve, color=canvas.FAINT, linestyle=":", label="background")
        total += curve
    whole = drawn.plot(grid, total, color=canvas.INK, label="all components")
    drawn.set_xlabel(canvas.title(fit, place))
    drawn.set_ylabel("density")
    canvas.legend(drawn, curves, [*whole, *bars])
    return drawn


def _of_background(background: Background, column: int, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the density of one column of the background of a fit at some values."""
    centre, reach = (np.asarray(value)[column] for value in (background.centre, background.reach))
    away = (x - centre) / reach
    uniform = 0.5 * (np.abs(away) <= 1.0)
    tails, spread = (float(np.asarray(value)) for value in (background.tails, background.spread))
    scale = spread / 3**0.5
    cauchy = scale / (np.pi * (scale**2 + away**2))
    return np.asarray(((1.0 - tails) * uniform + tails * cauchy) / reach)


def _of_two(fit: Fit, places: list[int], X: ArrayLike | None, ax: "Axes | None") -> "Axes":
    """Draw lines of equal density of two columns."""
    values = None if X is None else _values(fit, X, places)
    with checks.calling("column", "columns"):
        law = fit.marginal(places, plug_in=True)
    drawn = canvas.axes(ax)
    from matplotlib.lines import Line2D

    shown = canvas.occupied(fit)
    spreads = np.sqrt(np.diagonal(law.covariances, axis1=1, axis2=2))
    low, high = (law.means - 4 * spreads)[shown].min(axis=0), (law.means + 4 * spreads)[shown].max(axis=0)
    points: list[Any] = []
    if values is not None:
        some = values[canvas.thinned(len(values), _MOST_POINTS)]
        points = [drawn.scatter(some[:, 0], some[:, 1], s=8, color=canvas.GREYS[1], linewidths=0, label="rows")]
        low, high = np.minimum(low, values.min(axis=0)), np.maximum(high, values.max(axis=0))
    grids = [np.linspace(*ends, _POINTS_OF_TWO) for ends in zip(low, high, strict=True)]
    pairs = np.stack(np.meshgrid(*grids), axis=-1)
    heights = np.exp(law.log_density(pairs.reshape(-1, 2)))
    # The share of the rows above a height, in the sum over the grid.
    falling = np.sort(heights)[::-1]
    levels = falling[np.searchsorted(falling.cumsum() / falling.sum(), _SHARES)]
    paints = canvas.COLOURS[3:0:-1]
    drawn.contour(*grids, heights.reshape(pairs.shape[:2]), levels=levels, colors=paints)
    lines = [Line2D([], [], color=c, label=f"{share:.0%} inside") for share, c in zip(_SHARES, paints, strict=True)]
    drawn.set_xlabel(canvas.title(fit, places[0]))
    drawn.set_ylabel(canvas.title(fit, places[1]))
    canvas.legend(drawn, lines, points)
    return drawn


def _real(fit: Fit, places: list[int]) -> list[int]:
    """Return columns after a check that they hold real numbers."""
    for place in places:
        if quantities.domains(fit)[place] not in _REAL:
            likelihood = type(fit._model.likelihood._part({}, place)[0]).__name__
            found = f"the column {checks.quote(canvas.name(fit, place))} of {likelihood}"
            raise checks.not_supported("column", found, "it has no density", "a Gaussian column, or plot.card")
    return places


def _values(fit: Fit, X: ArrayLike, columns: list[int]) -> NDArray[Any]:
    """Return the values of columns in rows that lack none of them, at least one."""
    # Some tables can be read only once.
    X = frames.understood(X, "X")
    rows = dense(fit, X)
    # The labels are not drawn: only the core knows which values the fit cannot read.
    fit.predict(X)
    values: NDArray[Any] = rows[:, columns]
    values = values[~np.isnan(values).any(axis=1)]
    if not values.size:
        shown = " and ".join(repr(canvas.name(fit, column)) for column in columns)
        found = f"without a value in {shown}"
        raise checks.invalid_argument("X", found, "rows with a value in the column that is drawn")
    return values
