"""Chains of samplers: their course, and the number of clusters."""

from typing import TYPE_CHECKING

import numpy as np

from stickbreak import checks
from stickbreak.plot import canvas
from stickbreak.result.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def chains(trace: Trace, name: str = "log_joint", *, ax: "Axes | None" = None) -> "Axes":
    """Draw a quantity along the draws of each chain.

    Parameters
    ----------
    trace : Trace
        The trace.
    name : str
        "log_joint", "n_clusters", or a name in `Trace.hyperparameters`.
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
    checks.instance("trace", trace, Trace, "a Trace")
    values, drawn = trace._quantity(name), canvas.axes(ax)
    for chain, own in enumerate(values):
        drawn.plot(own, color=canvas.colour(chain), linewidth=0.8, label=f"chain {chain}")
    drawn.set_xlabel("draw")
    drawn.set_ylabel(f"{name} (nats)" if name == "log_joint" else name)
    drawn.set_title(f"R-hat {trace.rhat(name):.3f}, effective draws {trace.ess(name):.0f}")
    drawn.legend()
    return drawn


def cluster_numbers(trace: Trace, *, ax: "Axes | None" = None) -> "Axes":
    """Draw how often each number of clusters came up, over all chains.

    Parameters
    ----------
    trace : Trace
        The trace.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        A bar for each number from the lowest to the highest: the share of draws that have it.

    Raises
    ------
    InvalidType
        An argument is not as described.
    NotSupported
        matplotlib is not installed.
    """
    numbers = checks.instance("trace", trace, Trace, "a Trace").n_clusters.ravel()
    drawn = canvas.axes(ax)
    counts = np.bincount(numbers)[numbers.min() :]
    drawn.bar(np.arange(numbers.min(), numbers.max() + 1), counts / numbers.size, color=canvas.colour(0))
    canvas.whole_ticks(drawn)
    drawn.set_xlabel("clusters")
    drawn.set_ylabel("share of draws")
    return drawn
