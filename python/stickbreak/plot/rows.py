"""Rows under a fit: clusters with their ellipses, and responsibilities."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stickbreak import checks
from stickbreak.io import frames
from stickbreak.io.arrays import SparseRows
from stickbreak.plot import canvas, quantities
from stickbreak.result.drawing import probability
from stickbreak.result.fit import Fit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_POINTS = 20_000


def clusters(
    fit: Fit,
    X: ArrayLike,
    *,
    columns: Sequence[int | str] | None = None,
    level: float = 0.9,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw rows in two columns, coloured by component, and an ellipse for each component.

    Parameters
    ----------
    fit : Fit
        The fit, which must have at least two columns.
    X : array_like of shape (n, D)
        The rows. If there are more than 20,000, an evenly spaced subset is drawn.
    columns : sequence of two int or str, optional
        Two columns, by their positions or names. Default: both columns if there are two, otherwise the two leading
        principal components of the complete rows of `X`, with each column divided by its standard deviation. Columns
        of categories have no part in them.
    level : float
        The fraction of a component's rows inside its ellipse, above 0 and below 1. It is exact for `Gaussian` and
        `StudentT`, and approximate if the columns are of several blocks and one of these is `StudentT`.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        A collection of points and an ellipse, at `Fit.point_estimates`, for each component with rows.

    Raises
    ------
    InvalidType, InvalidArgument
        An argument is not as described, the fit has one column, or fewer than two rows are complete and `columns` is
        not given.
    NotSupported
        Columns hold codes, or matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> X = np.random.default_rng(0).normal(size=(100, 4))
    >>> fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), X)
    >>> sb.plot.clusters(fit, X, columns=[0, 3]).get_ylabel()
    'column 3'
    """
    fit, outside = canvas.checked(fit), probability(level)
    share = outside[1] - outside[0]
    # Some tables can be read only once.
    X = frames.understood(X, "X")
    rows, labels = dense(fit, X), fit.predict(X)
    used, centre, directions, titles = _directions(fit, rows, columns)
    means, covariances = quantities.moments(fit, used)
    drawn = canvas.axes(ax)
    from matplotlib.collections import PathCollection
    from matplotlib.patches import Ellipse

    some = canvas.thinned(len(rows), _MOST_POINTS)
    points, labels = (rows[some][:, used] - centre) @ directions, labels[some]
    radius, is_exact = _radius(fit, used, share)
    size = min(20.0, max(4.0, 12_000.0 / max(1, len(points))))
    groups = []
    for k in canvas.occupied(fit):
        members, paint = points[labels == k], canvas.colour(k)
        name = f"component {k}, {fit.weights[k]:.1%}"
        groups.append(
            drawn.scatter(
                members[:, 0], members[:, 1], s=size, color=paint, alpha=0.6, linewidths=0, label=name, rasterized=True
            )
        )
        variances, axes = np.linalg.eigh(directions.T @ covariances[k] @ directions)
        width, height = 2.0 * radius * np.sqrt(variances.clip(0.0))
        angle = float(np.degrees(np.arctan2(axes[1, 0], axes[0, 0])))
        place = (means[k] - centre) @ directions
        drawn.add_patch(Ellipse((place[0], place[1]), width, height, angle=angle, fill=False, color=paint, lw=1.8))
    behind = points[labels < 0]
    if len(behind) > 0:
        groups.append(
            drawn.scatter(
                behind[:, 0], behind[:, 1], s=size, color=canvas.FAINT, marker="x", label="background", rasterized=True
            )
        )
    drawn.autoscale_view()
    drawn.set_xlabel(titles[0])
    drawn.set_ylabel(titles[1])
    legend = canvas.legend(drawn, groups, title=f"{'' if is_exact else 'about '}{share:.0%} of each in its ellipse")
    for handle in legend.legend_handles:
        if isinstance(handle, PathCollection):
            handle.set(sizes=[40.0], alpha=1.0)
    return drawn


def responsibilities(fit: Fit, X: ArrayLike, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the responsibilities of the components for rows, as shades of grey.

    Parameters
    ----------
    fit : Fit
        The fit.
    X : array_like of shape (n, D)
        The rows. If there are more than 20,000, an evenly spaced subset is drawn.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        An image with one line per row, sorted by the best component and then by its responsibility, and one column per
        component; the last one is the background, if there is one.

    Raises
    ------
    InvalidType, InvalidArgument
        An argument is not as described.
    NotSupported
        matplotlib is not installed.
    """
    fit = canvas.checked(fit)
    # Some tables can be read only once.
    X = frames.understood(X, "X")
    # There must be a row.
    fit._rows(X, minimum=1)
    table: NDArray[Any] = fit.predict_proba(X, tail=fit.model.background is not None)
    table = table[canvas.thinned(len(table), _MOST_POINTS)]
    drawn = canvas.axes(ax)
    order = np.lexsort((-table.max(axis=1), table.argmax(axis=1)))
    image = drawn.imshow(table[order], aspect="auto", cmap="Greys", vmin=0.0, vmax=1.0, interpolation="nearest")
    drawn.figure.colorbar(image, ax=drawn, label="responsibility")
    canvas.whole_ticks(drawn)
    drawn.set_xlabel("component" if fit.model.background is None else "component; the last is the background")
    drawn.set_ylabel("rows, sorted")
    return drawn


def _radius(fit: Fit, used: Sequence[int], share: float) -> tuple[float, bool]:
    """Return the radius of ellipses that hold this share of rows, and whether that is exact for Gaussians and tails."""
    tails = quantities.tails(fit, used)
    heaviest = min(tails)
    if heaviest == np.inf:
        return float((-2.0 * np.log1p(-share)) ** 0.5), True
    # A pair of columns under a Student t is at most this far away with probability `share`. Expm1 keeps the digits of
    # light tails. Pairs of different blocks have no closed form; the heavier tail leaves no fewer rows inside, about.
    return float((heaviest * np.expm1(-2.0 / heaviest * np.log1p(-share))) ** 0.5), len(tails) == 1


def dense(fit: Fit, X: ArrayLike) -> NDArray[Any]:
    """Return the argument `X` as dense rows, at least one."""
    rows = fit._rows(X, minimum=1)
    if isinstance(rows, SparseRows):
        raise checks.invalid_type("X", "a sparse array", "a dense array, or a table", "convert it by .toarray()")
    return rows


def two_columns(fit: Fit, argument: str, value: object) -> list[int]:
    """Return the positions of two different columns, given by names or positions."""
    allowed = "two different columns, by their positions or names"
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise checks.invalid_type(argument, checks.describe(value), allowed)
    chosen = [canvas.column(fit, argument, each) for each in checks.items(argument, value, allowed)]
    if len(set(chosen)) != 2 or len(chosen) != 2:
        raise checks.invalid_argument(argument, checks.quote(str(list(value))), allowed)
    return chosen


def _directions(
    fit: Fit, rows: NDArray[Any], columns: Sequence[int | str] | None
) -> tuple[list[int], NDArray[np.float64], NDArray[np.float64], tuple[str, str]]:
    """Return the columns that are drawn, their origin, the directions (d, 2) of the picture, and their titles."""
    if rows.shape[1] == 1:
        raise checks.invalid_argument("fit", "a fit of a single column", "a fit of at least two columns", "use density")
    known = quantities.domains(fit)
    numbers = [column for column, domain in enumerate(known) if domain != "codes"]
    if columns is not None:
        used = two_columns(fit, "columns", columns)
    elif len(numbers) < 2:
        first = next(column for column, domain in enumerate(known) if domain == "codes")
        raise quantities.of_codes(fit, first)
    else:
        used = numbers
    if len(used) == 2:
        return used, np.zeros(2), np.eye(2), (canvas.title(fit, used[0]), canvas.title(fit, used[1]))
    complete = rows[:, used]
    complete = complete[~np.isnan(complete).any(axis=1)].astype(np.float64)
    if len(complete) < 2:
        found = f"of shape {rows.shape} with {len(complete)} complete rows"
        raise checks.invalid_argument("X", found, "at least two complete rows", "or choose two columns")
    # Columns have their own units. Without scaling, the column with the largest numbers would dominate.
    scales = complete.std(axis=0)
    scales[scales == 0.0] = np.inf
    axes = np.linalg.eigh(np.cov(complete / scales, rowvar=False))[1][:, ::-1][:, :2] / scales[:, None]
    return used, complete.mean(axis=0), axes, ("first principal component", "second principal component")
