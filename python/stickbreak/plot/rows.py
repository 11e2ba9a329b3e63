"""Rows under a fit: clusters with their ellipses, and responsibilities."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stickbreak import checks
from stickbreak.io.arrays import SparseRows
from stickbreak.plot import canvas
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
        principal components of the complete rows of `X`, with each column divided by its standard deviation.
    level : float
        The fraction of a Gaussian component's rows inside its ellipse, above 0 and below 1.
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
        The fit is of codes, or matplotlib is not installed.

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
    rows = dense(fit, X)
    means, covariances = canvas.moments(fit)
    labels = fit.predict(rows)
    centre, directions, titles = _directions(fit, rows, columns)
    drawn = canvas.axes(ax)
    from matplotlib.collections import PathCollection
    from matplotlib.patches import Ellipse

    some = canvas.thinned(len(rows), _MOST_POINTS)
    points, labels = (rows[some] - centre) @ directions, labels[some]
    # The radius within which a pair of standard normal numbers lies with this probability.
    radius = (-2.0 * np.log1p(-share)) ** 0.5
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
    drawn.autoscale_view()
    drawn.set_xlabel(titles[0])
    drawn.set_ylabel(titles[1])
    legend = canvas.legend(drawn, groups, title=f"{share:.0%} of each in its ellipse")
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
        component.

    Raises
    ------
    InvalidType, InvalidArgument
        An argument is not as described.
    NotSupported
        matplotlib is not installed.
    """
    fit = canvas.checked(fit)
    rows: Any = fit._rows(X, minimum=1)
    table: NDArray[Any] = fit.predict_proba(rows)
    table = table[canvas.thinned(len(table), _MOST_POINTS)]
    drawn = canvas.axes(ax)
    order = np.lexsort((-table.max(axis=1), table.argmax(axis=1)))
    image = drawn.imshow(table[order], aspect="auto", cmap="Greys", vmin=0.0, vmax=1.0, interpolation="nearest")
    drawn.figure.colorbar(image, ax=drawn, label="responsibility")
    canvas.whole_ticks(drawn)
    drawn.set_xlabel("component")
    drawn.set_ylabel("rows, sorted")
    return drawn


def dense(fit: Fit, X: ArrayLike) -> NDArray[Any]:
    """Return the argument `X` as dense rows, at least one."""
    rows = fit._rows(X, minimum=1)
    if isinstance(rows, SparseRows):
        raise checks.invalid_type("X", "a sparse array", "a dense array, or a table", "convert it by .toarray()")
    return rows


def _directions(
    fit: Fit, rows: NDArray[Any], columns: Sequence[int | str] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], tuple[str, str]]:
    """Return the origin, the two directions (D, 2) onto which rows are projected, and their titles."""
    dimension = rows.shape[1]
    if dimension == 1:
        raise checks.invalid_argument("fit", "a fit of a single column", "a fit of at least two columns", "use density")
    if columns is None and dimension > 2:
        complete = rows[~np.isnan(rows).any(axis=1)].astype(np.float64)
        if len(complete) < 2:
            found = f"of shape {rows.shape} with {len(complete)} complete rows"
            raise checks.invalid_argument("X", found, "at least two complete rows", "or choose two columns")
        # Columns have their own units. Without scaling, the column with the largest numbers would dominate.
        scales = complete.std(axis=0)
        scales[scales == 0.0] = np.inf
        axes = np.linalg.eigh(np.cov(complete / scales, rowvar=False))[1][:, ::-1][:, :2] / scales[:, None]
        return complete.mean(axis=0), axes, ("first principal component", "second principal component")
    allowed = "two different columns, by their positions or names"
    if columns is None:
        columns = (0, 1)
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        raise checks.invalid_type("columns", checks.describe(columns), allowed)
    chosen = [canvas.column(fit, "columns", each) for each in checks.items("columns", columns, allowed)]
    if len(set(chosen)) != 2 or len(chosen) != 2:
        raise checks.invalid_argument("columns", checks.quote(str(list(columns))), allowed)
    titles = (canvas.title(fit, chosen[0]), canvas.title(fit, chosen[1]))
    return np.zeros(dimension), np.eye(dimension)[:, chosen], titles
