"""Samplers: how chains move through the partitions of the rows.

To add a sampler, add one class here: its fields are the names that the core knows.
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
    r"""Collapsed Gibbs sampling ([1]_, algorithm 3).

    Each row in turn leaves its cluster and joins one drawn from its conditional given all other rows, with the
    components integrated out:

    .. math:: p(z_i = c \mid z_{-i}, X) \propto p(c \mid z_{-i}) \, \frac{m(X_c \cup x_i)}{m(X_c)}

    Runs under every process and every likelihood with a closed marginal likelihood m. A sweep costs
    :math:`O(n K D^2)` for the Gaussians.

    Parameters
    ----------
    subset : int, optional
        How many rows a sweep visits, drawn uniformly anew for each sweep; at least 1, at most n. Default: all rows, in
        order.

    Raises
    ------
    InvalidType, InvalidArgument
        `subset` is not such a number.

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

    Two rows are drawn. If they share a cluster, a split of it is proposed, else the merge of theirs, and accepted with
    the probability of Metropolis and Hastings

    .. math:: \min\Bigl\{1, \frac{p(\Pi^*) \, m(X_A) m(X_B)}{p(\Pi) \, m(X_C)} \, \frac1q\Bigr\}

    for a split of C into A and B whose allocation has the probability q, and the reciprocal for a merge. So whole
    clusters come and go in one step, where Gibbs steps would need to pass through improbable partitions. Runs under
    every process.

    Parameters
    ----------
    proposal : {"restricted", "sequential"}
        How rows are dealt to the two parts. "restricted": at random, then by `scans` Gibbs scans restricted to the two
        parts and one more, whose probability is q [1]_. "sequential": once, one row after another in random order [2]_.
    scans : int
        Restricted scans before the last one, 0 to 1000. Without effect for "sequential".
    subset : int, optional
        How many rows the Gibbs sweep after each move visits, as in `CollapsedGibbs`. Default: all.

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
