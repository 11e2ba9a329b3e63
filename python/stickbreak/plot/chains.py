"""Chains of samplers: traces, numbers of clusters, and which rows are together."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from stickbreak import checks
from stickbreak.plot import canvas
from stickbreak.result.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_ROWS = 1000
_POINTS = 400


def chains(trace: Trace, name: str = "log_joint", *, ax: "Axes | None" = None) -> "Axes":
    """Draw a quantity along the draws of each chain.

    Parameters
    ----------
    trace : Trace
        The trace.
    name : str
        A quantity, as in `Trace.ess`.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        A line for each chain; the title has R-hat and the effective sample size.

    Raises
    ------
    InvalidType, InvalidArgument
        An argument is not as described.
    NotSupported
        matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> X = np.random.default_rng(0).normal(size=(20, 1))
    >>> trace = sb.sample(sb.Mixture(likelihood=sb.Gaussian()), X, draws=10, warmup=0, chains=2)
    >>> len(sb.plot.chains(trace).lines)
    2
    """
    _checked(trace)
    values, drawn = trace._quantity(name), canvas.axes(ax)
    for chain, values_of_chain in enumerate(values):
        drawn.plot(values_of_chain, color=canvas.colour(chain), linewidth=0.8, label=f"chain {chain}")
    drawn.set_xlabel("draw")
    drawn.set_ylabel(f"{name} (nats)" if name == "log_joint" else canvas.text(name))
    drawn.set_title(f"R-hat {trace.rhat(name):.3f}, effective draws {trace.ess(name):.0f}")
    drawn.legend()
    return drawn


def autocorrelation(
    trace: Trace, name: str = "log_joint", max_lag: int | None = None, *, ax: "Axes | None" = None
) -> "Axes":
    """Draw the autocorrelations of a quantity in each chain: `Trace.autocorrelation`.

    Parameters
    ----------
    trace : Trace
        The trace.
    name : str
        A quantity, as in `Trace.ess`.
    max_lag : int, optional
        As in `Trace.autocorrelation`.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        A line for each chain, and one at 0.

    Raises
    ------
    InvalidType, InvalidArgument
        An argument is not as described.
    NotSupported
        matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> X = np.random.default_rng(0).normal(size=(20, 1))
    >>> trace = sb.sample(sb.Mixture(likelihood=sb.Gaussian()), X, draws=50, warmup=0, chains=2)
    >>> sb.plot.autocorrelation(trace, "n_clusters", max_lag=10).get_xlabel()
    'lag in draws'
    """
    _checked(trace)
    values, drawn = trace.autocorrelation(name, max_lag), canvas.axes(ax)
    for chain, of_chain in enumerate(values):
        drawn.plot(of_chain, color=canvas.colour(chain), marker=".", linewidth=0.8, label=f"chain {chain}")
    drawn.axhline(0.0, color="0.6", linewidth=0.8)
    drawn.set_xlabel("lag in draws")
    drawn.set_ylabel(f"autocorrelation of {canvas.text(name)}")
    canvas.whole_ticks(drawn)
    drawn.legend()
    return drawn


def cluster_numbers(trace: Trace, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the frequency of each number of clusters, over all chains.

    Parameters
    ----------
    trace : Trace
        The trace.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        A bar for each number from the lowest to the highest: the fraction of draws with this number.

    Raises
    ------
    InvalidType
        An argument is not as described.
    NotSupported
        matplotlib is not installed.
    """
    numbers = _checked(trace).n_clusters.ravel()
    drawn = canvas.axes(ax)
    counts = np.bincount(numbers)[numbers.min() :]
    drawn.bar(np.arange(numbers.min(), numbers.max() + 1), counts / numbers.size, color=canvas.colour(0))
    canvas.whole_ticks(drawn)
    drawn.set_xlabel("clusters")
    drawn.set_ylabel("share of draws")
    return drawn


def similarity(trace: Trace, rows: ArrayLike | None = None, *, ax: "Axes | None" = None) -> "Axes":
    """Draw how often two rows are in the same cluster, as shades of grey: `Trace.similarity`.

    Rows are sorted by their clusters in the draw with the highest log joint, the largest cluster first. Clusters on
    which all draws agree show as dark squares on the diagonal.

    Parameters
    ----------
    trace : Trace
        The trace.
    rows : array_like of int, shape (m,), optional
        Positions of at most 10,000 rows. Default: all rows whose labels are kept, or an evenly spaced subset if there
        are more than 1,000.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        An image of m x m fractions.

    Raises
    ------
    InvalidType, InvalidArgument
        An argument is not as described.
    NotSupported
        matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> X = np.random.default_rng(0).normal([[-9.0], [9.0]], size=(2, 10)).reshape(-1, 1)
    >>> model = sb.Mixture(likelihood=sb.Gaussian())
    >>> trace = sb.sample(model, X, draws=20, warmup=10, chains=2)
    >>> sb.plot.similarity(trace).images[0].get_array().shape
    (20, 20)
    """
    _checked(trace)
    n = trace.partitions.shape[-1]
    kept = np.arange(n) if trace.kept_rows is None else trace.kept_rows
    shown = kept[canvas.thinned(n, _MOST_ROWS)] if rows is None else rows
    shares, places = trace.similarity(shown), trace._places(shown)
    drawn = canvas.axes(ax)
    best = trace.partitions.reshape(-1, n)[trace.log_joint.argmax()][places]
    order = np.lexsort((best, -np.bincount(best)[best]))
    square = shares[np.ix_(order, order)]
    image = drawn.imshow(square, cmap="Greys", vmin=0.0, vmax=1.0, interpolation="nearest")
    drawn.figure.colorbar(image, ax=drawn, label="share of draws in one cluster")
    drawn.set_xlabel("rows, by cluster")
    drawn.set_ylabel("rows, by cluster")
    return drawn


def density_of_draws(trace: Trace, column: int | str, X: ArrayLike | None, ax: "Axes | None") -> "Axes":
    """Draw the mean density of a trace of one column, and a band of 90 % of its draws."""
    rows = np.asarray(trace._whole("plot.density")[1])
    if rows.ndim != 2 or rows.shape[1] != 1 or trace.model.likelihood._domain not in ("real", "centred"):
        reason = "its rows are not single real numbers"
        raise checks.not_supported("fit", "a trace of these rows", reason, "Trace.density, on a grid of your own")
    name = "column 0" if trace.column_names is None else trace.column_names[0]
    if not isinstance(column, str) and not checks.is_integer(column):
        raise checks.invalid_type("column", checks.describe(column), "0, or the name of the column")
    if column not in (0, name):
        raise checks.invalid_argument("column", repr(column), "0" if trace.column_names is None else f"0 or {name!r}")
    shown = rows if X is None else np.asarray(trace._new_rows(X, trace._whole("plot.density")[1]))
    low, high = min(rows.min(), shown.min()), max(rows.max(), shown.max())
    room = 0.1 * (high - low) or 1.0
    grid = np.linspace(low - room, high + room, _POINTS)
    band, drawn = trace.density(grid[:, None]), canvas.axes(ax)
    if X is not None:
        drawn.hist(shown[:, 0], bins="auto", density=True, color=canvas.GREYS[-1], label="rows")
    drawn.fill_between(grid, band.lower, band.upper, color=canvas.colour(0), alpha=0.3, label="90 % of the draws")
    drawn.plot(grid, band.mean, color=canvas.INK, label="mean")
    drawn.set_xlabel(canvas.text(name))
    drawn.set_ylabel("density")
    drawn.legend()
    return drawn


def _checked(trace: object) -> Trace:
    return checks.instance("trace", trace, Trace, "a Trace")
