"""Samplers: how chains move through the partitions of the rows.

To add a sampler, add one class here whose fields have the parameter names of the core.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from stickbreak import _core
from stickbreak.model.specification import Specification


class Sampler(Specification):
    """Base of all samplers."""

    _family: ClassVar[str] = "samplers"

    def _check(self) -> None:
        _core.check_sampler(*self._to_core())


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CollapsedGibbs(Sampler):
    r"""Collapsed Gibbs sampling: rows leave their clusters and join others, one at a time.

    It is algorithm 3 of [1]_. Each row in turn leaves its cluster and joins one drawn from its conditional distribution
    given all other rows, with the components integrated out:

    .. math:: p(z_i = c \mid z_{-i}, X) \propto p(c \mid z_{-i}) \, \frac{m(X_c \cup x_i)}{m(X_c)}

    It supports every process, and every likelihood with a closed marginal likelihood m. A sweep costs
    :math:`O(n K D^2)` for the Gaussians.

    Parameters
    ----------
    subset : int, optional
        Number of random rows that a sweep visits, 1 to n. Default: all rows, in order.

    Raises
    ------
    InvalidType, InvalidArgument
        `subset` is not an integer, or is out of range.

    References
    ----------
    .. [1] Neal, R. M. (2000). Markov chain sampling methods for Dirichlet process mixture models. Journal of
           Computational and Graphical Statistics 9(2).

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.CollapsedGibbs(subset=100)
    CollapsedGibbs(subset=100)
    """

    subset: int | None = None


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SplitMerge(Sampler):
    r"""Split-merge moves, each followed by a sweep of collapsed Gibbs steps.

    Two rows are drawn. If they share a cluster, a split of it is proposed, else a merge of their clusters. It is
    accepted with the Metropolis-Hastings probability

    .. math:: \min\Bigl\{1, \frac{p(\Pi^*) \, m(X_A) m(X_B)}{p(\Pi) \, m(X_C)} \, \frac1q\Bigr\}

    for a split of C into A and B whose allocation has the probability q, and with the reciprocal ratio for a merge. So
    whole clusters are split or merged in one step, whereas Gibbs steps would have to pass through improbable
    partitions. It supports every process.

    Parameters
    ----------
    proposal : {"restricted", "sequential"}
        How rows are divided between the two parts. "restricted": at random, then by `scans` Gibbs scans restricted to
        the two parts and one more scan, whose probability is q [1]_. "sequential": in a single pass, row by row in
        random order [2]_.
    scans : int
        Restricted scans before the last one, 0 to 1000. Without effect for "sequential".
    subset : int, optional
        Number of rows that the Gibbs sweep after each move visits, as in `CollapsedGibbs`. Default: all.

    Raises
    ------
    InvalidType, InvalidArgument
        A parameter has a type or a value that is not allowed.

    References
    ----------
    .. [1] Jain, S. and Neal, R. M. (2004). A split-merge Markov chain Monte Carlo procedure for the Dirichlet process
           mixture model. Journal of Computational and Graphical Statistics 13(1).
    .. [2] Dahl, D. B. (2005). Sequentially-allocated merge-split sampler for conjugate and nonconjugate Dirichlet
           process mixture models. Technical report, Texas A&M University.

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.SplitMerge(proposal="sequential")
    SplitMerge(proposal='sequential', scans=3)
    """

    proposal: Literal["restricted", "sequential"] = "restricted"
    scans: int = 3
    subset: int | None = None


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TreeGuided(Sampler):
    r"""Tree-guided sampling: whole subtrees of clusters move at once.

    It follows [1]_, with moves made exact. Each cluster has a binary tree over its rows. A *subtree move* cuts a
    cluster at a node of its tree and assigns the remaining subtrees to the parts, or merges any number of clusters. A
    *tree-launched move* splits a cluster in two, or merges two, by restricted Gibbs scans that start from a cut of the
    tree. The two kinds alternate: subtree moves split well, and tree-launched moves also merge clusters whose rows
    interleave. Moves of single rows follow. All moves leave the posterior invariant: the distribution of the trees of
    proposed clusters depends only on their rows, and the Metropolis-Hastings ratio counts all ways to propose a merge.

    With ``exact=False`` it is the algorithm as published, which does not leave the posterior invariant. On a few
    overlapping rows the total variation distance from the posterior is 0.16 to 0.37, with too few clusters. Use it to
    search, not to sample. `Trace.exact` is False for its draws.

    It supports every process, and every likelihood with a closed marginal likelihood. A sweep recomputes the trees of
    all clusters, with O(n) marginal likelihoods of joined clusters.

    Parameters
    ----------
    global_moves : int
        Number of subtree and tree-launched moves per sweep, 1 to 1000000.
    depth : int
        Number of successive draws of a node within the subtree of the previous one when rows are chosen, 1 to 100.
        Without effect unless `local` is "guided" or `exact` is False.
    exact : bool
        Whether the posterior is left invariant.
    trees : {"guide", "fresh"}
        The trees of clusters. "guide": restrictions of one tree over all rows, built before the first sweep by
        incremental Bayesian hierarchical clustering. "fresh": built anew, from rows in random order.
    evenness : {"max", "max/n"}
        Term added to the dissimilarity of a node before one is drawn: the largest dissimilarity, which makes nodes
        almost equally probable, or that divided by the number of nodes, which prefers uncertain nodes.
    local : {"uniform", "guided"}
        How rows for single moves are chosen. "uniform": as in `CollapsedGibbs`. "guided": by a descent in the tree of a
        random cluster, with a correction in the acceptance probability.
    scans : int
        Restricted scans of a tree-launched move before the last one, 0 to 1000.
    subset : int, optional
        Number of rows that the single moves of a sweep visit. Default: all.

    Raises
    ------
    InvalidType, InvalidArgument
        A parameter has a type or a value that is not allowed.

    References
    ----------
    .. [1] Lee, J. and Choi, S. (2015). Tree-guided MCMC inference for normalized random measure mixture models.
           Advances in Neural Information Processing Systems 28.

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.TreeGuided(global_moves=10).exact
    True
    """

    global_moves: int = 20
    depth: int = 2
    exact: bool = True
    trees: Literal["guide", "fresh"] = "guide"
    evenness: Literal["max", "max/n"] = "max"
    local: Literal["uniform", "guided"] = "uniform"
    scans: int = 1
    subset: int | None = None
