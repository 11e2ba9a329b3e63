"""Units: what receives responsibilities, a row or a node of a tree that stands for many."""

from dataclasses import dataclass
from typing import Any, Literal

from stickbreak import checks

RULES = ("gain", "responsibility")
SPLITS = ("axis", "principal")


@dataclass(frozen=True, kw_only=True)
class KdTree:
    r"""Rows that agree about their component as one unit: the nodes of a kd-tree over the rows of each batch [1]_.

    The rows of a node share their responsibilities. A node has a mass, statistics and a mean log base measure of its
    own, so the bound is exact for what is shared, and a pass costs as much as there are nodes. Between passes, nodes
    whose rows would disagree are opened; opening never lowers the bound. Where clusters are few and well apart, or
    columns few, thousands of nodes stand for millions of rows.

    Parameters
    ----------
    depth : int
        Levels of the tree that are open at the start, whatever the budget, from 0 to 30.
    expand_every : int
        Nodes are judged again after this many passes, and when nothing else is left to gain; at least 1.
    rule : {"gain", "responsibility"}
        By what nodes are opened. "gain": by what 32 of its rows (512 before the fit ends) would gain, in nats a row,
        with responsibilities of their own. "responsibility": by the sum of the changes of responsibilities from the
        node to one of its two children [1]_, which does not see what lies deeper.
    tolerance : float
        Nodes of at most this value stay closed; at least 0.
    budget : int, optional
        The most nodes that `rule` opens to, those with the largest gain first; at least 1. None has no limit.
    split : {"axis", "principal"}
        Nodes are cut at the median of the column in which they are widest, or of their principal axis.
    refine : bool
        Whether, once nodes have converged and at the latest after three quarters of the passes, every row becomes a
        unit of its own, and the fit goes on until that has converged: where a fit without a tree ends, or with moves
        at another local optimum. Up to 16,384 rows such a fit has no tree at all. If False the fit ends on nodes;
        with births or splits, nodes are opened by one level before, in case a component stands for several clusters.

    Raises
    ------
    InvalidType, InvalidArgument
        An argument has a type or a value that is not allowed.

    References
    ----------
    .. [1] Kurihara, K., Welling, M. and Vlassis, N. (2006). Accelerated variational Dirichlet process mixtures.
           Advances in Neural Information Processing Systems 19.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> centres = np.repeat([[-5.0, 0.0], [5.0, 0.0]], 20_000, axis=0)
    >>> X = np.random.default_rng(0).normal(centres)
    >>> tree = sb.KdTree(tolerance=0.01, refine=False)
    >>> moves = (sb.Birth(), sb.Merge(), sb.Delete())
    >>> fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), X, sb.Full(units=tree, moves=moves))
    >>> fit.n_components, fit.history[-1].n_units < 1000
    (2, True)
    """

    depth: int = 8
    expand_every: int = 3
    rule: Literal["gain", "responsibility"] = "gain"
    tolerance: float = 1e-3
    budget: int | None = None
    split: Literal["axis", "principal"] = "axis"
    refine: bool = True

    def __post_init__(self) -> None:
        self._set("depth", checks.integer("depth", self.depth, minimum=0, maximum=30))
        self._set("expand_every", checks.integer("expand_every", self.expand_every, minimum=1))
        checks.word("rule", self.rule, RULES)
        self._set("tolerance", checks.non_negative("tolerance", self.tolerance))
        if self.budget is not None:
            self._set("budget", checks.integer("budget", self.budget, minimum=1))
        checks.word("split", self.split, SPLITS)
        self._set("refine", checks.flag("refine", self.refine))

    def _to_core(self) -> dict[str, Any]:
        return {
            "depth": self.depth,
            "expand_every": self.expand_every,
            "rule": self.rule,
            "tolerance": self.tolerance,
            "budget": self.budget,
            "split": self.split,
            "refine": self.refine,
            "on_trial": False,
        }

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)
