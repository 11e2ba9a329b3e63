"""Common parts of all pictures: Axes, colours, and names of columns."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stickbreak import checks
from stickbreak.errors import NotSupported
from stickbreak.io import names
from stickbreak.result.fit import Fit
from stickbreak.result.topic_fit import TopicFit
from stickbreak.terminal import plain

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.legend import Legend

# Chosen by a search so that all thirteen are distinguishable (at least 20 in CIE 1976 units) with full colour vision
# and with each kind of colour blindness; from dark to light and back.
COLOURS = "#18067E #858BDC #A6D5FF #398DA2 #175C26 #9F8D37 #F3CF6C #CE7269 #773DB0 #521752".split()
GREYS = "#454545 #B4B4B4 #EDEDED".split()
INK, FAINT = "#222222", "#6B6B6B"
# Neighbours in this order are far apart.
_SPREAD = [3, 7, 5, 0, 4, 2, 8, 6, 1, 9]
# Maximum number of components in a legend.
_MOST_NAMED = 10


def colour(component: int) -> str:
    """Return the colour of a component; colours repeat after ten components."""
    return COLOURS[_SPREAD[component % len(_SPREAD)]]


def axes(ax: object) -> "Axes":
    """Return the Axes to draw into: the given ones, or those of a new figure.

    Raises
    ------
    NotSupported
        matplotlib is not installed.
    InvalidType
        `ax` is not a matplotlib Axes.
    """
    try:
        from matplotlib import pyplot
        from matplotlib.axes import Axes
    except ImportError as error:
        raise NotSupported('pictures need the package matplotlib: pip install "stickbreak[plot]"') from error
    if ax is None:
        return pyplot.subplots(layout="constrained")[1]
    return checks.instance("ax", ax, Axes, "the Axes of a matplotlib figure, or None")


def checked(fit: object) -> Fit:
    """Return the argument `fit` after a type check."""
    if isinstance(fit, TopicFit):
        hint = "for topics use plot.topics or plot.topic"
        raise checks.invalid_type("fit", "a TopicFit", "a Fit", hint)
    return checks.instance("fit", fit, Fit, "a Fit")


def column(fit: Fit, argument: str, value: object) -> int:
    """Return the position of a column given by name or position."""
    return names.position(value, argument, fit.column_names, fit._state.dimension)


def name(fit: Fit, position: int) -> str:
    """Return the name of a column, for messages."""
    return f"column {position}" if fit.column_names is None else fit.column_names[position]


def title(fit: Fit, position: int) -> str:
    """Return the name of a column as text of a picture."""
    return text(name(fit, position))


def text(word: object) -> str:
    """Return a word as text of a picture: dollars are dollars, and not the limits of a formula."""
    return plain(str(word), breaks=True).replace("$", r"\$")


def occupied(fit: Fit) -> list[int]:
    """Return the components with rows."""
    return np.flatnonzero(fit.counts >= 0.5).tolist()


def legend(ax: "Axes", handles: "Sequence[Artist]", others: "Sequence[Artist]" = (), *, title: str = "") -> "Legend":
    """Draw a legend of the first ten components, with a note on the number of further ones, and of other artists.

    It is beside the Axes if the layout of the figure makes room for it, and inside them otherwise.
    """
    from matplotlib.layout_engine import ConstrainedLayoutEngine, TightLayoutEngine
    from matplotlib.lines import Line2D

    named = [*handles[:_MOST_NAMED]]
    labels = [str(handle.get_label()) for handle in named]
    if more := len(handles) - len(named):
        named.append(Line2D([], [], linestyle="none"))
        labels.append(f"and {more} {'other' if more == 1 else 'others'}")
    named += others
    labels += [str(handle.get_label()) for handle in others]
    style: dict[str, Any] = {"loc": "best"}
    if isinstance(ax.figure.get_layout_engine(), ConstrainedLayoutEngine | TightLayoutEngine):
        style = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
    # The text is small enough that the legend is lower than the Axes.
    height = ax.get_window_extent().height / ax.figure.dpi * 72.0
    size = min(8.0, 0.85 * height / (1.4 * (len(labels) + bool(title)) + 1.0))
    style |= {"fontsize": size, "title_fontsize": size, "labelspacing": 0.3, "handlelength": 1.2, "handletextpad": 0.5}
    return ax.legend(named, labels, title=title or None, **style)


def thinned(n: int, most: int) -> slice:
    """Return at most `most` rows, evenly spaced."""
    return slice(None, None, max(1, -(-n // most)))


def whole_ticks(ax: "Axes", *, axis: str = "x") -> None:
    """Restrict the ticks of an axis to integers."""
    from matplotlib.ticker import MaxNLocator

    of_axis = ax.xaxis if axis == "x" else ax.yaxis
    of_axis.set_major_locator(MaxNLocator(integer=True))


def set_ticks(ax: "Axes", names: Sequence[str], *, axis: str) -> None:
    """Label the ticks, which start at 0."""
    of_axis = ax.xaxis if axis == "x" else ax.yaxis
    of_axis.set_ticks(range(len(names)), labels=list(names))


def label_lines(ax: "Axes", names: Sequence[str]) -> None:
    """Label the lines of a picture from the top to the bottom."""
    set_ticks(ax, names, axis="y")
    ax.invert_yaxis()
