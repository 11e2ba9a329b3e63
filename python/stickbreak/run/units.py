"""Units: what receives responsibilities. Rows or nodes of a tree for mixtures, words of documents for topic models."""

from dataclasses import dataclass
from typing import Any, Literal

from stickbreak import checks
from stickbreak.io.requests import DocumentVisits

RULES = ("gain", "responsibility")
SPLITS = ("axis", "principal")
FIRST_PASSES = ("plain", "scaled")


class Units:
    """Base of all units."""

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)


@dataclass(frozen=True, kw_only=True)
class KdTree(Units):
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
        The most nodes before all become rows; those with the largest gain are opened first. At least 1. None sets no
        limit. But if there are more than 16,384 rows, and nodes would be more than an eighth of them, every row becomes
        a unit of its own, because such a tree costs more than it saves.
    split : {"axis", "principal"}
        Nodes are cut at the median of the column in which they are widest, or of their principal axis.
    refine : bool
        Whether every row becomes a unit of its own once nodes have converged, at the latest for the last quarter of
        the passes, rounded up. The fit then goes on until that has converged: where a fit without a tree ends, or with
        moves at another local optimum. Up to 16,384 rows such a fit has no tree at all. If False the fit ends on
        nodes; with births or splits, nodes are opened by one level before, in case a component stands for several
        clusters.

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
    tolerance: float = 0.003
    budget: int | None = None
    split: Literal["axis", "principal"] = "principal"
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


@dataclass(frozen=True, kw_only=True)
class Words(Units):
    """Distinct words of documents, the units of a `TopicModel`: how a visit finds the topics of a document.

    A visit alternates between the topics of the words and their counts in the document until these converge.

    Parameters
    ----------
    first_pass : {"plain", "scaled"}
        Whether the sums of the batches visited so far are scaled up to all documents in the first pass. "scaled" suits
        the objective "variational" [1]_.
    warm_start : bool
        Whether documents continue from their counts of topics at the last visit, from the third pass on. Otherwise they
        start anew, which takes longer.
    restarts : int
        Number of small topics that a document tries to drop at the end of a visit, at most 1000. This gives long
        documents better topics, and short ones too few. Records count them as `proposed` and `accepted`.
    max_steps : int
        Maximum number of iterations over a document in a visit, from 1 to 1,000,000.
    step_tol : float
        A document has converged when no count of a topic changes by this many words (per hundred words in longer
        documents); at least 0.

    Raises
    ------
    InvalidType, InvalidArgument
        An argument has a type or a value that is not allowed.

    References
    ----------
    .. [1] Hoffman, M. D., Blei, D. M., Wang, C. and Paisley, J. (2013). Stochastic variational inference. Journal of
           Machine Learning Research 14.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> counts = np.random.default_rng(0).poisson(2.0, size=(20, 6))
    >>> model = sb.TopicModel(sb.LatentDirichlet(2))
    >>> sb.fit(model, counts, sb.Full(units=sb.Words(restarts=2), max_passes=3, tol=0)).n_topics
    2
    """

    first_pass: Literal["plain", "scaled"] = "plain"
    warm_start: bool = True
    restarts: int = 0
    max_steps: int = 100
    step_tol: float = 0.05

    def __post_init__(self) -> None:
        checks.word("first_pass", self.first_pass, FIRST_PASSES)
        self._set("warm_start", checks.flag("warm_start", self.warm_start))
        self._set("restarts", checks.integer("restarts", self.restarts, minimum=0, maximum=1000))
        self._set("max_steps", checks.integer("max_steps", self.max_steps, minimum=1, maximum=1_000_000))
        self._set("step_tol", checks.non_negative("step_tol", self.step_tol))

    def _to_core(self) -> DocumentVisits:
        return {
            "first_pass": self.first_pass,
            "max_steps": self.max_steps,
            "tolerance": self.step_tol,
            "warm": self.warm_start,
            "restarts": self.restarts,
        }


def check_units(units: object) -> None:
    """Refuse what are no units."""
    if isinstance(units, str):
        checks.word("units", units, ("auto",), or_else=["a tree (KdTree())", "Words()", "None"])
    elif units is not None:
        checks.instance("units", units, Units, "a KdTree, Words, 'auto' or None")


def tree_of(units: Units | str | None) -> dict[str, Any] | None:
    """Return the settings of trees in the form that the core reads; None without a tree."""
    if isinstance(units, str):
        return KdTree()._to_core() | {"on_trial": True}
    return units._to_core() if isinstance(units, KdTree) else None


def words_of(units: Units | str | None) -> DocumentVisits:
    """Return the settings of visits of documents in the form that the core reads."""
    return (units if isinstance(units, Words) else Words())._to_core()
