"""The course of a fit: the bound and the number of components by pass."""

from typing import TYPE_CHECKING

import numpy as np

from stickbreak.plot import canvas
from stickbreak.result.fit import Fit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS = {"birth": "^", "split": "D", "merge": "v", "delete": "x"}


def bound(fit: Fit, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the bound after each pass.

    Parameters
    ----------
    fit : Fit
        The fit.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        A line through `Record.elbo` in nats, starting at pass 1.

    Raises
    ------
    InvalidType
        An argument is not as described.
    NotSupported
        matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), X)
    >>> sb.plot.bound(fit).get_ylabel()
    'bound (nats)'
    """
    history, drawn = canvas.checked(fit).history, canvas.axes(ax)
    drawn.plot(
        [record.index + 1 for record in history],
        [record.elbo for record in history],
        color=canvas.INK,
        marker="o",
        markersize=4,
    )
    canvas.whole_ticks(drawn)
    drawn.set_xlabel("pass")
    drawn.set_ylabel("bound (nats)")
    return drawn


def n_components(fit: Fit, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the number of components after each pass, and the moves accepted in it.

    Parameters
    ----------
    fit : Fit
        The fit.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Steps through `Record.n_components`, starting at pass 1, and a group of markers for each kind of move.

    Raises
    ------
    InvalidType
        An argument is not as described.
    NotSupported
        matplotlib is not installed.
    """
    history, drawn = canvas.checked(fit).history, canvas.axes(ax)
    passes = np.array([record.index + 1 for record in history])
    numbers = np.array([record.n_components for record in history])
    drawn.step(passes, numbers, where="post", color=canvas.FAINT)
    for place, (kind, marker) in enumerate(_MARKERS.items()):
        accepted = [
            index for index, record in enumerate(history) if any(m.kind == kind and m.accepted for m in record.moves)
        ]
        if accepted:
            total = sum(move.accepted for record in history for move in record.moves if move.kind == kind)
            label = f"{total} {kind}{'' if total == 1 else 's'} accepted"
            drawn.plot(passes[accepted], numbers[accepted], marker, color=canvas.colour(place), label=label)
    if drawn.get_legend_handles_labels()[1]:
        # The curve is high at the end, so the lower right corner is free.
        drawn.legend(loc="lower right")
    drawn.set_ylim(bottom=0)
    canvas.whole_ticks(drawn)
    canvas.whole_ticks(drawn, axis="y")
    drawn.set_xlabel("pass")
    drawn.set_ylabel("components")
    return drawn
