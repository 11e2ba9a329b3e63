"""Oracle of kd-trees: how rows are cut, and passes whose rows share the responsibilities of their node.

Scores of nodes are averages of scores of their rows (mathematics 12.1): no statistic of a node is ever made.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from oracles.engines import Pass, order_by_size, with_tail
from oracles.models import Array
from oracles.variational import Globals, Specification, general_elbo, global_step, local_scores, top_l_responsibilities

Nodes = list[NDArray[np.intp]]


def units_of_columns(rows: Array, *, about_zero: bool = False, weights: Array | None = None) -> Array:
    """The powers of two by which columns are divided: the nearest to their standard deviations, by ratio."""
    masses = np.ones(len(rows)) if weights is None else weights
    mean = np.zeros(rows.shape[1]) if about_zero else masses @ rows / masses.sum()
    variances = masses @ (rows - mean) ** 2 / masses.sum()
    return np.asarray(2.0 ** np.floor((np.floor(np.log2(variances)) + 1) / 2))


def cut(rows: Array, node: NDArray[np.intp]) -> Nodes:
    """The halves of a node at the median of its widest column; equal values in the order of the rows."""
    rows_of_node = rows[node]
    widest = int(np.argmax(rows_of_node.max(0) - rows_of_node.min(0)))
    order = np.lexsort((node, rows_of_node[:, widest]))
    left = np.sort(node[order[: len(node) // 2]])
    return [left, np.setdiff1d(node, left)]


def frontier(rows: Array, depth: int, least: int) -> Nodes:
    """The nodes after `depth` levels; those of fewer than `least` rows are opened to single rows."""
    nodes = [np.arange(len(rows))]
    for _ in range(depth):
        opened: Nodes = []
        for node in nodes:
            if len(node) == 1:
                opened.append(node)
            elif len(node) < least:
                opened.extend(node[[position]] for position in range(len(node)))
            else:
                opened.extend(cut(rows, node))
        nodes = opened
    return nodes


def gain_of_opening(scores: Array, masses: Array) -> float:
    """The mean log-sum-exp of the scores of rows minus that of their mean scores, by mass (mathematics 12.3)."""
    shares = masses / masses.sum()
    return float(shares @ logsumexp(scores, axis=1) - logsumexp(shares @ scores))


def open_by_gain(
    rows: Array,
    nodes: Nodes,
    scores: Array,
    masses: Array,
    least: int,
    tolerance: float,
    budget: float = np.inf,
) -> Nodes:
    """The frontier after every level that is worth opening; each node is judged once, by all of its rows."""
    judged: Nodes = []
    fresh = nodes
    while fresh:
        gains = [gain_of_opening(scores[node], masses[node]) if len(node) > 1 else 0.0 for node in fresh]
        by_mass = [gain * masses[node].sum() for gain, node in zip(gains, fresh, strict=True)]
        room = budget - len(judged) - len(fresh)
        opened: Nodes = []
        for place in np.argsort(by_mass)[::-1]:
            node = fresh[place]
            n_more = len(node) - 1 if len(node) < least else 1
            if gains[place] > tolerance and n_more <= room:
                room -= n_more
                opened += [row[None] for row in node] if len(node) < least else cut(rows, node)
            else:
                judged.append(node)
        fresh = opened
    return judged


def tied_scores(
    rows: Array, mixture: Specification, state: Globals, nodes: Nodes, weights: Array | None = None
) -> Array:
    """S_A of every node: the mean of the log weights of its rows."""
    masses = np.ones(len(rows)) if weights is None else weights
    scores = local_scores(rows, mixture, state)
    return np.array([masses[node] @ scores[node] / masses[node].sum() for node in nodes])


def tied_local_step(
    rows: Array,
    mixture: Specification,
    state: Globals,
    nodes: Nodes,
    sparsity: int | None = None,
    weights: Array | None = None,
) -> Array:
    """Responsibilities of the rows, each those of its node."""
    of_nodes = top_l_responsibilities(tied_scores(rows, mixture, state, nodes, weights), sparsity)
    responsibilities = np.empty((len(rows), of_nodes.shape[1]))
    for node, of_node in zip(nodes, of_nodes, strict=True):
        responsibilities[node] = of_node
    return responsibilities


def fit_tied(
    rows: Array,
    responsibilities: Array,
    mixture: Specification,
    nodes: Nodes,
    passes: int,
    sparsity: int | None = None,
    weights: Array | None = None,
) -> list[Pass]:
    """Full variational inference over nodes that stay as they are; one entry a pass."""
    masses = np.ones(len(rows)) if weights is None else weights

    def ordered(responsibilities: Array) -> Pass:
        responsibilities = responsibilities[:, order_by_size(masses @ responsibilities, mixture)]
        state = global_step(rows, responsibilities, mixture, weights)
        return Pass(state, responsibilities, general_elbo(rows, responsibilities, mixture, state, weights))

    last = ordered(with_tail(responsibilities, mixture, responsibilities.shape[1]))
    trajectory = []
    for _ in range(passes):
        last = ordered(tied_local_step(rows, mixture, last.state, nodes, sparsity, weights))
        trajectory.append(last)
    return trajectory
