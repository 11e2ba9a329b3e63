"""Components: densities by column, means with intervals, and a card for each component."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stickbreak import checks
from stickbreak.plot import canvas
from stickbreak.plot.chains import density_of_draws
from stickbreak.plot.rows import dense
from stickbreak.result.display import mean_and_deviation
from stickbreak.result.fit import Fit
from stickbreak.result.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POINTS = 400
_REAL = ("real", "centred")


def density(fit: Fit | Trace, column: int | str = 0, X: ArrayLike | None = None, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the density of one column: under a Gaussian fit with that of each component, or of a trace with its band.

    Components of a fit are taken at `Fit.point_estimates`, times their weights; the left-over weight has no curve. For
    a trace the line is the posterior mean of the density, and the band holds 90 % of its draws at every point
    (`Trace.density`).

    Parameters
    ----------
    fit : Fit or Trace
        A fit of a Gaussian likelihood, or a trace of one column of real numbers.
    column : int or str
        The column, by its position or its name.
    X : array_like of shape (n, D), optional
        Rows to show as a histogram behind the curves.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        One line for each component with rows, and the line of their sum last; one line and a band for a trace.

    Raises
    ------
    InvalidType, InvalidArgument
        An argument is not as described.
    NotSupported
        The likelihood is not Gaussian, a trace has other columns or not its rows, or matplotlib is not installed.

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
        return density_of_draws(fit, column, X, ax)
    fit = canvas.checked(fit)
    if fit.model.likelihood._domain not in _REAL:
        name = type(fit.model.likelihood).__name__
        raise checks.not_supported("fit", f"a fit of {name}", "it has no density", "a Gaussian likelihood, or means")
    place = canvas.column(fit, "column", column)
    values = None if X is None else _values(fit, X, place)
    means, covariances = canvas.moments(fit)
    centres, spreads = means[:, place], np.sqrt(covariances[:, place, place])
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
    whole = drawn.plot(grid, total, color=canvas.INK, label="all components")
    drawn.set_xlabel(canvas.title(fit, place))
    drawn.set_ylabel("density")
    canvas.legend(drawn, curves, [*whole, *bars])
    return drawn


def _values(fit: Fit, X: ArrayLike, column: int) -> NDArray[Any]:
    """Return the values of one column that are not missing, at least one."""
    rows = dense(fit, X)
    # The labels are not drawn: only the core knows which values the fit cannot read.
    fit.predict(rows)
    values: NDArray[Any] = rows[:, column]
    values = values[~np.isnan(values)]
    if not values.size:
        found = f"without a value in {canvas.title(fit, column)!r}"
        raise checks.invalid_argument("X", found, "rows with a value in the column that is drawn")
    return values


def means(fit: Fit, column: int | str = 0, *, level: float = 0.9, seed: int = 0, ax: "Axes | None" = None) -> "Axes":
    """Draw the mean of one column under each component, with its posterior interval.

    Parameters
    ----------
    fit : Fit
        A variational fit whose components have means, rates or probabilities of flags.
    column : int or str
        The column, by its position or its name.
    level : float
        The probability of the intervals; see `Fit.intervals`.
    seed : int
        Decides the draws behind the intervals.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        A point and a bar for each component with rows, the largest at the top.

    Raises
    ------
    InvalidType, InvalidArgument
        An argument is not as described.
    NotSupported
        The components have no means or no posterior, or matplotlib is not installed.
    """
    fit = canvas.checked(fit)
    place = canvas.column(fit, "column", column)
    found = fit.intervals(level, seed=seed)
    name = next((each for each in ("mean", "rate", "probabilities") if each in found and found[each].ndim == 3), None)
    if name is None:
        kind = type(fit.model.likelihood).__name__
        raise checks.not_supported("fit", f"a fit of {kind}", "its components have no means", "clusters or density")
    ends, points = found[name][:, :, place], fit.point_estimates[name][:, place]
    drawn = canvas.axes(ax)
    shown = sorted(canvas.occupied(fit), key=lambda k: -fit.weights[k])
    for height, k in enumerate(shown):
        error = [[max(0.0, points[k] - ends[0, k])], [max(0.0, ends[1, k] - points[k])]]
        drawn.errorbar(points[k], height, xerr=error, fmt="o", color=canvas.colour(k), capsize=3)
    canvas.set_ticks(drawn, [f"component {k}, {fit.weights[k]:.1%}" for k in shown], axis="y")
    drawn.invert_yaxis()
    drawn.set_xlabel(f"{canvas.title(fit, place)}: {name} with its {level:.0%} interval")
    return drawn


def card(fit: Fit, component: int, *, n_columns: int = 8, ax: "Axes | None" = None) -> "Axes":
    """Draw how one component differs from all rows: its most distinctive columns.

    Parameters
    ----------
    fit : Fit
        The fit.
    component : int
        Index of the component, from 0.
    n_columns : int
        Maximum number of columns to show, at least 1.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        A bar for each column, the most distinctive at the top: the distance of the component's mean from that of all
        rows, in standard deviations of all rows. Tick labels have the names, with mean and standard deviation in the
        component; the title has its weight.

    Raises
    ------
    InvalidType, InvalidArgument
        An argument is not as described.
    NotSupported
        The fit is of codes, or matplotlib is not installed.
    """
    fit = canvas.checked(fit)
    component = checks.integer("component", component, minimum=0, maximum=fit.n_components - 1)
    n_columns = checks.integer("n_columns", n_columns, minimum=1)
    centres, covariances = canvas.moments(fit)
    mean, spread = canvas.overall(fit)
    deviations = np.sqrt(np.diagonal(covariances[component]))
    # Constant columns do not distinguish components, so they come last.
    away = np.divide(centres[component] - mean, spread, out=np.zeros_like(mean), where=spread > 0.0)
    order = np.lexsort((-abs(away), spread == 0.0))[:n_columns]
    drawn = canvas.axes(ax)
    drawn.barh(range(len(order)), away[order], color=canvas.colour(component))
    names = [
        f"{canvas.title(fit, d)}: {mean_and_deviation(centres[component, d], deviations[d])}" for d in order.tolist()
    ]
    canvas.set_ticks(drawn, names, axis="y")
    drawn.invert_yaxis()
    drawn.axvline(0.0, color=canvas.FAINT, linewidth=0.8)
    drawn.set_xlabel("standard deviations from the mean of all rows")
    drawn.set_title(f"component {component}: {fit.weights[component]:.1%} of the weight")
    return drawn
