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
    # Whether it reads the rows where they are. Others copy them in float64.
    _in_place: ClassVar[bool] = False

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
class BlockedGibbs(Sampler):
    r"""Blocked Gibbs sampling: weights and parameters of components are drawn, and then the labels of all rows at once.

    It is the sampler of [1]_ for a process that is cut off after `truncation` components. Given the labels, the sticks
    of the weights :math:`\pi` and the parameters :math:`\theta` of all components are drawn from their conditional
    distributions; given these, each row draws its label with

    .. math:: p(z_i = k \mid \pi, \theta, x_i) \propto \pi_k \, f(x_i \mid \theta_k)

    All rows are independent, so a sweep is as fast as a pass of `fit`, runs on all threads, and reads the rows where
    they are: in an array of float32 or float64, sparse, or in a memory map. Two moves of [2]_ swap labels, because the
    order of sticks matters and Gibbs steps hardly change it.

    It supports `DirichletProcess`, `PitmanYor`, and, without truncation, `FiniteDirichlet`, and every likelihood with a
    closed marginal likelihood. New clusters appear only where a draw from the base measure happens to fit some rows,
    which is rare in many columns. `CollapsedGibbs` and `SplitMerge` find them sooner, where the rows fit in memory.

    Parameters
    ----------
    truncation : int, optional
        Number of components, at least 1. Default: the least for which the probability of the rows changes by at most
        1e-4, and half as many again as the start has clusters. If that is above 2,000, a number must be given. A
        `TruncationWarning` says whether the last tenth had rows in more than one sweep of a hundred after the warm-up.

    Raises
    ------
    InvalidType, InvalidArgument
        `truncation` is not an integer, or is below 1.

    References
    ----------
    .. [1] Ishwaran, H. and James, L. F. (2001). Gibbs sampling methods for stick-breaking priors. Journal of the
           American Statistical Association 96(453).
    .. [2] Papaspiliopoulos, O. and Roberts, G. O. (2008). Retrospective Markov chain Monte Carlo methods for Dirichlet
           process hierarchical models. Biometrika 95(1).

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.BlockedGibbs(truncation=50)
    BlockedGibbs(truncation=50)
    """

    _in_place: ClassVar[bool] = True

    truncation: int | None = None


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Slice(Sampler):
    r"""Slice sampling: as `BlockedGibbs`, without any truncation.

    Each row draws a level below that of its component, its *slice*, and may then belong to any component whose level is
    above it. These are finitely many, so weights and parameters are drawn for them alone, and the posterior is that of
    the infinite process. Under `DirichletProcess` and `PitmanYor` the levels of the sticks fall by 0.6 from one to the
    next [1]_; under `NormalizedGeneralizedGamma` a level is the jump of the random measure [2]_.

    It supports these processes, and every likelihood with a closed marginal likelihood. For new clusters see
    `BlockedGibbs`.

    Raises
    ------
    NumericalError
        While sampling: a sweep needs more than 1,000,000 components, under a random measure with many small jumps or a
        concentration of about 1e6 and more.

    References
    ----------
    .. [1] Kalli, M., Griffin, J. E. and Walker, S. G. (2011). Slice sampling mixture models. Statistics and Computing
           21(1).
    .. [2] Favaro, S. and Teh, Y. W. (2013). MCMC for normalized random measure mixture models. Statistical Science
           28(3).

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.Slice()
    Slice()
    """

    _in_place: ClassVar[bool] = True


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

    proposal: Literal["restricted", "sequential"] = "sequential"
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

    With ``exact=False`` it is the algorithm as published, which does not leave the posterior invariant. On four
    overlapping rows the total variation distance from the posterior is 0.162, and 0.245 for the local move alone, with
    too few clusters. Use it to search, not to sample. `Trace.exact` is False for its draws.

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
