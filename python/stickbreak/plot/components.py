"""Components: means with intervals, a card for each component, and all components side by side."""

from typing import TYPE_CHECKING

import numpy as np

from stickbreak import checks
from stickbreak.plot import canvas, quantities
from stickbreak.result.fit import Fit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Names of the parameters that are means.
_MEANS = {"mean": "mean", "rate": "rate", "probabilities": "probability"}
# Distance from the mean of all rows, in standard deviations, from which on colours are the darkest.
_FAR = 2.0
# Maximum number of components side by side.
_MOST_BESIDE = 16


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
    part, found, inside = fit._model.likelihood._part(fit._intervals(level, 2000, seed), place)
    name = next((each for each in _MEANS if each in found), None)
    if name is None:
        kind = type(part).__name__
        raise checks.not_supported("fit", f"a fit of {kind}", "its components have no means", "clusters or density")
    if found[name].ndim > 3:
        raise quantities.of_codes(fit, place)
    own = fit._model.likelihood._part(fit._state.point_estimates, place)[1]
    ends, points = found[name][:, :, inside], own[name][:, inside]
    drawn = canvas.axes(ax)
    shown = sorted(canvas.occupied(fit), key=lambda k: -fit.weights[k])
    for height, k in enumerate(shown):
        error = [[max(0.0, points[k] - ends[0, k])], [max(0.0, ends[1, k] - points[k])]]
        drawn.errorbar(points[k], height, xerr=error, fmt="o", color=canvas.colour(k), capsize=3)
    canvas.label_lines(drawn, [f"component {k}, {fit.weights[k]:.1%}" for k in shown])
    word = fit._word(place)
    title = canvas.title(fit, place) + ("" if word is None else f" = {canvas.text(word)}")
    drawn.set_xlabel(f"{title}: {_MEANS[name]} with its {level:.0%} interval")
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
        Maximum number of bars, at least 1.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        A bar for each column, the most distinctive at the top: the distance of the component's mean from that of all
        rows, in standard deviations of all rows. A flag has its probability in place of the mean, and a column of
        categories has a bar for each of its most probable levels. Tick labels have the names, with mean and standard
        deviation or probability in the component, and the value of all rows in brackets; the title has the weight.

    Raises
    ------
    InvalidType, InvalidArgument
        An argument is not as described.
    NotSupported
        matplotlib is not installed.
    """
    fit = canvas.checked(fit)
    component = checks.integer("component", component, minimum=0, maximum=fit.n_components - 1)
    n_columns = checks.integer("n_columns", n_columns, minimum=1)
    found = quantities.quantities(fit, component)
    away = np.array([each.distances[component] for each in found])
    # Constant columns do not distinguish components, so they come last.
    is_constant = np.array([each.deviation == 0.0 for each in found])
    order = np.lexsort((-abs(away), is_constant))[:n_columns]
    drawn = canvas.axes(ax)
    drawn.barh(range(len(order)), away[order], color=canvas.colour(component))
    shown = [found[place] for place in order.tolist()]
    labels = [f"{each.name}: {each.text(component)} (all: {each.short_text()})" for each in shown]
    canvas.label_lines(drawn, labels)
    drawn.axvline(0.0, color=canvas.FAINT, linewidth=0.8)
    drawn.set_xlabel("standard deviations from the mean of all rows")
    drawn.set_title(f"component {component}: {fit.weights[component]:.1%} of the weight")
    return drawn


def profiles(fit: Fit, *, n_columns: int = 16, ax: "Axes | None" = None) -> "Axes":
    """Draw all components side by side: a table of their values, coloured by the distance from all rows.

    Parameters
    ----------
    fit : Fit
        The fit.
    n_columns : int
        Maximum number of lines, at least 1: those in which components differ most.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        An image with a column for each of the 16 largest components, the largest first. Its lines are grouped by kind:
        means of amounts, expected counts, probabilities of flags, and probabilities of the levels of categories (of two
        levels, the more probable one). The colour is the distance from the value of all rows, in standard deviations of
        all rows.

    Raises
    ------
    InvalidType, InvalidArgument
        An argument is not as described.
    NotSupported
        matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import stickbreak as sb
    >>> kind = np.arange(200) % 2
    >>> age = np.random.default_rng(0).normal(30 + 20 * kind, 4)
    >>> table = pd.DataFrame({"age": age, "town": np.where(kind, "Ulm", "Bonn")})
    >>> fit = sb.fit(sb.Mixture(likelihood=sb.columns_for(table, verbose=False)), table)
    >>> [label.get_text() for label in sb.plot.profiles(fit).get_yticklabels()]
    ['age', 'town = Bonn']
    """
    fit = canvas.checked(fit)
    n_columns = checks.integer("n_columns", n_columns, minimum=1)
    sorted_by_weight = sorted(canvas.occupied(fit), key=lambda k: -fit.weights[k])
    shown, more = sorted_by_weight[:_MOST_BESIDE], len(sorted_by_weight) - _MOST_BESIDE
    found = quantities.quantities(fit)
    apart = np.array([fit.weights @ each.distances**2 for each in found])
    best = np.sort(np.lexsort((-apart,))[:n_columns])
    kinds = ("amount", "count", "flag", "category")
    lines = sorted((found[place] for place in best.tolist()), key=lambda each: kinds.index(each.kind))
    away = np.array([each.distances[shown] for each in lines])
    drawn = canvas.axes(ax)
    image = drawn.imshow(away, aspect="auto", cmap="RdBu_r", vmin=-_FAR, vmax=_FAR, interpolation="nearest")
    drawn.figure.colorbar(image, ax=drawn, label="standard deviations from all rows", extend="both")
    for (line, place), distance in np.ndenumerate(away):
        ink = "white" if abs(distance) > 0.6 * _FAR else canvas.INK
        text = lines[line].short_text(shown[place])
        drawn.text(place, line, text, color=ink, ha="center", va="center", fontsize="small")
    for line in range(1, len(lines)):
        if lines[line].kind != lines[line - 1].kind:
            drawn.axhline(line - 0.5, color=canvas.INK, linewidth=1.0)
    canvas.set_ticks(drawn, [f"{k}\n{fit.weights[k]:.1%}" for k in shown], axis="x")
    canvas.set_ticks(drawn, [each.name for each in lines], axis="y")
    drawn.set_xlabel("component, and its weight" + (f" (and {more} smaller)" if more > 0 else ""))
    return drawn
