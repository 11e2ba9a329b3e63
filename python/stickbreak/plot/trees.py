"""Trees over rows or components."""

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from stickbreak import checks
from stickbreak.plot import canvas
from stickbreak.result.combining import Clusters
from stickbreak.result.hierarchy import Hierarchy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_LABELS = 60


def dendrogram(
    tree: Hierarchy | Clusters, *, method: Literal["bhc", "map"] = "bhc", ax: "Axes | None" = None
) -> "Axes":
    """Draw a dendrogram: joins at their heights, in the colours of clusters. Joins above the clusters are grey.

    Parameters
    ----------
    tree : Hierarchy or Clusters
        A hierarchy of at least two rows, or the clusters of `Fit.combine` of at least two components.
    method : {"bhc", "map"}
        The cut of a hierarchy whose clusters are coloured; see `Hierarchy.cut`. Clusters have their own.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        A collection of one line per join, in the order of `Hierarchy.linkage` or `Clusters.levels`: up from one of the
        two nodes, across, and down to the other. Rows, or components, are at 0, 1, ... on the horizontal axis; up to 60
        are labelled by their positions. Heights are those of `Hierarchy.linkage`, in nats, or of `Clusters.levels`.

    Raises
    ------
    InvalidType, InvalidArgument
        An argument is not as described, or there is only one row or component.
    NotSupported
        matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> X = np.random.default_rng(0).normal([[-8.0], [8.0]], size=(2, 10)).reshape(-1, 1)
    >>> tree = sb.hierarchy(sb.Mixture(likelihood=sb.Gaussian()), X)
    >>> len(sb.plot.dendrogram(tree).collections[0].get_segments())
    19
    """
    checks.word("method", method, ("bhc", "map"))
    if isinstance(tree, Clusters):
        leaves, unit, height_label = np.flatnonzero(tree.groups >= 0), "component", "-log10 of the smallest overlap"
        labels, linkage = tree.groups[leaves], tree.levels
    else:
        checks.instance("tree", tree, Hierarchy, "a Hierarchy, or Clusters")
        labels, linkage = tree.cut(method), tree.linkage
        leaves, unit, height_label = np.arange(len(labels)), "row", "-log p(one cluster) (nats)"
    n = len(labels)
    if n < 2:
        raise checks.invalid_argument("tree", f"a tree of a single {unit}", f"a tree of at least two {unit}s")
    drawn = canvas.axes(ax)
    from matplotlib.collections import LineCollection

    children, heights = linkage[:, :2].astype(int), linkage[:, 2]
    order = _leaves(children)
    place, base = np.empty(2 * n - 1), np.zeros(2 * n - 1)
    place[order] = np.arange(n)
    cluster = np.concatenate([labels, np.full(n - 1, -1)])
    lines, colours = np.empty((n - 1, 4, 2)), []
    for join, (left, right) in enumerate(children):
        node, height = n + join, heights[join]
        lines[join, :, 0] = place[[left, left, right, right]]
        lines[join, :, 1] = base[left], height, height, base[right]
        place[node], base[node] = place[[left, right]].mean(), height
        if cluster[left] == cluster[right]:
            cluster[node] = cluster[left]
        colours.append(canvas.FAINT if cluster[node] < 0 else canvas.colour(int(cluster[node])))
    drawn.add_collection(LineCollection([*lines], colors=colours, linewidths=1.0))
    drawn.set_xlim(-0.5, n - 0.5)
    low, high = min(0.0, heights.min()), max(0.0, heights.max())
    drawn.set_ylim(low, high + 0.05 * (high - low or 1.0))
    if n <= _MOST_LABELS:
        canvas.set_ticks(drawn, [str(leaf) for leaf in leaves[order]], axis="x")
        drawn.tick_params(axis="x", rotation=90 if n > 20 else 0)
    else:
        drawn.set_xticks([])
    drawn.set_xlabel(f"{unit}s")
    drawn.set_ylabel(height_label)
    return drawn


def _leaves(children: NDArray[np.int64]) -> list[int]:
    """Return the rows from left to right; avoids recursion, because trees may be deep."""
    n, found = len(children) + 1, []
    stack = [2 * n - 2]
    while stack:
        node = stack.pop()
        if node < n:
            found.append(node)
        else:
            left, right = children[node - n].tolist()
            stack += [right, left]
    return found
